/* SPDX-License-Identifier: MIT */
/*
 * runner.h - a thread that serves: its server, its listeners, and how it is
 * started, changed, drained and stopped.
 *
 * Runner 0 is the main thread's, which tells the others what to do by tasks
 * on their loops; only its owner touches what a runner has.
 */
#ifndef SWEET_RUNNER_H
#define SWEET_RUNNER_H

#include <pthread.h>

#include "backend/worker.h"
#include "conn/listener.h"
#include "core/server.h"
#include "spawn/endpoint.h"

struct runner;

/* A listener of an endpoint. */
struct seat {
	struct listener listener; /* must be first */
	struct runner *runner;
	struct seat *next;
	unsigned id;	/* the endpoint's */
	bool inherited; /* others go on with the socket */
};

struct runners {
	unsigned count;
	unsigned running; /* threads besides the main one; main thread's */
	struct runner *all;
};

struct runner {
	struct server server;
	struct worker_hook workers;
	struct runners *siblings;
	struct seat *seats;
	pthread_t thread;
	bool threaded;
	struct loop_task drain, stop, ended, beat;
	struct timer drain_check;
	uint64_t drain_until_ms; /* 0: not yet */
	bool leave_queues;
	_Atomic bool beating; /* has been asked whether it lives, and has not answered */
};

/* A new configuration for one runner, from the main thread. */
struct runner_change {
	struct loop_task task, over;
	struct runner *runner;
	struct config *config; /* referenced; becomes the runner's */
	unsigned *gone;	       /* ids of endpoints to be retired */
	unsigned gone_count;
	struct seat **fresh; /* not started; become the runner's */
	unsigned fresh_count;
	/* On the main thread, when the runner has made it its own; frees it. */
	void (*done)(struct runner_change *change);
	void *owner;
};

struct runners *runners_new(unsigned count);
void runners_free(struct runners *runners);

/* A seat for the runner's part of an endpoint. */
struct seat *runner_seat(struct runner *runner, struct endpoint *endpoint);

/* Before the runner's thread runs, or on it.  0 or -errno: the seat is the runner's anyway. */
int runner_listen(struct runner *runner, struct seat *seat);

/* 0 or -errno. */
int runner_start(struct runner *runner);

void runner_change(struct runner_change *change);

/*
 * All of them: accept no more, finish what is running, end in time.  Who waits
 * in a queue is let in, unless leave_queues: others have the sockets, and will.
 * Main thread; once.
 */
void runners_drain(struct runners *runners, bool leave_queues);

/* All of them: end now. */
void runners_stop(struct runners *runners);

/* Waits for the threads, which have been stopped or drained. */
void runners_join(struct runners *runners);

/* Whether all have answered the last call of this; asks them again. */
bool runners_alive(struct runners *runners);

/* After runner's loop has ended: closes its listeners. */
void runner_close_seats(struct runner *runner);

#endif
