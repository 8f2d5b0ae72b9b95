/* SPDX-License-Identifier: MIT */
/*
 * auth.h - basic authentication (RFC 7617) with files of htpasswd(1).
 *
 * To check a password is slow by design, so the authenticator has its own threads for it, and
 * caches valid credentials for some time as a keyed hash of user, password and line of the file; a
 * change of the line invalidates the cached hash.  A client that fails often has to wait.
 *
 * Clients (client-limit.h) take turns with the threads, one check each, and share the queue: if it
 * is full, a client with few checks in it replaces a check of the client that has the most.  So a
 * client that guesses passwords delays others by at most one check each.  Requests of a client with
 * the same credentials, while these are checked, are one check, and count as one attempt: a page
 * with many parts is requested many times before the first answer.
 *
 * With a check, at most once a second, the server looks whether the file has changed.  If the file
 * cannot be read or has an invalid line, this is logged and the previous users stay.  A client with
 * remembered credentials waits neither for the checks of others nor for the file: the look at the
 * file is done beside, and what it finds counts for the next request.
 */
#ifndef SWEET_AUTH_H
#define SWEET_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct auth_check; /* core/auth-check.h */
struct client_limits;
struct sockaddr;

struct authenticator; /* shared by all files; one for each process */
struct auth;	      /* one file */

enum auth_answer {
	AUTH_YES,
	AUTH_NO,    /* no credentials, or wrong ones */
	AUTH_WAIT,  /* too many wrong passwords: retry in wait_s */
	AUTH_BUSY,  /* too many checks are queued */
	AUTH_LATER, /* answered() of struct auth_check reports the result */
};

/* limits counts failures.  Returns NULL with errno. */
struct authenticator *authenticator_open(struct client_limits *limits);

/*
 * Call it after the loops have stopped, before they are closed.  Each check without a result gets
 * AUTH_BUSY.
 */
void authenticator_close(struct authenticator *authenticator);

/*
 * Reads the file.  Returns NULL with *why (g_free()) on failure. auth_hold() and auth_release()
 * count references; any thread.
 */
struct auth *auth_open(struct authenticator *authenticator, const char *path, char **why);
struct auth *auth_hold(struct auth *auth);
void auth_release(struct auth *auth);

/*
 * Checks the value of an Authorization field (length 0: there is none) of that client against the
 * file.  Returns AUTH_LATER if the check was queued; else the result is set.
 */
enum auth_answer auth_ask(struct auth *auth, struct auth_check *check,
			  const struct sockaddr *client, struct slice field);

/* The client of a check without a result has left: the check is not begun any more. */
void auth_leave(struct auth_check *check);

/*
 * Writes the field that requests credentials, "WWW-Authenticate: ...\r\n", without a NUL.  Returns
 * its bytes; 0 if it does not fit.
 */
size_t auth_challenge(const char *realm, char *out, size_t out_size);

#endif
