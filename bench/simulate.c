/* SPDX-License-Identifier: MIT */
/*
 * simulate.c - the library's replacement on a list of requests, object by
 * object and by segments; see simulate.h.  One thread; each call owns what it
 * makes and frees it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "policy/cleaning.h"
#include "policy/replacement.h"

#include "simulate.h"

/* Like member.c, which chooses the size of segments. */
#define SEGMENT_MIN ((uint64_t)256 << 10)
#define SEGMENT_MAX ((uint64_t)8 << 20)
#define PAGE 4096u

#define NONE UINT32_MAX

struct object {
	struct nc_replaceable order; /* first: a victim is its object */
	uint64_t bytes;		     /* of memory */
	bool cached;
	uint32_t segment;
	uint32_t next; /* in the segment */
};

struct segment {
	uint64_t size, filled; /* size 0: not open */
	uint64_t opened;
	uint32_t first; /* its objects */
	uint32_t count;
};

struct cache {
	const struct simulation *how;
	struct nc_replacement order;
	struct object *objects;
	uint64_t used;
	struct result *result;
	/* With segments: */
	uint64_t segment_size;
	struct segment *segments;
	uint32_t room; /* in segments[] */
	uint32_t newest;
	uint64_t openings;
	struct nc_cleaning_unit *units;
	struct nc_cleaning_segment *weighed;
	uint32_t *numbers; /* the segment of each weighed one */
};

static int cache_init(struct cache *cache, const struct requests *requests,
		      const struct simulation *how, struct result *result)
{
	*result = (struct result){0};
	*cache = (struct cache){.how = how, .result = result, .newest = NONE};
	cache->objects = calloc(requests->objects + 1ul, sizeof(cache->objects[0]));
	if (!cache->objects)
		return -ENOMEM;
	for (uint32_t i = 0; i < requests->objects; i++)
		cache->objects[i].bytes =
			(requests->size[i] + how->grain - 1) / how->grain * how->grain;
	return nc_replacement_init(&cache->order, how->policy);
}

static void cache_fini(struct cache *cache)
{
	nc_replacement_fini(&cache->order);
	free(cache->objects);
	free(cache->segments);
	free(cache->units);
	free(cache->weighed);
	free(cache->numbers);
}

static void evict(struct cache *cache, struct object *object)
{
	nc_replacement_remove(&cache->order, &object->order);
	object->cached = false;
	cache->result->evictions++;
}

static int replay(struct cache *cache, const struct requests *requests,
		  int (*insert)(struct cache *cache, struct object *object))
{
	int error = 0;

	for (uint32_t i = 0; !error && i < requests->count; i++) {
		uint32_t number = requests->object[i];
		struct object *object = &cache->objects[number];

		if (object->cached) {
			nc_replacement_use(&cache->order, &object->order);
			cache->result->hits++;
			cache->result->hit_bytes += requests->size[number];
		} else if (simulate_takes(cache->how->size, requests->size[number])) {
			error = insert(cache, object);
		}
	}
	return error;
}

/* --- object by object ---------------------------------------------------- */

static bool any(struct nc_replaceable *entry, void *context)
{
	(void)entry;
	(void)context;
	return true;
}

static int insert_single(struct cache *cache, struct object *object)
{
	while (cache->used + object->bytes > cache->how->size) {
		struct object *victim =
			(struct object *)nc_replacement_victim(&cache->order, any, NULL);

		cache->used -= victim->bytes;
		evict(cache, victim);
	}
	cache->used += object->bytes;
	object->cached = true;
	return nc_replacement_add(&cache->order, &object->order, object->bytes);
}

int simulate_single(const struct requests *requests, const struct simulation *how,
		    struct result *result)
{
	struct cache cache;
	int error = cache_init(&cache, requests, how, result);

	if (!error)
		error = replay(&cache, requests, insert_single);
	cache_fini(&cache);
	return error;
}

/* --- by segments --------------------------------------------------------- */

static bool place(struct cache *cache, struct object *object, uint32_t number)
{
	struct segment *segment = &cache->segments[number];

	if (object->bytes > segment->size - segment->filled)
		return false;
	segment->filled += object->bytes;
	segment->count++;
	object->segment = number;
	object->next = segment->first;
	segment->first = (uint32_t)(object - cache->objects);
	return true;
}

static bool open_segment(struct cache *cache, uint64_t size, uint32_t *number)
{
	if (cache->used + size > cache->how->size)
		return false;
	for (*number = 0; cache->segments[*number].size; ++*number)
		;
	cache->used += size;
	cache->segments[*number] =
		(struct segment){.size = size, .opened = cache->openings++, .first = NONE};
	return true;
}

