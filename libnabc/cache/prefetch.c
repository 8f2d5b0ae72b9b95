/* SPDX-License-Identifier: MIT */
/*
 * prefetch.c - a thread that imports units for callers that must not wait; see
 * prefetch.h.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cache/import.h"
#include "cache/prefetch.h"
#include "os/queue.h"
#include "os/thread.h"
#include "wire/rpc-client.h"

void nc_prefetch_init(struct nc_prefetch *prefetch, struct nc_imports *imports)
{
	*prefetch = (struct nc_prefetch){.imports = imports, .event = -1};
	pthread_mutex_init(&prefetch->lock, NULL);
	pthread_cond_init(&prefetch->wanted, NULL);
}

static struct nc_prefetched *find_locked(struct nc_prefetch *prefetch, size_t id)
{
	for (unsigned i = 0; i < NC_PREFETCH_MAX; i++)
		if (prefetch->units[i].id == id)
			return &prefetch->units[i];
	return NULL;
}

/* The oldest request that is done, or that is not; NULL: none. */
static struct nc_prefetched *oldest_locked(struct nc_prefetch *prefetch, bool done)
{
	struct nc_prefetched *oldest = NULL;

	for (unsigned i = 0; i < NC_PREFETCH_MAX; i++) {
		struct nc_prefetched *unit = &prefetch->units[i];

		if (unit->id && unit->done == done && (!oldest || unit->number < oldest->number))
			oldest = unit;
	}
	return oldest;
}

/* --- the thread ---------------------------------------------------------------- */

static void answer_locked(struct nc_prefetch *prefetch, struct nc_prefetched *wanted)
{
	size_t id = wanted->id;
	struct nc_unit *unit = NULL;
	int error;

	prefetch->calling = true;
	pthread_mutex_unlock(&prefetch->lock);
	error = nc_imports_hold(prefetch->imports, id, false, &unit);
	pthread_mutex_lock(&prefetch->lock);
	prefetch->calling = false;
	/* Only requests that are done are ever dropped: this one is still in its place. */
	wanted->done = true;
	wanted->error = error;
	wanted->unit = unit;
	nc_doorbell_ring(prefetch->event);
}

static void *prefetch_run(void *context)
{
	struct nc_prefetch *prefetch = context;

	pthread_mutex_lock(&prefetch->lock);
	while (!prefetch->ending) {
		struct nc_prefetched *wanted = oldest_locked(prefetch, false);

		if (wanted)
			answer_locked(prefetch, wanted);
		else
			pthread_cond_wait(&prefetch->wanted, &prefetch->lock);
	}
	pthread_mutex_unlock(&prefetch->lock);
	return NULL;
}

static int open_event_locked(struct nc_prefetch *prefetch)
{
	int event = prefetch->event < 0 ? nc_doorbell_open() : prefetch->event;

	if (event < 0)
		return event;
	prefetch->event = event;
	return 0;
}

static int start_locked(struct nc_prefetch *prefetch)
{
	int error = open_event_locked(prefetch);

	if (error || prefetch->running)
		return error;
	error = nc_thread_start(&prefetch->thread, "nabc-prefetch", prefetch_run, prefetch);
	prefetch->running = !error;
	return error;
}

/* --- the callers ------------------------------------------------------------------ */

int nc_prefetch_fd(struct nc_prefetch *prefetch)
{
	int error;

	pthread_mutex_lock(&prefetch->lock);
	error = open_event_locked(prefetch);
	pthread_mutex_unlock(&prefetch->lock);
	return error ? error : prefetch->event;
}

int nc_prefetch_drain(struct nc_prefetch *prefetch)
{
	uint64_t count;
	int event;

	pthread_mutex_lock(&prefetch->lock);
	event = prefetch->event;
	pthread_mutex_unlock(&prefetch->lock);
	return event >= 0 && read(event, &count, sizeof(count)) == sizeof(count);
}

/* A free place, that of the oldest request that nobody collected, or NULL. */
static struct nc_prefetched *place_locked(struct nc_prefetch *prefetch)
{
	struct nc_prefetched *place = find_locked(prefetch, 0);

	if (place)
		return place;
	place = oldest_locked(prefetch, true);
	if (place && !place->error)
		(void)nc_imports_release(prefetch->imports, place->id);
	return place;
}

static int request_locked(struct nc_prefetch *prefetch, size_t id)
{
	struct nc_prefetched *place = place_locked(prefetch);
	int error;

	if (!place)
		return -ENOBUFS;
	*place = (struct nc_prefetched){0};
	error = start_locked(prefetch);
	if (error)
		return error;
	*place = (struct nc_prefetched){.id = id, .number = ++prefetch->requests};
	pthread_cond_signal(&prefetch->wanted);
	return -EAGAIN;
}

int nc_prefetch_hold(struct nc_prefetch *prefetch, size_t id, struct nc_unit **unit)
{
	struct nc_prefetched *asked;
	int error = -EAGAIN;

	pthread_mutex_lock(&prefetch->lock);
	asked = find_locked(prefetch, id);
	if (asked && asked->done) {
		/* The hold goes to the caller. */
		error = asked->error;
		*unit = asked->unit;
		*asked = (struct nc_prefetched){0};
	} else if (!asked) {
		error = nc_imports_hold_known(prefetch->imports, id, unit);
		if (error == -EAGAIN)
			error = request_locked(prefetch, id);
	}
	pthread_mutex_unlock(&prefetch->lock);
	return error;
}

void nc_prefetch_fini(struct nc_prefetch *prefetch)
{
	pthread_mutex_lock(&prefetch->lock);
	prefetch->ending = true;
	pthread_cond_signal(&prefetch->wanted);
	/* Ends the wait for a reply. */
	if (prefetch->calling)
		(void)shutdown(prefetch->imports->rpc->socket, SHUT_RD);
	pthread_mutex_unlock(&prefetch->lock);
	if (prefetch->running)
		pthread_join(prefetch->thread, NULL);
	for (unsigned i = 0; i < NC_PREFETCH_MAX; i++)
		if (prefetch->units[i].done && !prefetch->units[i].error)
			(void)nc_imports_release(prefetch->imports, prefetch->units[i].id);
	if (prefetch->event >= 0)
		close(prefetch->event);
	pthread_cond_destroy(&prefetch->wanted);
	pthread_mutex_destroy(&prefetch->lock);
}
