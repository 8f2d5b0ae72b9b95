/* SPDX-License-Identifier: MIT */
/*
 * member-resize.c - changes how much memory a unit has while it is filled; see
 * member.h.
 *
 * Only the unit's handle knows the unit, so the bytes need no lock.  Others read its
 * extent when they search for memory; it changes under the member's lock.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/fragment.h"
#include "policy/replacement.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

/* Ranks the unit by its present extent. */
static void rank_locked(struct nc_member *member, struct nc_unit *unit)
{
	struct nc_replacement *order = nc_pool_order(member, unit);

	if (!order)
		return;
	nc_replacement_remove(order, &unit->order);
	/* The order still has space for it. */
	(void)nc_replacement_add(order, &unit->order, unit->layout.extent);
}

void nc_member_trim(struct nc_member *member, struct nc_unit *unit, size_t extent)
{
	struct nc_store *store = unit->store;
	size_t behind = unit->layout.extent - extent;

	if (store->frozen || (store->alone && nc_store_shrink(store, extent)))
		return;
	nc_pool_lock(member);
	if (store->alone)
		nc_pool_discharge(member, behind, false);
	nc_store_trim(store, unit, extent);
	rank_locked(member, unit);
	nc_pool_unlock(member);
}
