/* SPDX-License-Identifier: MIT */
/*
 * collector.h - schedules the maintenance of an owner's cache: the descriptors that
 * announce work, and a thread that does it unless the caller's event loop does.
 *
 * Nothing polls periodically.  An eventfd becomes readable when work is due now, a
 * timerfd when work becomes due later; both make the cache's descriptor readable.
 * The thread only loops: it waits for that descriptor, then dispatches.
 */
#ifndef NC_COLLECTOR_H
#define NC_COLLECTOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/maintenance.h"

struct nc_index;
struct nc_serve;

struct nc_collector {
	struct nc_maintenance maintenance;
	int event; /* -1: this process does not own the cache */
	int timer;
	int epoll;		     /* the cache's epoll descriptor */
	pthread_mutex_t step;	     /* protects maintenance and next */
	pthread_mutex_t dispatching; /* held by the thread that dispatches */
	uint64_t next;		     /* expiry time that the timer is set to; 0: none */
	pthread_t thread;
	bool threaded;
	_Atomic bool stop;
	int (*dispatch)(void *context);
	void *context;
};

/*
 * Adds the event sources to the cache's descriptor; does nothing in an attached
 * cache.  Returns 0 or -errno.
 */
int nc_collector_init(struct nc_collector *collector, struct nc_index *index,
		      struct nc_serve *serve, size_t scrub_rate);

/*
 * Starts a thread that calls dispatch whenever the cache's descriptor is readable,
 * until fini.  Returns 0, or -EAGAIN if no thread can be created.
 */
int nc_collector_start(struct nc_collector *collector, int (*dispatch)(void *context),
		       void *context);

/* Waits for the thread to end.  Call it before nc_serve_fini(). */
void nc_collector_fini(struct nc_collector *collector);

/*
 * Does one bounded step of maintenance if work is due; never blocks.  Returns 1 if
 * work was due, 0 if none was or if another thread is doing it.
 */
int nc_collector_step(struct nc_collector *collector);

/*
 * Call these around a dispatch.  The thread waits for its turn.  Callers must not
 * block: false means that another thread is already dispatching the same events.
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
