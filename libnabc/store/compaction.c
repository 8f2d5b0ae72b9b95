/* SPDX-License-Identifier: MIT */
/*
 * compaction.c - compacts segments that many units share: rates their units, copies
 * the best ones to other segments, evicts the rest, and closes the segment; see
 * eviction.h.
 *
 * Units are copied without the lock, under a hold that the compaction takes.  The
 * new place becomes valid only if that hold is then the only one (unit.h).
 */
#include <errno.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/extent.h"
#include "base/fragment.h"
#include "os/segment.h"
#include "policy/cleaning.h"
#include "policy/replacement.h"
#include "store/eviction-internal.h"
#include "store/eviction.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

/* At most this many units are examined to select the segment to compact. */
#define WEIGHED_UNITS 1024u

/* Returns a value comparable across priorities: any unit of a higher priority is worth more. */
static double worth(struct nc_member *member, const struct nc_unit *unit)
{
	static const double weight[NC_PRIORITIES] = {0x1p-80, 1, 0x1p80};
	const struct nc_replacement *order = nc_pool_order(member, unit);

	if (!order)
		return 0;
	return (nc_replacement_worth(order, &unit->order) + 1e-12) *
	       weight[atomic_load_explicit(&unit->priority, memory_order_relaxed)];
}

/*
 * Lists the units of a store; the caller frees the array.  Returns NULL and sets
 * *error if memory is exhausted, or to -EBUSY if a unit is in use.
 */
static struct nc_cleaning_unit *list(struct nc_member *member, struct nc_store *store, bool mark,
				     int *error)
{
	struct nc_cleaning_unit *units = malloc((store->count + 1) * sizeof(units[0]));
	uint32_t slot = store->newest;
	size_t count = 0;

	*error = units ? 0 : -ENOMEM;
	while (units && slot != NC_UNIT_NONE) {
		struct nc_unit *unit = nc_units_at(&member->units, slot);

		if (!nc_search_idle(unit, mark)) {
			*error = -EBUSY;
			free(units);
			return NULL;
		}
		units[count++] = (struct nc_cleaning_unit){.worth = worth(member, unit),
							   .bytes = unit->layout.extent,
							   .must = nc_search_pinned(unit),
							   .slot = slot};
		slot = unit->next;
	}
	return units;
}

static size_t tail(const struct nc_store *store)
{
	return store && !store->full ? nc_store_room(store) : 0;
}

size_t nc_compaction_room(const struct nc_member *member, const struct nc_store *store)
{
	size_t room = 0;

	if (store->kind == NC_KIND_APPENDED)
		return member->appended == store ? 0 : tail(member->appended);
	for (const struct nc_store *other = member->runs; other; other = other->next_run)
		if (other != store)
			room += nc_store_room(other);
	return room;
}

/* Whether survivors may have one more segment: not while an allocation waits for memory. */
static bool may_open(const struct nc_member *member, const struct nc_store *store,
		     const struct nc_search *search)
{
	return search->ahead && store->kind == NC_KIND_APPENDED && store != member->appended &&
	       nc_pool_fits(member, member->segment_size) && nc_pool_has_descriptor(member);
}

static size_t copy_bound(const struct nc_member *member, const struct nc_store *store,
			 const struct nc_search *search)
{
	size_t bound = nc_cleaning_bound(store->segment.size, member->clean_limit);
	size_t room = nc_compaction_room(member, store);

	if (may_open(member, store, search))
		room += member->segment_size;
	return room < bound ? room : bound;
}

bool nc_compaction_may_clean(const struct nc_store *store, const struct nc_search *search)
{
	return !store->alone && store->count && store->pass != search->pass &&
	       atomic_load_explicit(&store->filling, memory_order_acquire) == 0;
}

static void weigh(struct nc_member *member, struct nc_store *store, const struct nc_search *search)
{
	struct nc_cleaning_unit *units;
	int error;

	store->weighed = false;
	if (!nc_compaction_may_clean(store, search))
		return;
	units = list(member, store, search->ahead, &error);
	if (!units) {
		store->pass = search->pass;
		return;
	}
	nc_cleaning_weigh(&store->weight, units, store->count, copy_bound(member, store, search));
	store->weighed = true;
	free(units);
}

