/* SPDX-License-Identifier: MIT */
/*
 * member.c - this process's own units; see member.h.
 *
 * Naming and holding a unit touches its word alone.  Memory moves under the
 * member's lock: taken at alloc, given back when a doomed unit loses its last
 * hold (and, in a process that joined, when the owner has marked it dropped).
 */
#include <errno.h>
#include <stdlib.h>

#include "id.h"
#include "member.h"

#define SEGMENT_MIN ((size_t)256 << 10)
#define SEGMENT_MAX ((size_t)8 << 20)
#define SEGMENTS_AIMED_AT 16u
#define COLLECT_STEPS 16u

static int member_init(struct nc_member *member, unsigned number, uint32_t slots,
		       uint32_t generation)
{
	*member = (struct nc_member){.number = number};
	pthread_mutex_init(&member->lock, NULL);
	return nc_units_init(&member->units, slots, generation);
}

int nc_member_init_owner(struct nc_member *member, size_t budget, bool huge)
{
	size_t size = budget / SEGMENTS_AIMED_AT;
	int error = member_init(member, 0, NC_ID_SLOTS_MAX, 1);

	if (size < SEGMENT_MIN)
		size = SEGMENT_MIN;
	if (size > SEGMENT_MAX)
		size = SEGMENT_MAX;
	member->segment_size = size / NC_PAGE * NC_PAGE;
	member->budget = budget;
	member->huge = huge;
	return error;
}

int nc_member_init_joined(struct nc_member *member, unsigned number,
			  const struct nc_segment *segment, size_t first, uint32_t slots,
			  uint32_t generation)
{
	int error = member_init(member, number, slots, generation);

	if (error)
		return error;
	member->stores = nc_store_over(segment, first, &error);
	if (!member->stores) {
		nc_units_fini(&member->units);
		return error;
	}
	member->shared = (struct nc_unit_shared *)(void *)segment->base;
	member->budget = member->used = segment->size;
	return 0;
}

void nc_member_fini(struct nc_member *member)
{
	while (member->stores) {
		struct nc_store *store = member->stores;

		member->stores = store->next;
		nc_store_close(store);
	}
	nc_units_fini(&member->units);
	pthread_mutex_destroy(&member->lock);
}

uint32_t nc_member_filling(struct nc_member *member)
{
	uint32_t filling = 0;

	pthread_mutex_lock(&member->lock);
	for (struct nc_store *store = member->stores; store; store = store->next)
		filling += store->filling;
	pthread_mutex_unlock(&member->lock);
	return filling;
}

static void close_store_locked(struct nc_member *member, struct nc_store *store)
{
	struct nc_store **link = &member->stores;

	while (*link != store)
		link = &(*link)->next;
	*link = store->next;
	nc_replacement_remove(&member->order, &store->order);
	if (member->appended == store)
		member->appended = NULL;
	member->used -= store->segment.size;
	member->closed++;
	nc_store_close(store);
}

/* Nobody names or holds the unit any more: its memory is free. */
static void give_locked(struct nc_member *member, struct nc_unit *unit)
{
	struct nc_store *store = unit->store;

	nc_store_leave(store, &member->units, unit);
	nc_units_give(&member->units, unit);
	if (store->count || member->shared)
		return;
	/* An empty log is of no more use; empty recycled pages are wanted again. */
	if (store->dying || (store->kind == NC_KIND_APPENDED && store != member->appended) ||
	    store->full)
		close_store_locked(member, store);
}

/* In a process that joined, the owner has a say: reclaims only what it left. */
static void reclaim_locked(struct nc_member *member, struct nc_unit *unit)
{
	struct nc_unit_shared *entry;
	unsigned generation;
	uint64_t word;

	if (!member->shared) {
		give_locked(member, unit);
		return;
	}
	entry = &member->shared[unit->slot];
	generation = nc_word_generation(nc_unit_word(unit));
	word = atomic_load_explicit(&entry->word, memory_order_acquire);
	for (;;) {
		bool busy = word == nc_shared_word(generation, NC_SHARED_BUSY) ||
			    word == nc_shared_word(generation, NC_SHARED_DOOMED);
		uint64_t next =
			nc_shared_word(generation, busy ? NC_SHARED_DOOMED : NC_SHARED_FREE);

		if (atomic_compare_exchange_weak_explicit(&entry->word, &word, next,
							  memory_order_acq_rel,
							  memory_order_acquire)) {
			unit->parked = busy;
			if (!busy)
				give_locked(member, unit);
			return;
		}
	}
}

