/* SPDX-License-Identifier: MIT */
/*
 * member-resize.c - changes how much memory a unit has while it is filled; see
 * member.h.
 *
 * Only the unit's handle knows the unit, so the bytes need no lock.  Others read its
 * extent when they search for memory; it changes under the member's lock.
 */
#include <errno.h>
#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/fragment.h"
#include "os/segment.h"
#include "policy/replacement.h"
#include "store/eviction.h"
#include "store/member-internal.h"
#include "store/member.h"
#include "store/memory-wait.h"
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
	nc_memory_wake(member->waiting);
}

/* Charges more bytes to the budget, after evictions if necessary. */
static int charge(struct nc_member *member, size_t more)
{
	int error = 0;

	nc_pool_lock(member);
	if (!nc_pool_fits(member, more)) {
		nc_pool_unlock(member);
		pthread_mutex_lock(&member->growing);
		nc_pool_lock(member);
		error = nc_eviction_free(member, more);
		member->failures += error != 0;
		nc_member_leave_growing_locked(member);
	}
	if (!error)
		nc_pool_charge(member, more, false);
	nc_pool_unlock(member);
	return error;
}

static int grow_alone(struct nc_member *member, struct nc_unit *unit, size_t extent)
{
	size_t more = extent - unit->layout.extent;
	int error = unit->store->kind == NC_KIND_KERNEL && !unit->store->buffered
			    ? -EXDEV
			    : charge(member, more);

	if (error)
		return error;
	error = nc_store_grow(unit->store, extent, member->huge);
	nc_pool_lock(member);
	if (error)
		nc_pool_discharge(member, more, false);
	else
		error = nc_store_extend(unit->store, unit, extent);
	if (!error)
		rank_locked(member, unit);
	nc_pool_unlock(member);
	return error;
}

static int grow_run(struct nc_member *member, struct nc_unit *unit, size_t extent)
{
	struct nc_store *store = unit->store;
	size_t old = unit->layout.extent;
	int error;

	nc_pool_lock(member);
	error = nc_store_extend(store, unit, extent);
	if (!error)
		rank_locked(member, unit);
	nc_pool_unlock(member);
	if (error)
		return -EXDEV;
	if (store->kind == NC_KIND_RECYCLED && member->protect)
		error = nc_segment_unprotect(&store->segment, unit->at + old, extent - old);
	if (error)
		nc_member_trim(member, unit, old);
	return error;
}

int nc_member_grow(struct nc_member *member, struct nc_unit *unit, size_t extent)
{
	if (unit->store->alone)
		return grow_alone(member, unit, extent);
	/* A unit of that size has a store of its own: nc_member_alloc(). */
	if (!member->shared && extent > member->segment_size / 2)
		return -EXDEV;
	return grow_run(member, unit, extent);
}
