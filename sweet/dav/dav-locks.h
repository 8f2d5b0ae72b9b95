/* SPDX-License-Identifier: MIT */
/*
 * dav-locks.h - the write locks of WebDAV (RFC 4918, sections 6 and 7), in memory: one table for
 * all threads of the server.
 *
 * A path here is that of a file, absolute, without a slash at its end: hosts and paths that share a
 * folder share its locks.  A lock on a folder that is not deep covers its list of members only.
 *
 * Any thread may call every function; none blocks, except for the table's mutex.  now: a monotonic
 * clock, in ns.
 */
#ifndef SWEET_DAV_LOCKS_H
#define SWEET_DAV_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

#define DAV_TOKEN_SIZE 46	/* bytes of a token, with its NUL */
#define DAV_LOCK_OWNER_MAX 1024 /* bytes */

struct dav_locks;

/* A user may have at most half of most locks.  NULL without memory. */
struct dav_locks *dav_locks_open(unsigned most);
void dav_locks_close(struct dav_locks *locks);

struct dav_lock {
	const char *path;
	const char *href;  /* the client's path, for lockroot */
	const char *user;  /* who may use the token */
	const char *owner; /* text that the client has sent, as XML; NULL: none */
	bool deep, shared;
	uint64_t expires_ns;
};

/*
 * Adds a lock.  Returns 0 and its token; -EBUSY and the href of another lock, or NULL while the
 * path is being changed; -ENOSPC: too many locks.  The caller frees *other.
 */
int dav_locks_add(struct dav_locks *locks, const struct dav_lock *lock, uint64_t now,
		  char token[DAV_TOKEN_SIZE], char **other);

/* Who wants to change something, and the tokens that were sent with the request. */
struct dav_claim {
	const char *user;
	const struct slice *tokens;
	unsigned count;
};

/* Extends a lock of the claim that covers the path; returns 0 and its token, or -ENOENT. */
int dav_locks_refresh(struct dav_locks *locks, const char *path, const struct dav_claim *claim,
		      uint64_t expires_ns, uint64_t now, char token[DAV_TOKEN_SIZE]);

/* Removes a lock that covers the path.  Returns 0, -ENOENT, or -EPERM: another user's. */
int dav_locks_remove(struct dav_locks *locks, const char *path, struct slice token,
		     const char *user, uint64_t now);

/* Returns true if the path has a lock of that token. */
bool dav_locks_has(struct dav_locks *locks, const char *path, struct slice token, uint64_t now);

/* Calls see() for each lock that covers the path, with the table locked. */
void dav_locks_each(struct dav_locks *locks, const char *path, uint64_t now,
		    void (*see)(const struct dav_lock *lock, const char *token, void *context),
		    void *context);

/* Removes the locks of a path that exists no more, and those below. */
void dav_locks_forget(struct dav_locks *locks, const char *path);

/* A path that is to be changed; deep: and all below.  In the caller's memory until the end. */
struct dav_change {
	const char *path;
	bool deep;
	struct list_node node; /* the table's */
};

/*
 * Begins changes, which no new lock can interrupt until they end.  Returns 0, or -EBUSY and the
 * href of a lock (the caller frees it) whose token the claim does not have.
 */
int dav_locks_begin(struct dav_locks *locks, struct dav_change *changes, unsigned count,
		    const struct dav_claim *claim, uint64_t now, char **other);
void dav_locks_end(struct dav_locks *locks, struct dav_change *changes, unsigned count);

#endif
