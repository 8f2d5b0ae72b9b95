/* SPDX-License-Identifier: MIT */
/* evictions.c - a bounded queue of units, and the callback that gets them; see evictions.h. */
#include <errno.h>
#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "cache/evictions.h"

/* The thread that dispatches has other work, too. */
#define REPORTED_AT_ONCE 64u

struct nc_evicted {
	size_t id;
	size_t size;
	enum NC_eviction why;
};

void nc_evictions_init(struct nc_evictions *evictions)
{
	pthread_mutexattr_t checks;

	*evictions = (struct nc_evictions){.callback = NULL};
	pthread_mutexattr_init(&checks);
	/* The callback must not wait for itself. */
	pthread_mutexattr_settype(&checks, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&evictions->calling, &checks);
	pthread_mutexattr_destroy(&checks);
	pthread_mutex_init(&evictions->lock, NULL);
}

void nc_evictions_fini(struct nc_evictions *evictions)
{
	free(evictions->queue);
	pthread_mutex_destroy(&evictions->lock);
	pthread_mutex_destroy(&evictions->calling);
}

/* Exchanges the callback; returns the queue that is no longer needed, or NULL. */
static struct nc_evicted *exchange(struct nc_evictions *evictions, NC_evicted callback,
				   void *context, struct nc_evicted *queue)
{
	struct nc_evicted *surplus = queue;

	pthread_mutex_lock(&evictions->lock);
	evictions->callback = callback;
	evictions->context = context;
	if (!callback || !evictions->queue) {
		surplus = evictions->queue;
		evictions->queue = queue;
		evictions->first = evictions->count = 0;
		evictions->lost = false;
	}
	pthread_mutex_unlock(&evictions->lock);
	return surplus;
}

int nc_evictions_set(struct nc_evictions *evictions, NC_evicted callback, void *context)
{
	struct nc_evicted *queue = NULL;

	if (callback) {
		queue = calloc(NC_EVICTIONS_MAX, sizeof(*queue));
		if (!queue)
			return -ENOMEM;
	}
	if (pthread_mutex_lock(&evictions->calling)) {
		free(queue);
		return -EDEADLK;
	}
	queue = exchange(evictions, callback, context, queue);
	pthread_mutex_unlock(&evictions->calling);
	free(queue);
	return 0;
}

void nc_evictions_add(struct nc_evictions *evictions, size_t id, size_t size, enum NC_eviction why)
{
	pthread_mutex_lock(&evictions->lock);
	/* After one that is lost, all are until that is reported: so they are in order. */
	if (evictions->count == NC_EVICTIONS_MAX)
		evictions->lost = true;
	else if (evictions->queue && !evictions->lost)
		evictions->queue[(evictions->first + evictions->count++) % NC_EVICTIONS_MAX] =
			(struct nc_evicted){.id = id, .size = size, .why = why};
	pthread_mutex_unlock(&evictions->lock);
}

/* Takes the next one; false: there is none. */
static bool take(struct nc_evictions *evictions, struct nc_evicted *next)
{
	bool found = true;

	pthread_mutex_lock(&evictions->lock);
	if (evictions->count) {
		*next = evictions->queue[evictions->first];
		evictions->first = (evictions->first + 1) % NC_EVICTIONS_MAX;
		evictions->count--;
	} else if (evictions->lost) {
		*next = (struct nc_evicted){.why = NC_EVICTION_LOST};
		evictions->lost = false;
	} else {
		found = false;
	}
	pthread_mutex_unlock(&evictions->lock);
	return found;
}

bool nc_evictions_report(struct nc_evictions *evictions)
{
	struct nc_evicted next;
	bool found = true;

	for (unsigned i = 0; found && i < REPORTED_AT_ONCE; i++) {
		/* One by one, so that nc_evictions_set() waits for one call only. */
		if (pthread_mutex_lock(&evictions->calling))
			return false;
		found = take(evictions, &next);
		if (found)
			evictions->callback(evictions->context, next.id, next.size, next.why);
		pthread_mutex_unlock(&evictions->calling);
	}
	return found;
}
