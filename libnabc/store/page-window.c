/* SPDX-License-Identifier: MIT */
/*
 * page-window.c - frees a run of pages in a recycled segment: selects the window of
 * pages that costs the fewest units; see eviction.h.
 */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/extent.h"
#include "base/fragment.h"
#include "store/eviction-internal.h"
#include "store/eviction.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#define PAGE_FREE NC_UNIT_NONE
#define PAGE_STUCK (NC_UNIT_NONE - 1)

/* Maps each page to the slot that uses it, or to one of the above. */
static uint32_t *page_map(struct nc_member *member, const struct nc_store *store)
{
	uint32_t *map = malloc(store->extent.pages * sizeof(map[0]));
	uint32_t slot = store->newest;

	if (!map)
		return NULL;
	for (uint32_t page = 0; page < store->extent.pages; page++)
		map[page] = PAGE_FREE;
	while (slot != NC_UNIT_NONE) {
		struct nc_unit *unit = nc_units_at(&member->units, slot);
		uint32_t page = (uint32_t)((unit->at - store->first) / NC_PAGE);
		uint32_t end = page + (uint32_t)(unit->layout.extent / NC_PAGE);
		bool stuck = nc_search_pinned(unit) || !nc_search_idle(unit, false);

		for (; page < end; page++)
			map[page] = stuck ? PAGE_STUCK : slot;
		slot = unit->next;
	}
	return map;
}

/*
 * Returns the window of pages within [from, end) with the fewest in use; -1: none
 * can be evicted.
 */
static int64_t best_window(const uint32_t *map, uint32_t from, uint32_t end, uint32_t pages)
{
	uint32_t stuck = 0, taken = 0, least = UINT32_MAX;
	int64_t best = -1;

	for (uint32_t page = from; page < end; page++) {
		stuck += map[page] == PAGE_STUCK;
		taken += map[page] != PAGE_FREE;
		if (page - from + 1 < pages)
			continue;
		if (!stuck && taken < least) {
			least = taken;
			best = (int64_t)page + 1 - pages;
		}
		stuck -= map[page + 1 - pages] == PAGE_STUCK;
		taken -= map[page + 1 - pages] != PAGE_FREE;
	}
	return best;
}

/* Evicts the units in the best window that touches [first, first + count). */
static int open_window(struct nc_member *member, struct nc_store *store, uint32_t first,
		       uint32_t count, uint32_t pages)
{
	uint32_t from = first > pages - 1 ? first - (pages - 1) : 0;
	uint64_t end = (uint64_t)first + count + pages - 1;
	int error = -ENOMEM;
	uint32_t *map;
	int64_t at;

	if (pages > store->extent.pages)
		return -ENOMEM;
	map = page_map(member, store);
	if (!map)
		return -ENOMEM;
	if (end > store->extent.pages)
		end = store->extent.pages;
	at = best_window(map, from, (uint32_t)end, pages);
	if (at >= 0) {
		uint32_t page = (uint32_t)at;

		error = 0;
		while (page < (uint32_t)at + pages) {
			uint32_t slot = map[page];

			/* The unit was held just now; those already evicted remain so. */
			if (slot != PAGE_FREE &&
			    !nc_pool_evict(member, nc_units_at(&member->units, slot)))
				error = -ENOMEM;
			do {
				page++;
			} while (page < (uint32_t)at + pages && slot != PAGE_FREE &&
				 map[page] == slot);
		}
	}
	free(map);
	return error;
}

int nc_eviction_run(struct nc_member *member, uint32_t pages, bool any)
{
	struct nc_search search = {.pass = ++member->pass};
	struct nc_unit *unit = any ? NULL : nc_search_victim(member, &search);

	if (unit && unit->store->kind == NC_KIND_RECYCLED && !unit->store->alone) {
		struct nc_store *store = unit->store;
		uint32_t count = (uint32_t)(unit->layout.extent / NC_PAGE);
		uint32_t first = (uint32_t)((unit->at - store->first) / NC_PAGE);

		if (count >= pages)
			return nc_pool_evict(member, unit) ? 0 : -ENOMEM;
		return open_window(member, store, first, count, pages);
	}
	if (any)
		for (struct nc_store *store = member->runs; store; store = store->next_run)
			if (open_window(member, store, 0, store->extent.pages, pages) == 0)
				return 0;
	return -ENOMEM;
}
