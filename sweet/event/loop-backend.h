/* SPDX-License-Identifier: MIT */
/*
 * loop-backend.h - what loop.c and the mechanisms behind it share.
 *
 * Call cycle: loop.c calls a backend by its table, and the backend calls loop.c for what
 * has happened: accepted, received, a turn.
 *
 * A backend is one const table.  Descriptors' operations stand in a table by
 * number with a generation, so that an event for a descriptor that has been
 * closed meanwhile, and perhaps opened again, is recognised.
 */
#ifndef SWEET_LOOP_BACKEND_H
#define SWEET_LOOP_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>

#include "event/loop.h"

struct loop_fd {
	uint32_t generation;
	struct loop_accept *accept;
	struct loop_receive *receive;
	struct loop_send *send; /* waiting for room */
	struct loop_watch *watch;
	bool paused;   /* the receive is */
	bool stopping; /* the accept is */
	bool resting;  /* the accept is, until the next is asked for */
	bool sending;  /* sends may be started on what is watched */
	/* The backend's own: */
	bool registered; /* epoll: added; io_uring: a receive, accept or watch is armed */
	uint8_t armed;	 /* io_uring: which of them */
	bool readable;	 /* epoll: readable while paused */
	bool polled;	 /* io_uring: a poll for room is armed */
	bool resumed;	 /* io_uring: bytes may hide that the connection has broken */
};

struct loop {
	const struct loop_backend *backend;
	void *state; /* the backend's */
	const struct data_path *path;
	struct loop_fd *fds;
	unsigned fd_count;
	struct loop_send *sent_first, **sent_last;   /* completed, to be told */
	struct loop_send *turns_first, **turns_last; /* long ones, that go on in the next turn */
	struct timers timers;
	struct loop_hook *hooks;
	uint64_t now_ns;
	enum loop_room room;
	bool stopping;
	bool again; /* do not sleep in the next wait */
	/* From other threads: */
	pthread_mutex_t lock;
	struct loop_task *posted_first, **posted_last;
	_Atomic bool woken; /* the wake-up is on its way */
	int wake_fd;
	struct loop_watch wake;
};

struct loop_backend {
	const char *name;
	/* 0, or -errno with the reason in why. */
	int (*open)(struct loop *loop, char *why, size_t why_size);
	void (*close)(struct loop *loop);
	/* On the thread that will run the loop, before the first wait; may be NULL. */
	void (*enter)(struct loop *loop);
	/* On that thread, after the last wait; may be NULL. */
	void (*leave)(struct loop *loop);
	/* The fd's accept, receive or watch has been set: begin. */
	int (*begin)(struct loop *loop, int fd);
	/* A single accept has its connection, or one failed: no more until begin(). */
	void (*rest)(struct loop *loop, int fd);
	/* Its accept is to end: tell loop_accept_stopped() later, when nothing more comes of it. */
	void (*stop_accept)(struct loop *loop, int fd);
	/* Its receive has been paused, or resumed. */
	void (*pause)(struct loop *loop, int fd);
	void (*resume)(struct loop *loop, int fd);
	/* Its watch has been cleared: forget the descriptor, which stays open. */
	void (*unwatch)(struct loop *loop, int fd);
	/* Its send waits for room: tell loop_send_continue() when there is some. */
	void (*await_room)(struct loop *loop, int fd);
	/* All operations are cleared: close it. */
	void (*close_fd)(struct loop *loop, int fd);
	/* Sleeps at most timeout ms (-1: for ever), reads the clock, dispatches what came. */
	void (*wait)(struct loop *loop, int timeout);
};

extern const struct loop_backend loop_uring, loop_epoll;

/* Reads the clock: after each sleep, or what came would seem as old as the sleep. */
void loop_tick(struct loop *loop);

/* A connection or an error came of the accept. */
void loop_accepted(struct loop *loop, int fd, int result);

/* The accept is over. */
void loop_accept_stopped(struct loop *loop, int fd);

/* There may be room for fd's send again. */
void loop_send_continue(struct loop *loop, int fd);

/* An error ends the receive before it is told. */
void loop_received(struct loop *loop, int fd, const char *data, int length);

#endif
