/* SPDX-License-Identifier: MIT */
/*
 * collector.h - when an owner's maintenance is done: the descriptors that announce
 * it, and the thread that does it unless the caller's own loop does.
 *
 * Nothing polls.  An eventfd says that something is due, a timerfd when
 * something will be; both make the cache's descriptor readable.  The thread
 * is only a loop: wait for that descriptor, dispatch.
 */
#ifndef NC_COLLECTOR_H
#define NC_COLLECTOR_H

#include <pthread.h>

#include "membership/serve.h"
#include "store/maintenance.h"

struct nc_collector {
	struct nc_maintenance maintenance;
	int event; /* -1: not the owner's cache */
	int timer;
	int epoll;		     /* the cache's */
	pthread_mutex_t step;	     /* maintenance and next */
	pthread_mutex_t dispatching; /* one thread at a time dispatches */
	uint64_t next;		     /* what the timer is set to; 0: nothing */
	pthread_t thread;
	bool threaded;
	_Atomic bool stop;
	int (*dispatch)(void *context);
	void *context;
};

/*
 * Watched by the cache's descriptor from here on; in an attached cache nothing.  0 or
 * -errno.
 */
int nc_collector_init(struct nc_collector *collector, struct nc_index *index,
		      struct nc_serve *serve, size_t scrub_rate);

/*
 * A thread that calls dispatch whenever the cache's descriptor is readable,
 * until fini.  0; -EAGAIN: no thread can be had.
 */
int nc_collector_start(struct nc_collector *collector, int (*dispatch)(void *context),
		       void *context);

/* Waits for the thread to end.  Before the server's fini. */
void nc_collector_fini(struct nc_collector *collector);

/*
 * One bounded step, if something is due; never waits.  1: something was due;
 * 0: nothing, or another thread is at it.
 */
int nc_collector_step(struct nc_collector *collector);

/*
 * Around a dispatch: the thread waits for its turn, callers (who must not
 * block) are told that somebody else dispatches what they came for.
 */
static inline bool nc_collector_enter(struct nc_collector *collector)
{
	return pthread_mutex_trylock(&collector->dispatching) == 0;
}

static inline void nc_collector_leave(struct nc_collector *collector)
{
	pthread_mutex_unlock(&collector->dispatching);
}

#endif
