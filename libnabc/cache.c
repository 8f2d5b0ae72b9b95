/* SPDX-License-Identifier: MIT */
/*
 * cache.c - finds the unit that an id names; see cache.h.
 *
 * Looking up an own unit takes no lock: the word of its slot says at once
 * whether the generation still lives.  Members' numbers are given out round
 * robin, so that a number rests before it is used again.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "cache.h"
#include "id.h"

#define SIZE_DEFAULT ((size_t)256 << 20)
#define SIZE_MIN ((size_t)1 << 20)
#define MEMBER_DEFAULT ((size_t)16 << 20)
#define MEMBER_MIN ((size_t)64 << 10)
#define MEMBER_MAX ((size_t)64 << 30)
#define BYTES_A_SLOT ((size_t)16 << 10)
#define SLOTS_MIN 64u
#define SLOTS_MAX 16384u

int nc_cache_init_owner(struct nc_cache *cache, const struct NC_cache_options *options)
{
	static const struct NC_cache_options defaults;
	size_t size;
	int error;

	if (!options)
		options = &defaults;
	size = options->size ? options->size : SIZE_DEFAULT;
	*cache = (struct nc_cache){.owner = true, .flags = options->flags, .numbers = 1};
	cache->max_unit = options->max_unit ? options->max_unit : size / 4;
	cache->member_size = options->member_size ? options->member_size : MEMBER_DEFAULT;
	if (size < SIZE_MIN || cache->max_unit > size / 4 || cache->member_size < MEMBER_MIN ||
	    cache->member_size > MEMBER_MAX ||
	    (options->flags & ~(NC_CACHE_NO_URING | NC_CACHE_NO_HUGE)))
		return -EINVAL;
	cache->member_size = (cache->member_size + NC_PAGE - 1) / NC_PAGE * NC_PAGE;
	cache->foreigns = calloc(NC_ID_MEMBERS_MAX, sizeof(*cache->foreigns));
	if (!cache->foreigns)
		return -ENOMEM;
	error = nc_member_init_owner(&cache->own, size, !(options->flags & NC_CACHE_NO_HUGE));
	if (error) {
		free(cache->foreigns);
		return error;
	}
	pthread_mutex_init(&cache->lock, NULL);
	return 0;
}

int nc_cache_init_joined(struct nc_cache *cache, unsigned number, const struct nc_segment *segment,
			 size_t first, uint32_t slots, uint32_t generation, size_t max_unit)
{
	int error;

	*cache = (struct nc_cache){.max_unit = max_unit};
	error = nc_member_init_joined(&cache->own, number, segment, first, slots, generation);
	if (!error)
		pthread_mutex_init(&cache->lock, NULL);
	return error;
}

void nc_cache_fini(struct nc_cache *cache)
{
	for (unsigned number = 0; cache->foreigns && number < cache->numbers; number++)
		nc_foreign_free(
			atomic_load_explicit(&cache->foreigns[number], memory_order_relaxed));
	free(cache->foreigns);
	nc_member_fini(&cache->own);
	pthread_mutex_destroy(&cache->lock);
}

struct nc_counters *nc_cache_counters(struct nc_cache *cache)
{
	int cpu = sched_getcpu();

	return &cache->counters[(unsigned)(cpu < 0 ? 0 : cpu) % NC_COUNTER_SHARDS];
}

static void count_one(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

void nc_cache_count(struct nc_cache *cache, enum NC_method method, size_t bytes)
{
	struct nc_counters *counters = nc_cache_counters(cache);

	count_one(&counters->sends[method], 1);
	count_one(&counters->bytes[method], bytes);
}

/* Who has the id: an own slot, a foreign member, or nobody. */
static int find(struct nc_cache *cache, size_t id, struct nc_view *view)
{
	unsigned number = nc_id_member(id);

	*view = (struct nc_view){.id = id};
	if (id == 0)
		return -ENOENT;
	if (number == cache->own.number) {
		view->unit = nc_units_at(&cache->own.units, nc_id_slot(id));
		return view->unit ? 0 : -ENOENT;
	}
	if (!cache->owner)
		return -EACCES;
	view->foreign = atomic_load_explicit(&cache->foreigns[number], memory_order_acquire);
	return view->foreign ? 0 : -ENOENT;
}

static int refused(struct nc_cache *cache, int error)
{
	if (error == -ENOENT)
		count_one(&nc_cache_counters(cache)->stale, 1);
	else if (error == -EACCES || error == -EPROTO)
		count_one(&nc_cache_counters(cache)->denied, 1);
	/* A member that lies about a unit has no such unit. */
	return error == -EPROTO ? -EACCES : error;
}

