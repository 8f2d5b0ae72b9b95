/* SPDX-License-Identifier: MIT */
/*
 * listener.h - a thread's part of a listening address: makes connections of the sockets that it
 * accepts.  It belongs to one thread.
 */
#ifndef SWEET_LISTENER_H
#define SWEET_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/timer.h"
#include "event/loop.h"

struct thread;

struct listener {
	struct loop_accept accept;
	struct thread *thread;
	int fd; /* -1: closed */
	/* closed temporarily when descriptors run out; -1: another thread has taken it */
	int reserve;
	uint64_t logged_ms; /* when that was last logged */
	struct timer rest;
	bool leave_queue;
	bool tls;	  /* clients begin with a handshake */
	bool status_only; /* the status pages are all that they get */
	void (*retired)(struct listener *listener);
};

/*
 * Starts a listener, which takes over the socket. single: it pauses after each connection until
 * listener_next(); its tls and status_only must be set.  Returns 0 or -errno.
 */
int listener_start(struct listener *listener, struct thread *thread, int fd, bool single);

/* Resumes a listener that pauses; does nothing for others. */
void listener_next(struct listener *listener);

/* Sets the options of its socket from the thread's current configuration. */
void listener_tune(struct listener *listener);

/*
 * Stops accepting; closes the socket when the clients in its queue have become connections, and
 * then calls retired(). leave_queue: other processes share the socket and will serve the queue.
 */
void listener_retire(struct listener *listener, bool leave_queue,
		     void (*retired)(struct listener *listener));

/* Closes the socket at once, without retired(); clients in its queue are lost.  Idempotent. */
void listener_close(struct listener *listener);

#endif
