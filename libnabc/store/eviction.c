/* SPDX-License-Identifier: MIT */
/*
 * eviction.c - selects the next unit or segment to evict until the budget suffices;
 * see eviction.h.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <nabc.h>

#include "base/fragment.h"
#include "os/segment.h"
#include "policy/expiry.h"
#include "policy/replacement.h"
#include "store/eviction-internal.h"
#include "store/eviction.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

static bool may_evict(struct nc_replaceable *entry, void *context)
{
	struct nc_unit *unit = nc_unit_of_order(entry);
	const struct nc_search *search = context;

	if (!search->also_in_grace && nc_unit_in_grace(unit, search->now_ns))
		return false;
	if (search->descriptor && unit->store && !unit->store->counted)
		return false;
	return unit->store && unit->store->pass != search->pass &&
	       nc_search_idle(unit, search->ahead);
}

struct nc_unit *nc_search_victim(struct nc_member *member, struct nc_search *search)
{
	search->now_ns = nc_clock_ns(CLOCK_MONOTONIC_COARSE);
	for (unsigned priority = 0; priority < NC_PRIORITIES; priority++) {
		struct nc_replacement *order = &member->orders[priority];
		struct nc_replaceable *entry;

		search->also_in_grace = false;
		entry = nc_replacement_victim(order, may_evict, search);
		search->also_in_grace = true;
		if (!entry)
			entry = nc_replacement_victim(order, may_evict, search);
		if (entry)
			return nc_unit_of_order(entry);
	}
	return NULL;
}

/* --- budget ------------------------------------------------------------------ */

/* Returns an empty segment, whose loss costs nothing. */
static struct nc_store *find_empty(const struct nc_member *member)
{
	if (member->appended && member->appended->count == 0 &&
	    atomic_load_explicit(&member->appended->filling, memory_order_acquire) == 0)
		return member->appended;
	if (member->empties)
		for (struct nc_store *store = member->runs; store; store = store->next_run)
			if (store->count == 0 &&
			    atomic_load_explicit(&store->filling, memory_order_acquire) == 0)
				return store;
	return NULL;
}

/* Evicts one unit or reclaims one segment; false: nothing can be evicted. */
static bool shrink(struct nc_member *member, struct nc_search *search)
{
	struct nc_store *store = find_empty(member);
	struct nc_unit *unit;

	if (store) {
		nc_pool_close_store(member, store);
		return true;
	}
	while ((unit = nc_search_victim(member, search))) {
		store = unit->store;
		if (store->alone) {
			if (nc_pool_evict(member, unit))
				return true;
			continue;
		}
		if (store->kind == NC_KIND_APPENDED)
			store = nc_compaction_choose(member, store, search);
		if (nc_compaction_may_clean(store, search) &&
		    nc_compaction_clean(member, store, search) == 0)
			return true;
		store->pass = search->pass;
	}
	return false;
}

/* Returns how many bytes the store can give back if necessary. */
static size_t can_give(struct nc_member *member, struct nc_store *store)
{
	size_t stuck = 0;
	uint32_t slot = store->newest;

	if (atomic_load_explicit(&store->filling, memory_order_acquire))
		return 0;
	while (slot != NC_UNIT_NONE) {
		struct nc_unit *unit = nc_units_at(&member->units, slot);

		if (!nc_search_idle(unit, false))
			return 0;
		if (nc_search_pinned(unit))
			stuck += unit->layout.extent;
		slot = unit->next;
	}
	return stuck <= nc_compaction_room(member, store) ? store->segment.size - stuck : 0;
}

static bool possible(struct nc_member *member, size_t need)
{
	size_t sum = 0;

	for (struct nc_store *store = member->stores; store && sum < need; store = store->next)
		sum += can_give(member, store);
	return sum >= need;
}

int nc_eviction_free(struct nc_member *member, size_t need)
{
	struct nc_search search = {.pass = ++member->pass};

	if (need > member->budget)
		return -ENOMEM;
	if (member->used + need > member->budget &&
	    !possible(member, member->used + need - member->budget))
		return -ENOMEM;
	while (member->used + need > member->budget)
		if (!shrink(member, &search))
			return -ENOMEM;
	return 0;
}

int nc_eviction_descriptor(struct nc_member *member)
{
	struct nc_search search = {.pass = ++member->pass, .descriptor = true};

	while (!nc_pool_has_descriptor(member))
		if (!shrink(member, &search))
			return -EMFILE;
	return 0;
}

bool nc_eviction_ahead(struct nc_member *member)
{
	struct nc_search search = {.pass = ++member->pass, .ahead = true};

	return shrink(member, &search);
}

int nc_eviction_slot(struct nc_member *member)
{
	struct nc_search search = {.pass = ++member->pass};
	struct nc_unit *unit = nc_search_victim(member, &search);

	return unit && nc_pool_evict(member, unit) ? 0 : -ENOMEM;
}