/* Picks up, oldest first, what the owner has given back. */
static void collect_locked(struct nc_member *member, struct nc_store *store, unsigned steps)
{
	uint32_t slot = store->oldest;

	while (slot != NC_UNIT_NONE && steps--) {
		struct nc_unit *unit = nc_units_at(&member->units, slot);
		unsigned generation = nc_word_generation(nc_unit_word(unit));
		uint64_t shared =
			atomic_load_explicit(&member->shared[slot].word, memory_order_acquire);

		slot = unit->previous;
		if (shared != nc_shared_word(generation, NC_SHARED_DROPPED))
			continue;
		/* Held here too: the last release of this process reclaims it. */
		if (unit->parked || nc_unit_doom(unit, generation) == 1)
			give_locked(member, unit);
	}
}

static bool store_may_go(struct nc_replaceable *entry)
{
	struct nc_store *store = (struct nc_store *)entry;

	return store->filling == 0;
}

/* LIVE becomes DOOMED unless somebody holds the unit. */
static bool doom_idle(struct nc_unit *unit)
{
	uint64_t word = nc_unit_word(unit);

	return nc_word_state(word) == NC_UNIT_LIVE && nc_word_holds(word) == 0 &&
	       atomic_compare_exchange_strong_explicit(
		       &unit->word, &word, nc_word(nc_word_generation(word), NC_UNIT_DOOMED, 0),
		       memory_order_acq_rel, memory_order_relaxed);
}

/* Drops what nobody holds in the store; false: there is nothing. */
static bool evict_store_locked(struct nc_member *member, struct nc_store *store)
{
	uint32_t slot = store->newest;
	bool evicted = false;

	if (store->count == 0) {
		close_store_locked(member, store);
		return true;
	}
	while (slot != NC_UNIT_NONE) {
		struct nc_unit *unit = nc_units_at(&member->units, slot);

		slot = unit->next;
		if (!doom_idle(unit))
			continue;
		/* What is held keeps the store, but nothing new is laid in it. */
		store->dying = true;
		if (member->appended == store)
			member->appended = NULL;
		evicted = true;
		member->evictions++;
		/* The last one takes the store with it. */
		give_locked(member, unit);
	}
	return evicted;
}

/* Drops the idle units of the store that is to go; false: all is held. */
static bool evict_locked(struct nc_member *member)
{
	unsigned visits = 0;

	/* The hand may pass a store once for its mark before it stops there. */
	for (struct nc_store *store = member->stores; store; store = store->next)
		visits += 2;
	while (visits--) {
		struct nc_store *store =
			(struct nc_store *)nc_replacement_victim(&member->order, store_may_go);

		if (!store)
			return false;
		if (evict_store_locked(member, store))
			return true;
	}
	return false;
}

static struct nc_store *open_store_locked(struct nc_member *member, enum NC_kind kind,
					  size_t extent, int *error)
{
	bool alone = extent > member->segment_size / 2;
	size_t size = alone ? extent : member->segment_size;
	struct nc_store *store;

	while (member->used + size > member->budget) {
		/* What can never fit drives nothing out. */
		if (size > member->budget || !evict_locked(member)) {
			*error = -ENOMEM;
			return NULL;
		}
	}
	store = nc_store_create(kind, size, member->huge, error);
	if (!store)
		return NULL;
	member->used += size;
	store->next = member->stores;
	member->stores = store;
	nc_replacement_add(&member->order, &store->order);
	if (kind == NC_KIND_APPENDED && !alone) {
		/* The old one is full: only what is in it keeps it. */
		struct nc_store *old = member->appended;

		member->appended = store;
		if (old && old->filling == 0)
			(void)nc_segment_seal(&old->segment);
		if (old && old->count == 0)
			close_store_locked(member, old);
	}
	return store;
}

static int64_t place_locked(struct nc_member *member, enum NC_kind kind, size_t extent,
			    struct nc_store **where, int *error)
{
	int64_t at;

