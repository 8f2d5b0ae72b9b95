/* SPDX-License-Identifier: MIT */
/*
 * thread.h - a thread that serves: its state (struct thread), its listeners, and how it is started,
 * changed, drained and stopped.
 *
 * Thread 0 is the main thread, which controls the others by tasks on their loops; only the owner
 * accesses the state of a thread.
 */
#ifndef SWEET_THREAD_H
#define SWEET_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timer.h"
#include "conn/listener.h"
#include "core/server.h"
#include "event/loop.h"

struct server_thread;
struct endpoint;
struct site;

/* A listener of an endpoint. */
struct seat {
	struct listener listener;
	struct server_thread *runner;
	struct list_node node;
	unsigned id;	/* of the endpoint */
	bool inherited; /* other processes continue to use the socket */
};

struct server_threads {
	unsigned count;
	unsigned running; /* threads besides the main one; of the main thread */
	struct server_thread *all;
};

struct server_thread {
	struct thread thread;
	struct server_threads *siblings;
	struct list seats;
	pthread_t handle;
	bool threaded;
	struct loop_task drain, stop, ended, beat;
	struct timer drain_check;
	uint64_t drain_until_ms; /* 0: not draining */
	bool leave_queues;
	_Atomic bool beating; /* the watchdog's last call has not been answered */
};

/* A new configuration for one thread, from the main thread. */
struct thread_change {
	struct loop_task task, over;
	struct server_thread *runner;
	struct site *site; /* a reference, which the thread takes over */
	unsigned *gone;	   /* ids of endpoints to retire */
	unsigned gone_count;
	struct seat **fresh; /* not started; the thread takes them over */
	unsigned fresh_count;
	unsigned *tls; /* ids of endpoints whose clients use TLS */
	unsigned tls_count;
	unsigned *status_only; /* ids of endpoints for the status alone */
	unsigned status_only_count;
	/* Called on the main thread when the thread has taken the change over; frees it. */
	void (*done)(struct thread_change *change);
	void *owner;
};

struct server_threads *server_threads_new(unsigned count);
void server_threads_free(struct server_threads *runners);

/* Makes a seat for the thread's part of an endpoint. */
struct seat *server_thread_seat(struct server_thread *runner, struct endpoint *endpoint);

/* Call it before the thread runs, or on it.  0 or -errno; the thread owns the seat anyway. */
int server_thread_listen(struct server_thread *runner, struct seat *seat);

/* Returns 0 or -errno. */
int server_thread_start(struct server_thread *runner);

void thread_change(struct thread_change *change);

/*
 * Drains all threads: they accept no more, finish their requests, and end in time.  Clients in a
 * queue are accepted, unless leave_queues: then other processes have the sockets and will serve
 * them.  Main thread; once.
 */
void server_threads_drain(struct server_threads *runners, bool leave_queues);

/* Ends all threads now. */
void server_threads_stop(struct server_threads *runners);

/* Waits for the end of all threads, which have been stopped or drained. */
void server_threads_join(struct server_threads *runners);

/* Whether all threads have answered the previous call; calls them again. */
bool server_threads_alive(struct server_threads *runners);

/* Call it after the thread's loop has ended: closes its listeners. */
void server_thread_close_seats(struct server_thread *runner);

#endif
