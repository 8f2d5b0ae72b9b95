/* SPDX-License-Identifier: MIT */
/*
 * auth.h - basic authentication (RFC 7617) against files of htpasswd(1).
 *
 * Checking a password is slow on purpose, so it is done by threads of the
 * authenticator's own, and what was right is remembered for a while as a
 * keyed hash of user, password and line of the file; a line that changes
 * makes the memory of it void.  Who fails often has to wait.
 *
 * Clients (client-limit.h) take turns at the threads, one check each, and share the
 * queue: when it is full, a client with few checks in it takes the place of
 * one of the client that has the most.  So clients that guess delay others by
 * a check each, and lock nobody out.
 *
 * The file is looked at again when somebody is checked, at most once in a
 * second; one that cannot be read or has a bad line is reported and the users
 * that were read before stay.
 */
#ifndef SWEET_AUTH_H
#define SWEET_AUTH_H

#include "auth/htpasswd.h"
#include "base/slice.h"
#include "event/thread-pool.h"
#include "event/client-limit.h"

#define AUTH_PASSWORD_MAX 512 /* bytes */

struct authenticator; /* what all files share; one for the program */
struct auth;	      /* one file */

enum auth_answer {
	AUTH_YES,
	AUTH_NO,    /* no credentials, or wrong ones */
	AUTH_WAIT,  /* too many wrong ones: ask again in wait_s */
	AUTH_BUSY,  /* too many are being checked */
	AUTH_LATER, /* answered() will tell */
};

/* A question; the caller's memory until the answer. */
struct auth_check {
	/* The caller's: */
	struct loop *loop; /* answered() is called on its thread */
	void (*answered)(struct auth_check *check);
	/* The answer: */
	enum auth_answer answer;
	unsigned wait_s;
	char user[HTPASSWD_USER_MAX + 1]; /* as given; "" when there was none */
	/* auth.c's: */
	struct job job;
	struct auth *auth;
	struct auth_check *next, **link; /* all that have no answer yet */
	struct auth_check *later;	 /* of the same client */
	struct auth_client *of;
	struct client_address client;
	bool refresh, taken;
	char password[AUTH_PASSWORD_MAX + 1];
};

/* limits count who fails.  NULL with errno. */
struct authenticator *authenticator_open(struct client_limits *limits);

/*
 * When the loops have stopped, before they are closed.  Every check that has
 * no answer yet is answered AUTH_BUSY.
 */
void authenticator_close(struct authenticator *authenticator);

/*
 * Reads the file.  NULL with *why (the caller's, to be freed by g_free())
 * when that cannot be done.  Held until as many releases; any thread.
 */
struct auth *auth_open(struct authenticator *authenticator, const char *path, char **why);
struct auth *auth_hold(struct auth *auth);
void auth_release(struct auth *auth);

/*
 * Puts the value of an Authorization field (length 0: there is none), which
 * came from that client, to the file.  AUTH_LATER: the check is on its way;
 * else its answer is there.
 */
enum auth_answer auth_ask(struct auth *auth, struct auth_check *check,
			  const struct sockaddr *client, struct slice field);

/*
 * Writes the field that asks for credentials, "WWW-Authenticate: ...\r\n",
 * not NUL-terminated.  Returns its bytes, 0 when it does not fit.
 */
size_t auth_challenge(const char *realm, char *out, size_t out_size);

#endif
