/* SPDX-License-Identifier: MIT */
/*
 * serve.h - the owner's end of attaching: admits members and notices when they are gone.
 *
 * The owner listens on a Unix socket; a process that connects, and whose credentials from
 * the kernel allow it, becomes a member.  A worker inherits its socket instead and takes
 * the same step.  Members make their calls through the same socket.
 */
#ifndef NC_SERVE_H
#define NC_SERVE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cache/index.h"
#include "membership/rpc-server.h"
#include "wire/wire.h"

struct nc_guest;

/*
 * The owner's end; one thread at a time dispatches.
 *
 * Descriptors that a member passes may be the last of their files, and the end
 * of a file may take as long as its maker likes: a TCP connection that lingers, a
 * file of a file system in user space.  So what members send is received and closed, and
 * their sockets are, without the lock; with a thread for that alone nobody else
 * ever waits for them.
 */
struct nc_serve {
	struct nc_index *index;
	struct nc_rpc_admin admin; /* what upper floors do for operators */
	int epoll;		   /* the cache's; -1 in an attached process */
	int members;		   /* the same; or of their own, and the thread's */
	int wake; /* an eventfd: the thread has something to do; -1: there is no thread */
	pthread_t thread;
	_Atomic bool stop;
	pthread_mutex_t turn; /* one thread at a time dispatches; before the lock */
	int listener;	      /* -1: not served */
	int spare;	      /* given up for a moment to refuse who cannot be let in; -1: none */
	bool deaf;	      /* the listener is not watched: there was not even a spare */
	char *path;
	bool everyone; /* the socket's permissions alone decide who may attach */
	uid_t *users;  /* else the owner's, root and these */
	unsigned user_count;
	pthread_mutex_t lock; /* all below */
	struct nc_guest *guests;
	unsigned waiting; /* guests that have not said what they want */
};

int nc_serve_init(struct nc_serve *serve, struct nc_index *index);
void nc_serve_fini(struct nc_serve *serve);

/* One more descriptor that makes the owner's pollable descriptor readable. */
int nc_serve_watch(struct nc_serve *serve, int fd);

/* Listens at path; options NULL: mode 0600.  0; -EALREADY; errors of bind(2), chown(2). */
int nc_serve_listen(struct nc_serve *serve, const char *path,
		    const struct NC_serve_options *options);

/*
 * From now on a thread dispatches, and members have no part in the cache's descriptor.  Before
 * the first of them.  0 or -errno.
 */
int nc_serve_start(struct nc_serve *serve);

/*
 * The end of that thread; false: it waits for the end of a descriptor, and goes on with the cache
 * when it has seen it.
 */
bool nc_serve_stop(struct nc_serve *serve);

/*
 * Admits, answers, and detaches those that are gone.  Waits for no member, but see above.  Events
 * handled, or -errno.
 */
int nc_serve_dispatch(struct nc_serve *serve);

/* What a worker is sent beside its segment. */
struct nc_serve_offer {
	size_t memory; /* bytes of its segment */
	unsigned channels;
	uint32_t queue_size;
	const int *extra; /* see wire.h */
	uint32_t flags;	  /* NC_WIRE_POSIX */
};

/*
 * Makes whoever will be at the other end of socket a member, and sends the
 * welcome.  The guest has the socket from then on; on failure it is the
 * caller's.
 */
int nc_serve_offer(struct nc_serve *serve, int socket, const struct nc_serve_offer *offer,
		   struct nc_guest **guest);

/* It runs now, as this process does if it is its child: from here on it may ask. */
int nc_serve_expect(struct nc_serve *serve, struct nc_guest *guest, pid_t pid, int pidfd,
		    bool child);

/* It has ended: its units go, its socket is closed. */
void nc_serve_dismiss(struct nc_serve *serve, struct nc_guest *guest);

struct nc_remote_member *nc_guest_remote(const struct nc_guest *guest);
const struct nc_subject *nc_guest_subject(const struct nc_guest *guest);

#endif
