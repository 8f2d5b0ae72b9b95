/* SPDX-License-Identifier: MIT */
/*
 * endpoints.h - all addresses that the server listens on, and the change from one
 * configuration to the next: unchanged ones are not touched, and new ones are
 * opened before old ones are closed.  Main thread.
 */
#ifndef SWEET_ENDPOINTS_H
#define SWEET_ENDPOINTS_H

#include <glib.h>
#include <stdbool.h>

struct endpoints {
	unsigned threads;
	bool one_queue; /* one socket per address, for all threads */
	unsigned next_id;
	GPtrArray *all; /* struct endpoint */
};

/* What a configuration wants: lists of texts, which end with NULL. */
struct endpoints_wanted {
	char *const *listen;
	bool given;		    /* listen is not the default */
	char *const *status_listen; /* for the status pages alone */
};

/* The planned change. */
struct endpoints_change {
	GPtrArray *fresh; /* opened; not yet in all */
	GPtrArray *gone;  /* in all, still open */
	GPtrArray *moded; /* in all: struct endpoint whose files get a new mode, ... */
	GArray *modes;	  /* ... a mode_t for each */
	GPtrArray *tls;	  /* in all: struct endpoint whose clients use TLS, of those that stay */
	GPtrArray
		*status_only; /* in all: struct endpoint for the status alone, of those that stay */
	bool in_use;	      /* it failed only because addresses are in use */
};

void endpoints_init(struct endpoints *endpoints, unsigned threads, bool one_queue);

/* Another process removes their files: this process only uses the sockets. */
void endpoints_disown(struct endpoints *endpoints);

/* Closes all endpoints. */
void endpoints_clear(struct endpoints *endpoints);

/* Takes a descriptor from a supervisor; errors as endpoint_adopt(). */
int endpoints_adopt(struct endpoints *endpoints, int fd);

/*
 * Opens the wanted addresses that are new.  Inherited endpoints always remain; if there are any,
 * they replace a listen that is not given.  Returns false with a line in errors (g_free) for each
 * mistake; then there is nothing to commit, and only change->in_use is valid.
 */
bool endpoints_plan(const struct endpoints *endpoints, const struct endpoints_wanted *wanted,
		    struct endpoints_change *change, GPtrArray *errors);

/*
 * Performs the change: adds fresh endpoints to the set, and closes gone ones and
 * removes their files.  Sockets that threads have taken must be closed by them.
 */
void endpoints_commit(struct endpoints *endpoints, struct endpoints_change *change);

/* Cancels the change: closes fresh endpoints. */
void endpoints_abandon(struct endpoints_change *change);

#endif
