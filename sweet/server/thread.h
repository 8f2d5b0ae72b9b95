/* SPDX-License-Identifier: MIT */
/*
 * thread.h - a thread that serves: its state (struct thread), its listeners, and how it is
 * started, changed, drained and stopped.
 *
 * Runner 0 is the main thread's, which tells the others what to do by tasks
 * on their loops; only its owner touches what a runner has.
 */
#ifndef SWEET_THREAD_H
#define SWEET_THREAD_H

#include <pthread.h>

#include "backend/worker.h"
#include "conn/listener.h"
#include "core/server.h"
#include "spawn/endpoint.h"

struct server_thread;

/* A listener of an endpoint. */
struct seat {
	struct listener listener; /* must be first */
	struct server_thread *runner;
	struct seat *next;
	unsigned id;	/* the endpoint's */
	bool inherited; /* others go on with the socket */
};

struct server_threads {
	unsigned count;
	unsigned running; /* threads besides the main one; main thread's */
	struct server_thread *all;
};

struct server_thread {
	struct thread thread;
	struct worker_hook workers;
	struct server_threads *siblings;
	struct seat *seats;
	pthread_t handle;
	bool threaded;
	struct loop_task drain, stop, ended, beat;
	struct timer drain_check;
	uint64_t drain_until_ms; /* 0: not yet */
	bool leave_queues;
	_Atomic bool beating; /* has been asked whether it lives, and has not answered */
};

/* A new configuration for one runner, from the main thread. */
struct thread_change {
	struct loop_task task, over;
	struct server_thread *runner;
	struct config *config; /* referenced; becomes the runner's */
	unsigned *gone;	       /* ids of endpoints to be retired */
	unsigned gone_count;
	struct seat **fresh; /* not started; become the runner's */
	unsigned fresh_count;
	/* On the main thread, when the runner has made it its own; frees it. */
	void (*done)(struct thread_change *change);
	void *owner;
};

struct server_threads *server_threads_new(unsigned count);
void server_threads_free(struct server_threads *runners);

/* A seat for the runner's part of an endpoint. */
struct seat *server_thread_seat(struct server_thread *runner, struct endpoint *endpoint);

/* Before the runner's thread runs, or on it.  0 or -errno: the seat is the runner's anyway. */
int server_thread_listen(struct server_thread *runner, struct seat *seat);

/* 0 or -errno. */
int server_thread_start(struct server_thread *runner);

void thread_change(struct thread_change *change);

/*
 * All of them: accept no more, finish what is running, end in time.  Who waits
 * in a queue is let in, unless leave_queues: others have the sockets, and will.
 * Main thread; once.
 */
void server_threads_drain(struct server_threads *runners, bool leave_queues);

/* All of them: end now. */
void server_threads_stop(struct server_threads *runners);

/* Waits for the threads, which have been stopped or drained. */
void server_threads_join(struct server_threads *runners);

/* Whether all have answered the last call of this; asks them again. */
bool server_threads_alive(struct server_threads *runners);

/* After runner's loop has ended: closes its listeners. */
void server_thread_close_seats(struct server_thread *runner);

#endif
