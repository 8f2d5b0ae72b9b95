/* SPDX-License-Identifier: MIT */
/*
 * member-growth.c - finds memory for a new unit: in an existing store, in one
 * opened for it, or after an eviction; see member.h.
 *
 * Memory is assigned under the member's lock; system calls, copies and waiting for
 * them happen without it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <nabc.h>

#include "base/fragment.h"
#include "os/segment.h"
#include "policy/expiry.h"
#include "policy/replacement.h"
#include "store/eviction.h"
#include "store/member-internal.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#define SEGMENTS_FOR_RESERVE 8u
#define COLLECT_STEPS 16u

/* Reclaims units that the owner has released, oldest first. */
static void collect_locked(struct nc_member *member, struct nc_store *store, unsigned steps)
{
	uint32_t slot = store->oldest;

	while (slot != NC_UNIT_NONE && steps--) {
		struct nc_unit *unit = nc_units_at(&member->units, slot);
		unsigned generation = nc_word_generation(nc_unit_word(unit));
		/* Pairs with the release in unhold_locked() of remote-member.c. */
		uint64_t shared =
			atomic_load_explicit(&member->shared[slot].word, memory_order_acquire);

		slot = unit->previous;
		if (shared != nc_shared_word(generation, NC_SHARED_DROPPED))
			continue;
		/* If this process holds the unit too, its last release reclaims it. */
		if (unit->parked || nc_unit_unlink(unit, generation) == 1)
			nc_pool_give(member, unit);
	}
}

/* The same for units in the kernel module, each of which has its own store. */
static void collect_lone_locked(struct nc_member *member, unsigned steps)
{
	struct nc_store *store = member->oldest;

	while (store && steps--) {
		struct nc_store *newer = store->previous;

		if (store->alone)
			collect_locked(member, store, 1);
		store = newer;
	}
}

/* Whether a unit gets its own store. */
static bool has_own_store(const struct nc_member *member, enum NC_kind kind, size_t extent)
{
	return kind == NC_KIND_SEALED || kind == NC_KIND_KERNEL ||
	       extent > member->segment_size / 2;
}

static int64_t place_in_runs_locked(struct nc_member *member, size_t extent,
				    struct nc_store **where)
{
	struct nc_store *hint = member->hint;
	int64_t at = hint ? nc_store_take(hint, extent) : -ENOMEM;

	*where = hint;
	for (struct nc_store *store = member->runs; at < 0 && store; store = store->next_run) {
		if (store == hint)
			continue;
		at = nc_store_take(store, extent);
		*where = store;
	}
	if (at >= 0)
		member->hint = *where;
	return at;
}

/* Takes memory in an existing store. */
static int64_t place_locked(struct nc_member *member, enum NC_kind kind, size_t extent,
			    struct nc_store **where)
{
	if (member->shared && kind == NC_KIND_KERNEL) {
		collect_lone_locked(member, COLLECT_STEPS);
		return -ENOMEM;
	}
	if (member->shared) {
		int64_t at;

		*where = member->runs;
		collect_locked(member, *where, COLLECT_STEPS);
		at = nc_store_take(*where, extent);
		if (at < 0) {
			collect_locked(member, *where, UINT32_MAX);
			at = nc_store_take(*where, extent);
		}
		return at;
	}
	if (has_own_store(member, kind, extent))
		return -ENOMEM;
	if (kind == NC_KIND_RECYCLED)
		return place_in_runs_locked(member, extent, where);
	*where = member->appended;
	return *where ? nc_store_take(*where, extent) : -ENOMEM;
}

/* Whether a store of the kind has a memory file. */
static bool takes_descriptor(enum NC_kind kind)
{
	return kind != NC_KIND_KERNEL;
}

/* Opens a store for one unit; it is already charged.  Releases the lock meanwhile. */
static int64_t open_alone_locked(struct nc_member *member, enum NC_kind kind, size_t extent,
				 struct nc_store **where)
{
	bool huge = member->huge && kind != NC_KIND_SEALED, counted = takes_descriptor(kind);
	int error;

	nc_pool_unlock(member);
	/*
	 * The owner of the cache cannot see a buffer, so a member's unit needs the
	 * module's memory from the start.
	 */
	*where = kind == NC_KIND_KERNEL
			 ? nc_store_create_kernel(member->device, extent, !member->shared, &error)
			 : nc_store_create(kind, extent, huge, true, &error);
	/* Memory of the module cannot be swapped out. */
	if (*where && kind != NC_KIND_KERNEL)
		nc_segment_pin(&(*where)->segment, member->pin, false);
	nc_pool_lock(member);
	if (!*where) {
		nc_pool_discharge(member, extent, counted);
		return error;
	}
	(*where)->counted = counted;
	nc_pool_add_store(member, *where);
	error = (int)nc_store_take(*where, extent);
	(*where)->full = true;
	return error;
}

