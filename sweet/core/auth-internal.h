/* SPDX-License-Identifier: MIT */
/*
 * auth-internal.h - authenticator and password file, as the sources of auth.h see them.
 *
 * Call cycle: auth.c checks passwords with auth-file.c, and when auth-file.c opens the first file
 * it has auth.c start its threads.
 */
#ifndef SWEET_AUTH_INTERNAL_H
#define SWEET_AUTH_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <glib.h>

#include "base/list.h"
#include "event/client-limit.h"
#include "event/thread-pool.h"

struct auth_check;
struct loop;

#define AUTH_THREADS 2	    /* that check passwords; one more looks at the files */
#define AUTH_CHECKS_MAX 256 /* that are queued or have a thread */
#define AUTH_SECOND_NS UINT64_C(1000000000)
#define AUTH_SETS 128
#define AUTH_WAYS 8
#define AUTH_DIGEST 32

/* A client with checks; it is in the queue of turns while one of them is queued. */
struct auth_client {
	struct client_address address;
	struct list queued; /* checks */
	unsigned checks;    /* queued, or with a thread */
	struct list_node turn;
};

/* Valid credentials. */
struct memory {
	uint8_t digest[AUTH_DIGEST];
	uint64_t until_ns;
};

struct authenticator {
	pthread_mutex_t lock; /* of everything that is not constant */
	struct client_limits *limits;
	struct rate_limit *failures;
	struct thread_pool *thread_pool; /* NULL until a file is opened */
	struct list checks;
	struct list ended;	       /* those that followed another, with its result */
	unsigned check_count, working; /* queued or with a thread; with a thread */
	struct list turns;	       /* of clients with queued checks */
	struct list refreshes;	       /* of files that are looked at beside, with references */
	struct auth_client
		*clients[AUTH_CHECKS_MAX]; /* those with checks first, then unused ones */
	unsigned client_count;
	struct auth_client memory[AUTH_CHECKS_MAX];
	uint8_t salt[AUTH_DIGEST];
	struct memory memories[AUTH_SETS][AUTH_WAYS];
};

struct auth {
	_Atomic unsigned references;
	struct authenticator *authenticator;
	char *path;
	_Atomic uint64_t looked_ns; /* when a caller last started to check the file */
	struct job refresh;	    /* its check beside the requests */
	struct list_node refreshing;
	pthread_mutex_t lock; /* of the fields that follow */
	struct htpasswd *users;
	struct stat version;
	char *wrong;   /* what is wrong with the file, as logged; or NULL */
	bool reported; /* an unknown hash was logged since the file was read */
};

/* --- auth.c --- */

/* Starts the authenticator's threads if necessary; returns false with errno. */
bool auth_open_threads(struct authenticator *authenticator);

/* --- auth-file.c --- */

/*
 * Refreshes the file on a thread that checks no passwords, unless that is being done; nobody waits
 * for it.
 */
void auth_refresh_beside(struct auth *auth, struct loop *loop);

/* Returns the users, to be released with htpasswd_release(). */
struct htpasswd *auth_hold_users(struct auth *auth);

/* Returns true for one caller, once a second. */
bool auth_is_due(struct auth *auth, uint64_t now_ns);

/* Reads the file again if it has changed.  Runs on a thread of the authenticator. */
void auth_refresh(struct auth *auth);

/* Whether the check's password matches the line; slow. */
bool auth_verify(struct auth *auth, const char *hash, const struct auth_check *check);

/* --- auth-cache.c --- */

bool auth_is_remembered(struct authenticator *authenticator, const char *hash,
			const struct auth_check *check, uint64_t now_ns);
void auth_remember(struct authenticator *authenticator, const char *hash,
		   const struct auth_check *check, uint64_t now_ns);

/* --- auth-queue.c --- */

/* Returns the client of that address, or a new one; NULL if there are too many. */
struct auth_client *auth_find_client_locked(struct authenticator *authenticator,
					    const struct client_address *address);

/*
 * Returns the check, without a result so far, of the same credentials for the same client and file;
 * or NULL.
 */
struct auth_check *auth_find_same_locked(const struct authenticator *authenticator,
					 const struct auth_check *check);

/* Gives the followers of a check its answer, lists them, and moves them to the caller's list. */
void auth_end_followers_locked(struct authenticator *authenticator, struct auth_check *check,
			       struct list *followers);

void auth_add_waiting_locked(struct authenticator *authenticator, struct auth_client *client,
			     struct auth_check *check);

/* Returns the next check, which the caller submits to a thread; NULL: none, or no idle thread. */
struct auth_check *auth_next_locked(struct authenticator *authenticator);

/* Removes a queued check from the queue. */
void auth_unqueue_locked(struct authenticator *authenticator, struct auth_check *check);

/* Removes a check that is neither queued nor has a thread any more. */
void auth_remove_check_locked(struct authenticator *authenticator, struct auth_check *check);

/* Returns the check that is dropped in favour of a client that has `checks`; or NULL. */
struct auth_check *auth_make_place_locked(struct authenticator *authenticator, unsigned checks);

#endif
