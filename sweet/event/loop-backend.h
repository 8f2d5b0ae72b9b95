/* SPDX-License-Identifier: MIT */
/*
 * loop-backend.h - the interface between loop.c and its backends.
 *
 * Call cycle: loop.c calls a backend by its table, and the backend calls loop.c to
 * report events: accepted, received, a turn.
 *
 * A backend is one const table.  The operations of descriptors are in a table
 * indexed by descriptor, with a generation, to recognise events of a descriptor
 * that was closed meanwhile, and perhaps opened again.
 */
#ifndef SWEET_LOOP_BACKEND_H
#define SWEET_LOOP_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timer.h"
#include "event/loop.h"

struct loop_fd {
	uint32_t generation;
	struct loop_accept *accept;
	struct loop_receive *receive;
	struct loop_send *send; /* waits for the socket to become writable */
	struct loop_watch *watch;
	bool paused;   /* the receive is paused */
	bool stopping; /* the accept is being stopped */
	bool resting;  /* the accept is suspended until loop_accept_next() */
	bool sending;  /* sends may be started on the watched descriptor */
	/* The backend's own: */
	bool registered; /* epoll: added; io_uring: a receive, accept or watch is armed */
	uint8_t armed;	 /* io_uring: which of them (enum type) */
	bool readable;	 /* epoll: readable while paused */
	bool polled;	 /* io_uring: a poll for writability is armed */
	bool resumed;	 /* io_uring: unread bytes may hide a connection error */
	unsigned number; /* io_uring: of the submission that armed it */
	struct uring_send *submitted; /* io_uring: a send whose completion is pending, or NULL */
};

struct loop {
	const struct loop_backend *backend;
	void *state; /* the backend's */
	const struct data_path *path;
	struct loop_fd *fds;
	unsigned fd_count;
	struct list sent;  /* completed sends; callbacks pending */
	struct list turns; /* long sends, continued in the next turn */
	struct timers timers;
	uint64_t seen_ms;   /* what had come until then was reported: timers run up to it */
	uint64_t behind_ms; /* the same, once `behind' more waits are over */
	unsigned behind;    /* 0: none */
	unsigned hold;	    /* until the next wait: see loop_hold_timers(); 0: no */
	struct loop_hook *hooks;
	uint64_t now_ns;
	struct loop_counts counts;
	enum loop_room room;
	bool stopping;
	bool again; /* do not sleep in the next wait */
	/* For other threads: */
	pthread_mutex_t lock;
	struct list posted; /* tasks */
	struct list queued; /* tasks, of which each turn runs some */
	_Atomic bool woken; /* a wake-up is pending, or a task is */
	int wake_fd;
	struct loop_watch wake;
};

struct loop_backend {
	const char *name;
	/* Returns 0, or -errno with the reason in why. */
	int (*open)(struct loop *loop, char *why, size_t why_size);
	void (*close)(struct loop *loop);
	/* Called on the loop's thread before the first wait; may be NULL. */
	void (*enter)(struct loop *loop);
	/* Called on that thread after the last wait; may be NULL. */
	void (*leave)(struct loop *loop);
	/* Starts the accept, receive or watch that was set for fd. */
	int (*begin)(struct loop *loop, int fd);
	/*
	 * A single accept has delivered its connection, or an accept failed: pauses
	 * it until begin().
	 */
	void (*rest)(struct loop *loop, int fd);
	/* Stops the accept of fd; calls loop_accept_stopped() later, after its last result. */
	void (*stop_accept)(struct loop *loop, int fd);
	/* The receive of fd was paused, or resumed. */
	void (*pause)(struct loop *loop, int fd);
	void (*resume)(struct loop *loop, int fd);
	/* The watch of fd was cleared: forgets the descriptor, which stays open. */
	void (*unwatch)(struct loop *loop, int fd);
	/*
	 * Submits the whole message together with others; calls loop_send_submitted() later.
	 * flags: NC_SEND_OP_ZEROCOPY, or 0.  Returns false if it cannot: the loop sends it.
	 * NULL: the backend never can.
	 */
	bool (*send)(struct loop *loop, struct loop_send *op, unsigned flags);
	/* A send on fd waits: calls loop_send_continue() when the socket is writable. */
	void (*await_room)(struct loop *loop, int fd);
	/* All operations of fd were cleared: closes it. */
	void (*close_fd)(struct loop *loop, int fd);
	/*
	 * Sleeps at most timeout ms (-1: without limit), reads the clock, dispatches events.
	 * Returns false if more of what came before may be there: it was interrupted, or full.
	 */
	bool (*wait)(struct loop *loop, int timeout);
};

#define LOOP_EVENTS_MIN 64u /* that a full wait reports, at least */

extern const struct loop_backend loop_uring, loop_epoll;

/* Reads the clock.  Called after each sleep, else events would get the time before it. */
void loop_tick(struct loop *loop);

/* Reports a connection, or an error, of the accept. */
void loop_accepted(struct loop *loop, int fd, int result);

/* Reports that the accept has stopped. */
void loop_accept_stopped(struct loop *loop, int fd);

/*
 * Reports one completed send; backends call it after each event.  What a response used is then free
 * for the next one while it is in the CPU's caches.
 */
void loop_complete_send(struct loop *loop);

/* Continues fd's send: the socket may be writable again. */
void loop_send_continue(struct loop *loop, int fd);

/*
 * Reports the end of a send that the backend submitted: how many bytes were sent, and 0, -errno,
 * or -EAGAIN: the socket is full.
 */
void loop_send_submitted(struct loop *loop, struct loop_send *op, size_t sent, int result);

/* Reports received data; ends the receive before it reports an error. */
void loop_received(struct loop *loop, int fd, const char *data, int length);

#endif
