/* SPDX-License-Identifier: MIT */
/*
 * evictions.h - reports to the owner's program which units the program did not end itself:
 * see NC_cache_on_evict().
 *
 * Units end under locks of the library, in threads that may hold locks of the program.  So
 * what has ended is queued there, and the callback is called later, by the thread that
 * dispatches, without a lock but the one that nc_evictions_set() waits for.
 */
#ifndef NC_EVICTIONS_H
#define NC_EVICTIONS_H

#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NC_EVICTIONS_MAX 16384u /* units that wait for the callback */

struct nc_evicted;

struct nc_evictions {
	pthread_mutex_t calling; /* held while the callback runs; taken before lock */
	NC_evicted callback;	 /* NULL: none; changed under both locks */
	void *context;
	pthread_mutex_t lock;	  /* protects all below; no other lock is taken with it */
	struct nc_evicted *queue; /* a ring; NULL: there is no callback */
	uint32_t first, count;
	bool lost; /* units that did not fit, after those in the queue */
};

void nc_evictions_init(struct nc_evictions *evictions);
void nc_evictions_fini(struct nc_evictions *evictions);

/*
 * Replaces the callback; NULL: none, and what is queued is forgotten.  Waits for the callback
 * if it is running.  Returns 0, -ENOMEM, or -EDEADLK (called by the callback).
 */
int nc_evictions_set(struct nc_evictions *evictions, NC_evicted callback, void *context);

/* Queues a unit.  Any thread, with any lock but those above. */
void nc_evictions_add(struct nc_evictions *evictions, size_t id, size_t size, enum NC_eviction why);

/* Calls the callback for some of the units.  Returns true if there are more. */
bool nc_evictions_report(struct nc_evictions *evictions);

#endif