int nc_cache_hold(struct nc_cache *cache, size_t id, bool doomed, struct nc_view *view)
{
	int error = find(cache, id, view);

	if (!error && view->foreign)
		error = nc_foreign_hold(view->foreign, nc_id_slot(id), nc_id_generation(id), doomed,
					&view->unit);
	else if (!error)
		error = nc_member_hold(&cache->own, view->unit, nc_id_generation(id), doomed);
	return error ? refused(cache, error) : 0;
}

int nc_cache_release(struct nc_cache *cache, size_t id)
{
	struct nc_view view;
	int error = find(cache, id, &view);

	if (error)
		return refused(cache, error);
	if (view.foreign)
		return nc_foreign_release(view.foreign, nc_id_slot(id), nc_id_generation(id));
	return nc_member_release(&cache->own, view.unit, nc_id_generation(id));
}

int nc_cache_destroy(struct nc_cache *cache, size_t id)
{
	struct nc_view view;
	int error = find(cache, id, &view);

	if (!error && view.foreign)
		error = nc_foreign_destroy(view.foreign, nc_id_slot(id), nc_id_generation(id));
	else if (!error)
		error = nc_member_destroy(&cache->own, view.unit, nc_id_generation(id));
	return error ? refused(cache, error) : 0;
}

uint32_t nc_cache_member_slots(size_t size)
{
	size_t slots = size / BYTES_A_SLOT;

	if (slots < SLOTS_MIN)
		return SLOTS_MIN;
	return slots < SLOTS_MAX ? (uint32_t)slots : SLOTS_MAX;
}

static struct nc_foreign *vacant_locked(struct nc_cache *cache)
{
	struct nc_foreign *foreign;

	if (cache->numbers < NC_ID_MEMBERS_MAX) {
		foreign = nc_foreign_create(cache->numbers);
		if (foreign)
			atomic_store_explicit(&cache->foreigns[cache->numbers++], foreign,
					      memory_order_release);
		return foreign;
	}
	for (unsigned number = 1; number < cache->numbers; number++) {
		foreign = atomic_load_explicit(&cache->foreigns[number], memory_order_relaxed);
		if (nc_foreign_vacant(foreign))
			return foreign;
	}
	return NULL;
}

int nc_cache_admit(struct nc_cache *cache, size_t size, struct nc_foreign **foreign, size_t *first)
{
	int error = -EUSERS;

	pthread_mutex_lock(&cache->lock);
	*foreign = vacant_locked(cache);
	if (*foreign)
		error = nc_foreign_admit(*foreign, size, nc_cache_member_slots(size), first);
	if (!error)
		cache->members++;
	pthread_mutex_unlock(&cache->lock);
	return error;
}

void nc_cache_bury(struct nc_cache *cache, struct nc_foreign *foreign)
{
	pthread_mutex_lock(&cache->lock);
	nc_foreign_bury(foreign);
	cache->members--;
	pthread_mutex_unlock(&cache->lock);
}

void nc_cache_stat(struct nc_cache *cache, struct NC_cache_stat *stat)
{
	struct nc_member *own = &cache->own;

	*stat = (struct NC_cache_stat){0};
	pthread_mutex_lock(&own->lock);
	stat->size = own->budget;
	stat->used = own->used;
	/* An owner's units end by these two ways alone; a member's by its owner too. */
	stat->units =
		cache->owner ? own->inserts - own->destroys - own->evictions : own->units.live;
	stat->inserts = own->inserts;
	stat->destroys = own->destroys;
	stat->evictions = own->evictions;
	stat->segments_closed = own->closed;
	stat->failures = own->failures;
	pthread_mutex_unlock(&own->lock);
	pthread_mutex_lock(&cache->lock);
	stat->members = cache->members;
	pthread_mutex_unlock(&cache->lock);
	for (unsigned i = 0; i < NC_COUNTER_SHARDS; i++) {
		struct nc_counters *counters = &cache->counters[i];

		for (unsigned method = 0; method < 4; method++) {
			stat->sends[method] += atomic_load_explicit(&counters->sends[method],
								    memory_order_relaxed);
			stat->bytes[method] += atomic_load_explicit(&counters->bytes[method],
								    memory_order_relaxed);
		}
		stat->stale += atomic_load_explicit(&counters->stale, memory_order_relaxed);
		stat->denied += atomic_load_explicit(&counters->denied, memory_order_relaxed);
		stat->zerocopy_copied +=
			atomic_load_explicit(&counters->zerocopy_copied, memory_order_relaxed);
	}
}