/*
 * The log has just used the last of the budget.  The next compaction needs memory
 * to copy to, so do it while there still is some.
 */
static void keep_reserve_locked(struct nc_member *member, enum NC_kind kind)
{
	if (kind == NC_KIND_APPENDED && member->used + member->segment_size > member->budget &&
	    member->budget / member->segment_size >= SEGMENTS_FOR_RESERVE)
		(void)nc_eviction_ahead(member);
}

/* Tries the next way to free memory or a descriptor.  Returns 0, or -errno if none is left. */
static int free_something_locked(struct nc_member *member, enum NC_kind kind, size_t extent)
{
	bool alone = has_own_store(member, kind, extent);
	uint32_t pages = (uint32_t)(extent / NC_PAGE);
	bool run = kind == NC_KIND_RECYCLED && !alone;
	size_t size = alone ? extent : member->segment_size;
	int error;

	if (run && nc_eviction_run(member, pages, false) == 0)
		return 0;
	error = nc_pool_fits(member, size) ? nc_eviction_descriptor(member)
					   : nc_eviction_free(member, size);
	if (error && run && nc_eviction_run(member, pages, true) == 0)
		return 0;
	return error;
}

static bool may_charge(const struct nc_member *member, size_t size, bool counted)
{
	return nc_pool_fits(member, size) && (!counted || nc_pool_has_descriptor(member));
}

/* Takes memory in a store opened for it, or after an eviction.  Releases the lock meanwhile. */
static int64_t grow_locked(struct nc_member *member, enum NC_kind kind, size_t extent,
			   struct nc_store **where)
{
	bool alone = has_own_store(member, kind, extent), opened = false;
	size_t size = alone ? extent : member->segment_size;
	bool counted = takes_descriptor(kind);
	int64_t at;

	if (alone && may_charge(member, size, counted)) {
		nc_pool_charge(member, size, counted);
		at = open_alone_locked(member, kind, extent, where);
		if (at != -EMFILE)
			return at;
	}
	nc_pool_unlock(member);
	pthread_mutex_lock(&member->growing);
	nc_pool_lock(member);
	for (;;) {
		int error;

		at = place_locked(member, kind, extent, where);
		if (at >= 0)
			break;
		if (may_charge(member, size, counted)) {
			nc_pool_charge(member, size, counted);
			if (alone) {
				at = open_alone_locked(member, kind, extent, where);
				error = at < 0 ? (int)at : 0;
			} else {
				error = nc_eviction_open(member, kind);
				opened = !error;
			}
			/* Out of descriptors: evict something to close one. */
			if (error == -EMFILE && nc_eviction_ahead(member))
				continue;
			if (alone)
				break;
		} else {
			error = free_something_locked(member, kind, extent);
		}
		if (error) {
			at = error;
			break;
		}
	}
	if (at >= 0)
		/* Keeps the store open while the reserve is created. */
		atomic_fetch_add_explicit(&(*where)->filling, 1, memory_order_relaxed);
	if (opened)
		keep_reserve_locked(member, kind);
	if (at >= 0)
		(void)nc_store_filled(*where);
	nc_member_leave_growing_locked(member);
	return at;
}

/*
 * Takes memory in the module for an attached member, at most as much as its
 * segment.  Releases the lock meanwhile.
 */
static int64_t grow_attached_locked(struct nc_member *member, size_t extent,
				    struct nc_store **where)
{
	if (extent > member->budget - member->used)
		collect_lone_locked(member, UINT32_MAX);
	if (extent > member->budget - member->used)
		return -ENOSPC;
	nc_pool_charge(member, extent, false);
	return open_alone_locked(member, NC_KIND_KERNEL, extent, where);
}

static struct nc_unit *take_slot_locked(struct nc_member *member)
{
	struct nc_unit *unit = nc_units_take(&member->units);

	if (unit)
		return unit;
	if (member->shared) {
		/* Memory was available, so returned slots were not collected yet. */
		collect_locked(member, member->runs, UINT32_MAX);
		collect_lone_locked(member, UINT32_MAX);
	} else if (nc_eviction_slot(member)) {
		return NULL;
	}
	return nc_units_take(&member->units);
}

static int enter_locked(struct nc_member *member, const struct nc_layout *layout,
			struct nc_store *store, uint64_t at, struct nc_unit **entered)
{
	struct nc_unit *unit = take_slot_locked(member);
	struct nc_replacement *order;