struct nc_store *nc_compaction_choose(struct nc_member *member, struct nc_store *coldest,
				      const struct nc_search *search)
{
	struct nc_store *store = member->weighing ? member->weighing : member->stores;
	struct nc_store *best = NULL;
	uint32_t looked_at = 0;

	weigh(member, coldest, search);
	for (; store && looked_at < WEIGHED_UNITS; store = store->next) {
		if (store->kind != NC_KIND_APPENDED || store == coldest ||
		    !nc_compaction_may_clean(store, search))
			continue;
		weigh(member, store, search);
		looked_at += store->count;
	}
	member->weighing = store;
	for (store = member->stores; store; store = store->next) {
		struct nc_cleaning_segment pair[2];

		if (store->kind != NC_KIND_APPENDED || !store->weighed ||
		    store == member->appended || !nc_compaction_may_clean(store, search))
			continue;
		pair[0] = store->weight;
		if (best)
			pair[1] = best->weight;
		if (nc_cleaning_pick(pair, best ? 2 : 1) == 0)
			best = store;
	}
	return best ? best : coldest;
}

/* --- compaction --------------------------------------------------------------- */

/* A unit that is being copied to another place. */
struct move {
	struct nc_unit *unit;
	unsigned generation;
	struct nc_store *to;
	uint64_t at;
	bool copied;
};

int nc_eviction_open(struct nc_member *member, enum NC_kind kind)
{
	struct nc_store *store;
	int error;

	nc_pool_unlock(member);
	store = nc_store_create(kind, member->segment_size, member->huge, false, &error);
	if (store)
		nc_segment_pin(&store->segment, member->pin, false);
	nc_pool_lock(member);
	if (!store) {
		nc_pool_discharge(member, member->segment_size, true);
		return error;
	}
	store->counted = true;
	nc_pool_add_store(member, store);
	if (kind == NC_KIND_APPENDED)
		nc_pool_grow_log(member, store);
	return 0;
}

/* Reserves memory outside the store for a unit of its kind; -ENOMEM if there is none. */
static int64_t take_elsewhere(struct nc_member *member, const struct nc_store *store, size_t extent,
			      struct nc_store **to)
{
	int64_t at;

	if (store->kind == NC_KIND_APPENDED) {
		*to = member->appended;
		return *to && *to != store ? nc_store_take(*to, extent) : -ENOMEM;
	}
	for (*to = member->runs; *to; *to = (*to)->next_run) {
		if (*to == store)
			continue;
		at = nc_store_take(*to, extent);
		if (at >= 0)
			return at;
	}
	return -ENOMEM;
}

static void untake(struct move *move)
{
	nc_store_untake(move->to, move->at, move->unit->layout.extent);
	(void)nc_store_filled(move->to);
}

/*
 * Reserves a place for each survivor and holds it; a survivor without a place is
 * evicted.  Units that must survive come first.  Returns -ENOMEM if one of those
 * finds no place.
 */
static int plan(struct nc_member *member, struct nc_store *store, struct nc_cleaning_unit *units,
		struct move *moves, size_t *count)
{
	size_t all = store->count;

	*count = 0;
	for (size_t i = 0; i < all; i++) {
		struct nc_unit *unit = nc_units_at(&member->units, units[i].slot);
		struct move *move = &moves[*count];
		int64_t at;

		if (!units[i].survives)
			continue;
		at = take_elsewhere(member, store, units[i].bytes, &move->to);
		if (at < 0 && units[i].must) {
			while (*count)
				untake(&moves[--*count]);
			return -ENOMEM;
		}
		units[i].survives = at >= 0;
		if (at < 0)
			continue;
		move->unit = unit;
		move->generation = nc_word_generation(nc_unit_word(unit));
		move->at = (uint64_t)at;
		atomic_fetch_add_explicit(&move->to->filling, 1, memory_order_relaxed);
		(*count)++;
	}
	for (size_t i = 0; i < *count; i++)
		(void)nc_unit_hold(moves[i].unit, moves[i].generation, false);
	return 0;
}

static void judge_and_evict(struct nc_member *member, const struct nc_cleaning_unit *units,
			    size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct nc_unit *unit = nc_units_at(&member->units, units[i].slot);
		struct nc_replacement *order = nc_pool_order(member, unit);

		if (order)
			nc_replacement_judged(order, &unit->order, units[i].survives);
		if (!units[i].survives)
			(void)nc_pool_evict(member, unit);
	}
}

/* Called without the lock: the units are held and their places reserved. */
static void copy_one(const struct nc_member *member, struct move *move)
{
	struct nc_segment *segment = &move->to->segment;
	size_t extent = move->unit->layout.extent;
	bool unlock = move->to->kind == NC_KIND_RECYCLED && member->protect;

	if (unlock && nc_segment_unprotect(segment, move->at, extent))
		return;
	memcpy(segment->base + move->at, nc_unit_base(move->unit), extent);
	move->copied = true;
}