static uint32_t list_units(struct cache *cache, const struct segment *segment)
{
	uint32_t count = 0;

	for (uint32_t i = segment->first; i != NONE; i = cache->objects[i].next) {
		struct object *object = &cache->objects[i];

		cache->units[count++] = (struct nc_cleaning_unit){
			.worth = nc_replacement_worth(&cache->order, &object->order),
			.bytes = object->bytes,
			.slot = i,
		};
	}
	return count;
}

/* Returns how much compaction of a segment may copy: nothing if it contains one large object. */
static uint64_t bound_of(const struct cache *cache, const struct segment *segment)
{
	return segment->size == cache->segment_size
		       ? nc_cleaning_bound(segment->size, cache->how->limit)
		       : 0;
}

static bool copy(struct cache *cache, struct object *object)
{
	if (cache->newest != NONE && place(cache, object, cache->newest))
		return true;
	return open_segment(cache, cache->segment_size, &cache->newest) &&
	       place(cache, object, cache->newest);
}

static void clean(struct cache *cache, uint32_t number)
{
	struct segment *segment = &cache->segments[number];
	uint32_t count = list_units(cache, segment);

	(void)nc_cleaning_survivors(cache->units, count, bound_of(cache, segment));
	if (cache->newest == number)
		cache->newest = NONE;
	cache->result->cleaned++;
	for (uint32_t i = 0; i < count; i++) {
		struct object *object = &cache->objects[cache->units[i].slot];
		bool survives = cache->units[i].survives && copy(cache, object);

		nc_replacement_judged(&cache->order, &object->order, survives);
		if (survives)
			cache->result->copied += object->bytes;
		else
			evict(cache, object);
	}
	cache->used -= segment->size;
	segment->size = 0;
}

/* Returns false if nothing is left to compact. */
static bool clean_one(struct cache *cache)
{
	uint32_t found = 0;
	int pick;

	for (uint32_t i = 0; i < cache->room; i++) {
		struct segment *segment = &cache->segments[i];

		if (!segment->size || i == cache->newest)
			continue;
		cache->weighed[found].size = segment->size;
		cache->weighed[found].opened = segment->opened;
		nc_cleaning_weigh(&cache->weighed[found], cache->units, list_units(cache, segment),
				  bound_of(cache, segment));
		cache->numbers[found++] = i;
	}
	pick = nc_cleaning_pick(cache->weighed, found);
	if (pick < 0)
		return false;
	clean(cache, cache->numbers[pick]);
	return true;
}

static int insert_segmented(struct cache *cache, struct object *object)
{
	bool alone = object->bytes > cache->segment_size / 2;
	uint64_t size = alone ? object->bytes : cache->segment_size;
	uint32_t number = NONE;
	int error;

	if (alone || cache->newest == NONE || !place(cache, object, cache->newest)) {
		while (!open_segment(cache, size, &number))
			if (!clean_one(cache))
				return 0;
		(void)place(cache, object, number);
		if (!alone)
			cache->newest = number;
	}
	object->cached = true;
	error = nc_replacement_add(&cache->order, &object->order, object->bytes);
	if (!error && cache->used > cache->how->size / 100 * cache->how->high)
		while (cache->used > cache->how->size / 100 * cache->how->low && clean_one(cache))
			;
	return error;
}

int simulate_segments(const struct requests *requests, const struct simulation *how,
		      struct result *result)
{
	struct cache cache;
	int error = cache_init(&cache, requests, how, result);

	if (error)
		goto out;
	cache.segment_size = how->size / how->segments;
	if (cache.segment_size < SEGMENT_MIN)
		cache.segment_size = SEGMENT_MIN;
	if (cache.segment_size > SEGMENT_MAX)
		cache.segment_size = SEGMENT_MAX;
	cache.segment_size = cache.segment_size / PAGE * PAGE;
	result->segments = how->size / cache.segment_size;
	/* Two objects in segments of their own use more than one ordinary segment. */
	cache.room = (uint32_t)(2 * result->segments + 2);
	cache.segments = calloc(cache.room, sizeof(cache.segments[0]));
	cache.weighed = calloc(cache.room, sizeof(cache.weighed[0]));
	cache.numbers = calloc(cache.room, sizeof(cache.numbers[0]));
	cache.units = calloc(requests->objects + 1ul, sizeof(cache.units[0]));
	error = cache.segments && cache.weighed && cache.numbers && cache.units
			? replay(&cache, requests, insert_segmented)
			: -ENOMEM;
out:
	cache_fini(&cache);
	return error;
}