	if (!unit) {
		member->failures_table++;
		return -ENOMEM;
	}
	unit->layout = *layout;
	unit->sums = NULL;
	unit->sum_size = 0;
	atomic_store_explicit(&unit->summed, NC_SUMS_NONE, memory_order_relaxed);
	nc_unit_end_grace(unit);
	order = nc_pool_order(member, unit);
	if (order && nc_replacement_add(order, &unit->order, layout->extent)) {
		nc_units_give(&member->units, unit);
		return -ENOMEM;
	}
	nc_pool_enter(member, store, unit, at);
	*entered = unit;
	return 0;
}

static int refused_locked(struct nc_member *member, int error)
{
	if (error == -ENOMEM)
		member->failures++;
	else if (error != -ENOSPC) /* -ENOSPC: the caller falls back to other memory */
		member->failures_system++;
	nc_pool_unlock(member);
	return error;
}

int nc_member_alloc(struct nc_member *member, const struct nc_layout *layout, enum NC_kind kind,
		    struct nc_unit **unit)
{
	size_t extent = layout->extent;
	struct nc_store *store;
	bool last;
	int error;
	int64_t at;

	nc_pool_lock(member);
	at = place_locked(member, kind, extent, &store);
	if (at < 0 && !member->shared)
		at = grow_locked(member, kind, extent, &store);
	else if (at < 0 && kind == NC_KIND_KERNEL)
		at = grow_attached_locked(member, extent, &store);
	if (at < 0)
		return refused_locked(member, (int)at);
	error = enter_locked(member, layout, store, (uint64_t)at, unit);
	if (error) {
		nc_store_untake(store, (uint64_t)at, extent);
		nc_pool_settle(member, store);
		return refused_locked(member, error);
	}
	last = nc_store_is_last(*unit);
	nc_pool_unlock(member);
	/* The store remains open while the unit is being filled. */
	if (kind == NC_KIND_APPENDED && last)
		nc_store_prepare_last(*unit);
	else if (kind == NC_KIND_RECYCLED && member->protect)
		error = nc_segment_unprotect(&store->segment, (size_t)at, extent);
	if (error)
		nc_member_abandon(member, *unit);
	return error;
}

int nc_member_adopt(struct nc_member *member, const struct nc_segment *segment,
		    const struct nc_layout *layout, struct nc_unit **unit)
{
	struct nc_store *store;
	int error;

	pthread_mutex_lock(&member->growing);
	nc_pool_lock(member);
	error = nc_eviction_free(member, segment->size);
	nc_member_leave_growing_locked(member);
	if (error)
		return refused_locked(member, error);
	store = nc_store_over_frozen(segment, &error);
	if (!store)
		return refused_locked(member, error);
	store->full = true;
	error = enter_locked(member, layout, store, 0, unit);
	if (error) {
		/* The caller still owns the segment. */
		store->segment = (struct nc_segment){.fd = -1};
		nc_store_close(store);
		return refused_locked(member, error);
	}
	member->used += segment->size;
	nc_pool_add_store(member, store);
	(void)nc_store_filled(store);
	atomic_fetch_add_explicit(&member->inserts, 1, memory_order_relaxed);
	nc_unit_begin_grace(*unit, nc_clock_ns(CLOCK_MONOTONIC_COARSE));
	nc_unit_publish(*unit, 1);
	nc_pool_unlock(member);
	return 0;
}

/* Reserves budget for a copy; in an attached member nothing can be evicted for it. */
static int reserve_locked(struct nc_member *member, size_t size)
{
	if (!member->shared)
		return nc_eviction_free(member, size);
	return size <= member->budget - member->used ? 0 : -ENOMEM;
}

int nc_member_fetch(struct nc_member *member, struct nc_unit *unit)
{
	struct nc_store *store = unit->store;
	size_t size = store->segment.size;
	int error = 0, fetched = 0;

	pthread_mutex_lock(&member->growing);
	nc_pool_lock(member);
	/* Another thread may have fetched it meanwhile. */
	if (!nc_unit_present(unit)) {
		error = reserve_locked(member, size);
		if (!error) {
			member->used += size;
			nc_pool_unlock(member);
			error = nc_store_fetch(store, unit->layout.size, member->pin);
			nc_pool_lock(member);
			store->copied = error ? 0 : size;
			member->used -= error ? size : 0;
			fetched = !error;
		}
	}
	nc_member_leave_growing_locked(member);
	nc_pool_unlock(member);
	return error ? error : fetched;
}