static void copy_all(const struct nc_member *member, struct move *moves, size_t count)
{
	size_t first = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t end = moves[i].at + moves[i].unit->layout.extent;

		copy_one(member, &moves[i]);
		/* Make adjacent copies read-only with one call. */
		if (i + 1 < count && moves[i + 1].to == moves[i].to && moves[i + 1].at == end)
			continue;
		if ((moves[i].to->kind == NC_KIND_APPENDED || member->protect) &&
		    nc_segment_protect(&moves[i].to->segment, moves[first].at,
				       end - moves[first].at))
			for (size_t j = first; j <= i; j++)
				moves[j].copied = false;
		first = i + 1;
	}
}

static void finish_move(struct nc_member *member, struct move *move)
{
	struct nc_unit *unit = move->unit;

	if (move->copied && nc_unit_move_begin(unit, move->generation)) {
		nc_pool_leave(member, unit);
		nc_pool_enter(member, move->to, unit, move->at);
		nc_unit_move_end(unit, move->generation);
		(void)nc_store_filled(move->to);
		member->copied_units++;
		member->copied_bytes += unit->layout.extent;
	} else {
		/* The unit was held or destroyed meanwhile: it stays where it is. */
		if (move->to->kind == NC_KIND_RECYCLED)
			nc_store_untake(move->to, move->at, unit->layout.extent);
		/* A copy in the log is already read-only and remains as a gap. */
		if (nc_unit_release(unit, move->generation) == 1)
			nc_pool_give(member, unit);
	}
	(void)nc_store_filled(move->to);
	nc_pool_settle(member, move->to);
}

/* What happens to each unit of a store, and where the survivors go. */
struct cleaning {
	struct nc_cleaning_unit *units;
	struct move *moves;
	size_t all, moving;
	size_t copied; /* bytes to copy */
};

static void forget(struct cleaning *cleaning)
{
	free(cleaning->units);
	free(cleaning->moves);
	*cleaning = (struct cleaning){0};
}

/*
 * Selects the survivors.  Returns -EBUSY if the store cannot be compacted now, or
 * if compacting it would free nothing.
 */
static int choose_survivors(struct nc_member *member, struct nc_store *store,
			    const struct nc_search *search, struct cleaning *cleaning)
{
	int error;

	*cleaning = (struct cleaning){.all = store->count};
	cleaning->units = list(member, store, search->ahead, &error);
	if (!cleaning->units)
		return error;
	cleaning->copied = nc_cleaning_survivors(cleaning->units, cleaning->all,
						 copy_bound(member, store, search));
	if (cleaning->copied < store->segment.size)
		return 0;
	forget(cleaning);
	return -EBUSY;
}

/*
 * As choose_survivors(), but opens one more segment if they need and may have it.
 * Releases the lock meanwhile.
 */
static int prepare(struct nc_member *member, struct nc_store *store, const struct nc_search *search,
		   struct cleaning *cleaning)
{
	struct nc_search without = {.pass = search->pass};
	int error = choose_survivors(member, store, search, cleaning);

	if (error || cleaning->copied <= nc_compaction_room(member, store))
		return error;
	/*
	 * Two such segments may not fit into one: their units would be copied back
	 * and forth forever.
	 */
	error = cleaning->copied == store->live && store->live > store->segment.size / 2 ? -EBUSY
											 : 0;
	forget(cleaning);
	if (!error && may_open(member, store, search)) {
		nc_pool_charge(member, member->segment_size, true);
		store->busy = true;
		(void)nc_eviction_open(member, NC_KIND_APPENDED);
		store->busy = false;
	}
	return error ? error : choose_survivors(member, store, &without, cleaning);
}

int nc_compaction_clean(struct nc_member *member, struct nc_store *store,
			const struct nc_search *search)
{
	struct cleaning cleaning;
	int error = prepare(member, store, search, &cleaning);

	if (error)
		return error;
	cleaning.moves = calloc(cleaning.all + 1, sizeof(cleaning.moves[0]));
	error = cleaning.moves
			? plan(member, store, cleaning.units, cleaning.moves, &cleaning.moving)
			: -ENOMEM;
	if (!error) {
		store->busy = true;
		if (member->appended == store)
			member->appended = NULL;
		if (store->kind == NC_KIND_APPENDED)
			store->full = true;
		judge_and_evict(member, cleaning.units, cleaning.all);
		if (cleaning.moving) {
			nc_pool_unlock(member);
			copy_all(member, cleaning.moves, cleaning.moving);
			nc_pool_lock(member);
		}
		for (size_t i = 0; i < cleaning.moving; i++)
			finish_move(member, &cleaning.moves[i]);
		store->busy = false;
		member->cleaned++;
		if (store->count == 0)
			nc_pool_close_store(member, store);
		else
			error = -EBUSY;
	}
	forget(&cleaning);
	return error;
}
