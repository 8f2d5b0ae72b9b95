/* SPDX-License-Identifier: MIT */
/*
 * dav-call.h - one request of WebDAV at work: between the files of this folder.
 *
 * A method is a function that runs on a helper thread and may block: it sets the response in the
 * call.  The transaction lives until then, so that its scope and user can be read.
 */
#ifndef SWEET_DAV_CALL_H
#define SWEET_DAV_CALL_H

#include <pthread.h>
#include <stdatomic.h>

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "dav/dav-locks.h"
#include "dav/dav-place.h"
#include "dav/dav-request.h"
#include "event/thread-pool.h"
#include "files/docroot.h"
#include "files/filehead.h"

struct dav_upload;

struct dav {
	struct dav_locks *locks;
	struct thread_pool *threads; /* of what takes long; NULL: not started */
	pthread_mutex_t mutex;	     /* of that, and of the calls */
	struct list calls;	     /* all that are not freed */
	unsigned helpers;
	_Atomic bool leaving; /* the server ends: what takes long stops */
};

#define DAV_CHANGES_MAX 4

struct dav_call {
	struct job job;
	struct dav *dav;
	struct list_node node;
	struct transaction *transaction;
	bool over; /* for the transaction: what is left is freed */
	struct dav_request request;
	struct dav_place at, to;
	struct dav_place *tagged;  /* of the lists of If; NULL: none has a tag */
	struct dav_upload *upload; /* of PUT */
	char *body;		   /* of the request, if it is XML; NULL: none */
	size_t body_length;
	uint64_t before; /* bytes of pieces before the current one */

	/* The response. */
	int status;
	const char *reason; /* for the log, static text; or NULL */
	GString *lines;	    /* of its head; NULL: none */
	GString *text;	    /* XML; NULL: none */

	struct dav_change changes[DAV_CHANGES_MAX];
	unsigned change_count;
};

/* The methods (dav-change.c, dav-find.c, dav-patch.c, dav-lock.c). */
void dav_delete(struct dav_call *call);
void dav_mkcol(struct dav_call *call);
void dav_copy(struct dav_call *call);
void dav_move(struct dav_call *call);
void dav_propfind(struct dav_call *call);
void dav_proppatch(struct dav_call *call);
void dav_lock(struct dav_call *call);
void dav_unlock(struct dav_call *call);

/*
 * PUT (dav-put.c) in steps: before the body, for each piece of it, after the last one.  A status
 * ends it.  dav_put_discard() removes what is left, and may block.
 */
void dav_put_begin(struct dav_call *call);
void dav_put_piece(struct dav_call *call);
void dav_put_end(struct dav_call *call);
void dav_put_discard(struct dav_call *call);

/* dav-check.c: what all methods check; each sets the response and returns false if it fails. */

/* What is at a place. */
struct dav_state {
	bool exists, folder;
	struct file_version version;
	struct filehead head; /* of a file */
};

/* Returns false only if it is unknown whether something is there. */
bool dav_look(struct dav_call *call, const struct dav_place *place, struct dav_state *state);

/* If, If-Match, If-None-Match ... of the request, for what is there. */
bool dav_check_conditions(struct dav_call *call, const struct dav_state *state);

/*
 * Begins changes; the client must have the tokens of all locks.  With members, the list of members
 * of the place's folder changes too.  dav_end_changes() must follow, also after a failure.
 */
bool dav_begin_change(struct dav_call *call, const struct dav_place *place, bool deep,
		      bool members);
void dav_end_changes(struct dav_call *call);

/* Sets the response: a status with its reason; of an error of a file. */
void dav_fail(struct dav_call *call, int status, const char *reason);
void dav_fail_with(struct dav_call *call, int error, const char *what);

/* Sets the response: status and an element of XML as its body (RFC 4918, section 16). */
void dav_violate(struct dav_call *call, int status, const char *condition, const char *path);

struct dav_claim dav_claim_of(const struct dav_call *call);

#endif
