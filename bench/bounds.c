/* SPDX-License-Identifier: MIT */
/*
 * bounds.c - the hits of a cache that knows all requests in advance; see simulate.h.
 * One thread; each call owns what it makes and frees it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "requests.h"
#include "simulate.h"

/* --- Belady: a heap, the farthest next request first --------------------- */

struct future {
	const struct requests *requests;
	uint32_t *next;	 /* request of each object */
	uint32_t *heap;	 /* objects */
	uint32_t *place; /* of each object in the heap, or NEVER */
	uint32_t count;
};

static void put(struct future *future, uint32_t place, uint32_t object)
{
	future->heap[place] = object;
	future->place[object] = place;
}

static void settle(struct future *future, uint32_t object)
{
	uint32_t place = future->place[object], *next = future->next;

	while (place && next[future->heap[(place - 1) / 2]] < next[object]) {
		put(future, place, future->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	for (;;) {
		uint32_t below = 2 * place + 1;

		if (below + 1 < future->count &&
		    next[future->heap[below + 1]] > next[future->heap[below]])
			below++;
		if (below >= future->count || next[future->heap[below]] <= next[object])
			break;
		put(future, place, future->heap[below]);
		place = below;
	}
	put(future, place, object);
}

static void drop(struct future *future, uint32_t object)
{
	uint32_t place = future->place[object];
	uint32_t last = future->heap[--future->count];

	future->place[object] = NEVER;
	if (last == object)
		return;
	put(future, place, last);
	settle(future, last);
}

static void replay(struct future *future, uint64_t size, struct result *result)
{
	const struct requests *requests = future->requests;
	uint64_t used = 0;

	for (uint32_t i = 0; i < requests->count; i++) {
		uint32_t object = requests->object[i];

		future->next[object] = requests->next[i];
		if (future->place[object] != NEVER) {
			result->hits++;
			result->hit_bytes += requests->size[object];
		} else if (simulate_takes(size, requests->size[object])) {
			future->place[object] = future->count++;
			used += requests->size[object];
		} else {
			continue;
		}
		settle(future, object);
		/* The new one is evicted at once if its next request is the farthest. */
		while (used > size || (future->count && future->next[future->heap[0]] == NEVER)) {
			used -= requests->size[future->heap[0]];
			drop(future, future->heap[0]);
			result->evictions++;
		}
	}
}

int simulate_belady(const struct requests *requests, uint64_t size, struct result *result)
{
	size_t bytes = (requests->objects + 1ul) * sizeof(uint32_t);
	struct future future = {.requests = requests,
				.next = malloc(bytes),
				.heap = malloc(bytes),
				.place = malloc(bytes)};
	int error = future.next && future.heap && future.place ? 0 : -ENOMEM;

	*result = (struct result){0};
	for (uint32_t i = 0; !error && i < requests->objects; i++)
		future.place[i] = NEVER;
	if (!error)
		replay(&future, size, result);
	free(future.next);
	free(future.heap);
	free(future.place);
	return error;
}

/* --- PFOO-L -------------------------------------------------------------- */

struct interval {
	uint64_t bytes;
	uint32_t length; /* requests */
};

static int by_space_time(const void *left, const void *right)
{
	const struct interval *a = left, *b = right;
	double x = (double)a->bytes * a->length, y = (double)b->bytes * b->length;

	return (x > y) - (x < y);
}

static int by_length(const void *left, const void *right)
{
	const struct interval *a = left, *b = right;

	return (a->length > b->length) - (a->length < b->length);
}

/* Takes intervals in order; the first one that does not fit completely counts as if it did. */
static void take(const struct interval *intervals, uint32_t count, double space_time,
		 uint64_t *hits, uint64_t *bytes)
{
	*hits = *bytes = 0;
	for (uint32_t i = 0; i < count && space_time > 0; i++) {
		space_time -= (double)intervals[i].bytes * intervals[i].length;
		++*hits;
		*bytes += intervals[i].bytes;
	}
}

int simulate_bound(const struct requests *requests, uint64_t size, struct result *result)
{
	struct interval *intervals = malloc((requests->count + 1ul) * sizeof(intervals[0]));
	double space_time = (double)size * requests->count;
	uint64_t ignored;
	uint32_t count = 0;

	*result = (struct result){0};
	if (!intervals)
		return -ENOMEM;
	for (uint32_t i = 0; i < requests->count; i++) {
		uint64_t bytes = requests->size[requests->object[i]];

		if (requests->next[i] == NEVER || !simulate_takes(size, bytes))
			continue;
		intervals[count++] =
			(struct interval){.bytes = bytes, .length = requests->next[i] - i};
	}
	qsort(intervals, count, sizeof(intervals[0]), by_space_time);
	take(intervals, count, space_time, &result->hits, &ignored);
	qsort(intervals, count, sizeof(intervals[0]), by_length);
	take(intervals, count, space_time, &ignored, &result->hit_bytes);
	free(intervals);
	return 0;
}
