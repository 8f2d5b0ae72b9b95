/* SPDX-License-Identifier: MIT */
/*
 * listener.h - a thread's end of an address that is listened on: turns what
 * its socket accepts into connections.  One thread.
 */
#ifndef SWEET_LISTENER_H
#define SWEET_LISTENER_H

#include "core/server.h"

struct listener {
	struct loop_accept accept;
	struct thread *thread;
	int fd;		    /* -1: closed */
	int reserve;	    /* given up for a moment when descriptors run out; -1: others have it */
	uint64_t logged_ms; /* when that was last said */
	struct timer rest;
	bool leave_queue;
	void (*retired)(struct listener *listener);
};

/*
 * The socket is the listener's from here on.  single: it rests after each
 * connection until listener_next().  0 or -errno.
 */
int listener_start(struct listener *listener, struct thread *thread, int fd, bool single);

/* Of those that rest; without a meaning for others. */
void listener_next(struct listener *listener);

/* Sets the options of its socket as the thread's present configuration says. */
void listener_tune(struct listener *listener);

/*
 * Accepts no more, and closes the socket when who waits in its queue has
 * become a connection; then retired() is called.  leave_queue: others have
 * the same socket and will see to them.
 */
void listener_retire(struct listener *listener, bool leave_queue,
		     void (*retired)(struct listener *listener));

/* At once; whoever waits is lost.  retired() is not called.  Twice is fine. */
void listener_close(struct listener *listener);

#endif
