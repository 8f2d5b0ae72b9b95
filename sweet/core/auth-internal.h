/* SPDX-License-Identifier: MIT */
/*
 * auth-internal.h - authenticator and password file as the sources of auth.h see
 * them.
 *
 * Call cycle: auth.c checks passwords against auth-file.c, and the first file that
 * auth-file.c opens has auth.c start its threads.
 */
#ifndef SWEET_AUTH_INTERNAL_H
#define SWEET_AUTH_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include <glib.h>

#include "core/auth.h"

#define AUTH_THREADS 2
#define AUTH_CHECKS_MAX 256 /* that wait for a thread or have one */
#define AUTH_SECOND_NS UINT64_C(1000000000)
#define AUTH_SETS 128
#define AUTH_WAYS 8
#define AUTH_DIGEST 32

/* A client that has checks; in the queue of turns as long as one of them waits. */
struct auth_client {
	struct client_address address;
	struct auth_check *first, *last; /* that wait */
	unsigned checks;		 /* with those of threads */
	GList turn;			 /* its link in the queue of turns; data: itself */
};

/* Credentials that were right. */
struct memory {
	uint8_t digest[AUTH_DIGEST];
	uint64_t until_ns;
};

struct authenticator {
	pthread_mutex_t lock; /* of all but the constants */
	struct client_limits *limits;
	struct rate_limit *failures;
	struct thread_pool *thread_pool; /* NULL until a file is opened */
	struct auth_check *checks;
	unsigned check_count, working; /* that wait or have a thread; that have one */
	GQueue turns;		       /* of clients with checks that wait */
	struct auth_client
		*clients[AUTH_CHECKS_MAX]; /* those that have checks, then the spare ones */
	unsigned client_count;
	struct auth_client memory[AUTH_CHECKS_MAX];
	uint8_t salt[AUTH_DIGEST];
	struct memory memories[AUTH_SETS][AUTH_WAYS];
};

struct auth {
	_Atomic unsigned references;
	struct authenticator *authenticator;
	char *path;
	_Atomic uint64_t looked_ns; /* when somebody last set out to look at the file */
	pthread_mutex_t lock;	    /* of what follows */
	struct htpasswd *users;
	struct stat version;
	char *wrong; /* with the file as it is now, and said; NULL: nothing */
	bool told;   /* that a hash is not known here, since the file was read */
};

/* --- auth.c --- */

/* The authenticator's threads, unless they are there.  False with errno. */
bool auth_open_threads(struct authenticator *authenticator);

/* --- auth-file.c --- */

/* For htpasswd_release(). */
struct htpasswd *auth_hold_users(struct auth *auth);

/* True for one caller, when a second has gone by. */
bool auth_is_due(struct auth *auth, uint64_t now_ns);

/* Reads the file anew if it has changed.  On a thread of the authenticator. */
void auth_refresh(struct auth *auth);

/* Whether the check's password is that of the line; slow. */
bool auth_verify(struct auth *auth, const char *hash, const struct auth_check *check);

/* --- auth-cache.c --- */

bool auth_is_remembered(struct authenticator *authenticator, const char *hash,
			const struct auth_check *check, uint64_t now_ns);
void auth_remember(struct authenticator *authenticator, const char *hash,
		   const struct auth_check *check, uint64_t now_ns);

/* --- auth-queue.c --- */

/* The client of that address, or a new one; NULL: there are too many. */
struct auth_client *auth_find_client_locked(struct authenticator *authenticator,
					    const struct client_address *address);

void auth_add_waiting_locked(struct authenticator *authenticator, struct auth_client *client,
			     struct auth_check *check);

/* The check that a thread shall do next, which is to be submitted; NULL: none, or no thread is idle. */
struct auth_check *auth_next_locked(struct authenticator *authenticator);

/* The check waits no more and has no thread any more. */
void auth_remove_check_locked(struct authenticator *authenticator, struct auth_check *check);

/* The check that has given up its place for one of a client with so many; NULL: none has. */
struct auth_check *auth_make_place_locked(struct authenticator *authenticator, unsigned checks);

#endif