	*error = -ENOMEM;
	if (kind == NC_KIND_APPENDED) {
		*where = member->appended;
		if (*where && extent <= member->segment_size / 2) {
			at = nc_store_take(*where, extent);
			if (at >= 0)
				return at;
		}
	} else {
		for (*where = member->stores; *where; *where = (*where)->next) {
			if ((*where)->kind != kind)
				continue;
			if (member->shared)
				collect_locked(member, *where, COLLECT_STEPS);
			at = nc_store_take(*where, extent);
			if (at < 0 && member->shared) {
				collect_locked(member, *where, UINT32_MAX);
				at = nc_store_take(*where, extent);
			}
			if (at >= 0)
				return at;
		}
	}
	if (member->shared)
		return -ENOMEM;
	*where = open_store_locked(member, kind, extent, error);
	if (!*where)
		return *error;
	at = nc_store_take(*where, extent);
	(*where)->full = extent > member->segment_size / 2;
	return at;
}

int nc_member_alloc(struct nc_member *member, const struct nc_layout *layout, enum NC_kind kind,
		    struct nc_unit **unit)
{
	struct nc_store *store;
	int64_t at;
	int error;

	pthread_mutex_lock(&member->lock);
	at = place_locked(member, kind, layout->extent, &store, &error);
	if (at < 0)
		goto refused;
	*unit = nc_units_take(&member->units);
	if (!*unit && member->shared) {
		/* There is memory, so nobody has looked yet whether slots came back. */
		collect_locked(member, store, UINT32_MAX);
		*unit = nc_units_take(&member->units);
	}
	if (!*unit) {
		error = -ENOMEM;
		if (store->kind == NC_KIND_RECYCLED)
			nc_extent_give(&store->extent,
				       (uint32_t)(((size_t)at - store->first) / NC_PAGE),
				       (uint32_t)(layout->extent / NC_PAGE));
		goto refused;
	}
	(*unit)->layout = *layout;
	(*unit)->sums = NULL;
	nc_store_enter(store, &member->units, *unit, (uint64_t)at);
	pthread_mutex_unlock(&member->lock);
	/* The store stays while the unit is being filled. */
	if (kind == NC_KIND_APPENDED)
		nc_segment_prepare(&store->segment, (size_t)at, layout->extent);
	return 0;

refused:
	if (error == -ENOMEM)
		member->failures++;
	pthread_mutex_unlock(&member->lock);
	return error;
}

void nc_member_abandon(struct nc_member *member, struct nc_unit *unit)
{
	pthread_mutex_lock(&member->lock);
	nc_store_retract(unit->store, unit);
	give_locked(member, unit);
	pthread_mutex_unlock(&member->lock);
}

int nc_member_insert(struct nc_member *member, struct nc_unit *unit)
{
	int error;

	pthread_mutex_lock(&member->lock);
	error = nc_store_inserted(unit->store, unit);
	if (error) {
		unit->store->filling++;
		pthread_mutex_unlock(&member->lock);
		return error;
	}
	member->inserts++;
	nc_unit_publish(unit);
	if (unit->store->kind == NC_KIND_APPENDED && unit->store != member->appended &&
	    unit->store->filling == 0)
		(void)nc_segment_seal(&unit->store->segment);
	if (member->shared) {
		struct nc_unit_shared *entry = &member->shared[unit->slot];

		atomic_store_explicit(&entry->at, unit->at, memory_order_relaxed);
		atomic_store_explicit(&entry->size, unit->layout.size, memory_order_relaxed);
		atomic_store_explicit(&entry->fraglen, unit->layout.fraglen, memory_order_relaxed);
		atomic_store_explicit(
			&entry->word,
			nc_shared_word(nc_word_generation(nc_unit_word(unit)), NC_SHARED_LIVE),
			memory_order_release);
	}
	pthread_mutex_unlock(&member->lock);
	return 0;
}

int nc_member_hold(struct nc_member *member, struct nc_unit *unit, unsigned generation, bool doomed)
{
	int error = nc_unit_hold(unit, generation, doomed);

	if (!error && !member->shared)
		nc_replacement_use(&unit->store->order);
	return error;
}

int nc_member_release(struct nc_member *member, struct nc_unit *unit, unsigned generation)
{
	int last = nc_unit_release(unit, generation);

	if (last <= 0)
		return last;
	pthread_mutex_lock(&member->lock);
	reclaim_locked(member, unit);
	pthread_mutex_unlock(&member->lock);
	return 0;
}

int nc_member_destroy(struct nc_member *member, struct nc_unit *unit, unsigned generation)
{
	int last;

	pthread_mutex_lock(&member->lock);
	last = nc_unit_doom(unit, generation);
	if (last >= 0)
		member->destroys++;
	if (last > 0)
		reclaim_locked(member, unit);
	pthread_mutex_unlock(&member->lock);
	return last < 0 ? last : 0;
}
