/* SPDX-License-Identifier: MIT */
/*
 * serve.h - the owner's end of attaching: admits members and notices when they are
 * gone.
 *
 * The owner listens on a Unix socket.  A process that connects becomes a member if
 * the kernel's credentials for it allow that.  A worker inherits its socket and
 * takes the same step.  Members make their calls through the same socket.
 */
#ifndef NC_SERVE_H
#define NC_SERVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "membership/rpc-server.h"

struct nc_disposal;
struct nc_guest;
struct NC_serve_options;
struct nc_index;

/*
 * The owner's end; one thread at a time dispatches.  Nothing that a member passes or
 * leaves behind makes that thread wait: see disposal.h.
 */
struct nc_serve {
	struct nc_index *index;
	struct nc_rpc_admin admin; /* what higher layers do for operators */
	struct nc_disposal *disposal;
	int epoll;   /* the cache's epoll descriptor; -1 in an attached process */
	int members; /* the same descriptor, or a separate one for the thread */
	int wake;    /* eventfd that wakes the thread; -1: there is no thread */
	pthread_t thread;
	_Atomic bool stop;
	pthread_mutex_t turn; /* one thread at a time dispatches; taken before the lock */
	int listener;	      /* -1: not serving */
	/* spare descriptor, closed briefly to refuse a connection; -1: none */
	int spare;
	/* the listener is not watched: even the spare descriptor is missing */
	bool paused;
	char *path;
	bool everyone; /* only the permissions of the socket decide who may attach */
	uid_t *users;  /* otherwise the owner's user, root and these */
	unsigned user_count;
	pthread_mutex_t lock; /* protects all below */
	struct nc_guest *guests;
	unsigned waiting; /* guests that have not sent their hello */
};

int nc_serve_init(struct nc_serve *serve, struct nc_index *index);
void nc_serve_fini(struct nc_serve *serve);

/* Adds a descriptor that makes the owner's pollable descriptor readable. */
int nc_serve_watch(struct nc_serve *serve, int fd);

/*
 * Listens at path; options NULL: mode 0600.  Returns 0, -EALREADY, or errors of
 * bind(2), chown(2).
 */
int nc_serve_listen(struct nc_serve *serve, const char *path,
		    const struct NC_serve_options *options);

/*
 * Starts a thread that dispatches; members then no longer use the cache's
 * descriptor.  Call it before the first member exists.  Returns 0 or -errno.
 */
int nc_serve_start(struct nc_serve *serve);

/*
 * Stops that thread.  Returns false if the thread is blocked in closing a
 * descriptor; it continues to use the cache when that returns.
 */
bool nc_serve_stop(struct nc_serve *serve);

/*
 * Admits members, serves their calls, and detaches those that are gone.  It waits
 * for no member, but see above.  Returns the number of events handled, or -errno.
 */
int nc_serve_dispatch(struct nc_serve *serve);

/* What a worker receives beside its segment. */
struct nc_serve_offer {
	size_t memory; /* size of its segment in bytes */
	unsigned channels;
	uint32_t queue_size;
	const int *extra; /* see wire.h */
	uint32_t flags;	  /* NC_WIRE_POSIX */
};

/*
 * Makes the process that will use the other end of socket a member, and sends the
 * welcome.  On success the guest owns the socket; on failure the caller does.
 */
int nc_serve_offer(struct nc_serve *serve, int socket, const struct nc_serve_offer *offer,
		   struct nc_guest **guest);

/*
 * The guest's process now runs, with this process's credentials if it is its child:
 * from here on it may make calls.
 */
int nc_serve_expect(struct nc_serve *serve, struct nc_guest *guest, pid_t pid, int pidfd,
		    bool child);

/* The guest has ended: releases its units and closes its socket. */
void nc_serve_dismiss(struct nc_serve *serve, struct nc_guest *guest);

struct nc_remote_member *nc_guest_remote(const struct nc_guest *guest);
const struct nc_subject *nc_guest_subject(const struct nc_guest *guest);

#endif
