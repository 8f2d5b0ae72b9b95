/* SPDX-License-Identifier: MIT */
/*
 * member-unit.c - the life cycle of a unit from insert to reclaim; see member.h.
 *
 * Looking up and holding a unit touch only its word.  Its memory is reclaimed under
 * the member's lock when an unlinked unit loses its last hold (in an attached
 * process also only after the owner marked it dropped).
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <nabc.h>

#include "base/fragment.h"
#include "os/device.h"
#include "policy/expiry.h"
#include "policy/replacement.h"
#include "store/member.h"
#include "store/memory-wait.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

/* In an attached process, the owner may still use the unit: reclaims it only if it does not. */
static void reclaim_locked(struct nc_member *member, struct nc_unit *unit)
{
	struct nc_unit_shared *entry;
	unsigned generation;
	uint64_t word;

	if (!member->shared) {
		nc_pool_give(member, unit);
		return;
	}
	entry = &member->shared[unit->slot];
	generation = nc_word_generation(nc_unit_word(unit));
	/* Pairs with the release in unhold_locked(): the owner does not read the bytes any more. */
	word = atomic_load_explicit(&entry->word, memory_order_acquire);
	for (;;) {
		bool busy = word == nc_shared_word(generation, NC_SHARED_BUSY) ||
			    word == nc_shared_word(generation, NC_SHARED_UNLINKED);
		uint64_t next =
			nc_shared_word(generation, busy ? NC_SHARED_UNLINKED : NC_SHARED_FREE);

		if (atomic_compare_exchange_weak_explicit(&entry->word, &word, next,
							  memory_order_acq_rel,
							  memory_order_acquire)) {
			unit->parked = busy;
			if (!busy)
				nc_pool_give(member, unit);
			return;
		}
	}
}

void nc_member_abandon(struct nc_member *member, struct nc_unit *unit)
{
	nc_pool_lock(member);
	nc_store_retract(unit->store, unit);
	nc_pool_give(member, unit);
	nc_pool_unlock(member);
}

static void publish_shared_locked(struct nc_member *member, const struct nc_unit *unit)
{
	struct nc_unit_shared *entry = &member->shared[unit->slot];

	/*
	 * Who sees a part of this description sees that the entry's last unit has ended.  Pairs
	 * with the fence in nc_remote_member_next().
	 */
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&entry->at, unit->at, memory_order_relaxed);
	atomic_store_explicit(&entry->size, unit->layout.size, memory_order_relaxed);
	atomic_store_explicit(&entry->fraglen, unit->layout.fraglen, memory_order_relaxed);
	atomic_store_explicit(&entry->kernel, unit->store->name, memory_order_relaxed);
	/* Pairs with the acquire of BUSY in hold_first_locked(). */
	atomic_store_explicit(
		&entry->word,
		nc_shared_word(nc_word_generation(nc_unit_word(unit)), NC_SHARED_LIVE),
		memory_order_release);
}

static void use(struct nc_member *member, struct nc_unit *unit)
{
	struct nc_replacement *order = nc_pool_order(member, unit);

	if (order)
		nc_replacement_use(order, &unit->order);
}

/* Its memory is read-only afterwards, where the kind of memory says so. */
static int freeze(struct nc_member *member, const struct nc_unit *unit)
{
	struct nc_store *store = unit->store;
	int error = 0;

	/* Grant first: an insert into the module is permanent and cannot be undone. */
	if (store->device && member->shared)
		error = nc_device_grant(store->device, store->name, member->owner_pidfd);
	return error ? error : nc_store_protect(store, unit, member->protect);
}

/* Sets when the unit expires; the heap has a place for it.  tick: 0: never. */
static int set_expiry_locked(struct nc_member *member, struct nc_unit *unit, uint32_t tick,
			     uint64_t now)
{
	struct nc_expiring entry = {.tick = tick,
				    .slot = unit->slot,
				    .generation = nc_word_generation(nc_unit_word(unit))};
	uint64_t before = nc_expiry_next(&member->expiry, now), after;
	int error = tick ? nc_expiry_add(&member->expiry, &entry) : 0;

	if (error)
		return error;
	if (atomic_exchange_explicit(&unit->expires, tick, memory_order_relaxed) != 0)
		nc_expiry_forget(&member->expiry, nc_pool_expiry_valid, member);
	after = nc_expiry_next(&member->expiry, now);
	if (after && (!before || after < before))
		nc_pool_due(member);
	return 0;
}

static uint32_t tick_of(uint64_t now, uint64_t milliseconds)
{
	return milliseconds ? nc_tick_after(now + milliseconds * 1000000u) : 0;
}

static void publish_locked(struct nc_member *member, struct nc_unit *unit,
			   const struct nc_insertion *with)
{
	if (with && with->lifetime) {
		uint64_t now = nc_clock_ns(CLOCK_MONOTONIC);

		nc_expiry_unreserve(&member->expiry);
		(void)set_expiry_locked(member, unit, tick_of(now, with->lifetime), now);
	}
	(void)nc_store_filled(unit->store);
	nc_unit_publish(unit, with && with->hold);
	nc_pool_settle(member, unit->store);
	if (member->shared)
		publish_shared_locked(member, unit);
}

int nc_member_insert(struct nc_member *member, struct nc_unit *unit,
		     const struct nc_insertion *with)
{
	bool held = with && with->hold;
	int error = freeze(member, unit);

	if (error)
		return error;
	atomic_fetch_add_explicit(&member->inserts, 1, memory_order_relaxed);
	if (unit->store->kind == NC_KIND_RECYCLED && !member->shared && !(with && with->lifetime)) {
		/* After publishing, the unit may be evicted at any moment. */
		(void)nc_store_filled(unit->store);
		nc_unit_publish(unit, held);
	} else {
		nc_pool_lock(member);
		publish_locked(member, unit, with);
		nc_pool_unlock(member);
	}
	/* Without a hold, it may be another unit by now. */
	if (held)
		use(member, unit);
	if (member->scrubs && atomic_load(&member->scrub_idle))
		nc_pool_wake(member);
	if (!held)
		nc_memory_wake(member->waiting);
	return 0;
}

bool nc_unit_expired(const struct nc_unit *unit)
{
	uint32_t tick = atomic_load_explicit(&unit->expires, memory_order_relaxed);

	return tick && nc_tick_passed(tick, nc_clock_ns(CLOCK_MONOTONIC_COARSE));
}

int nc_member_hold(struct nc_member *member, struct nc_unit *unit, unsigned generation,
		   bool unlinked)
{
	int error = nc_unit_hold(unit, generation, unlinked);

	if (error)
		return error;
	if (nc_unit_expired(unit) && !(unlinked && nc_word_holds(nc_unit_word(unit)) > 1)) {
		(void)nc_member_release(member, unit, generation);
		return -ENOENT;
	}
	use(member, unit);
	return 0;
}

bool nc_member_held(struct nc_member *member, struct nc_unit *unit, unsigned generation)
{
	if (!nc_unit_held(unit, generation))
		return false;
	use(member, unit);
	return true;
}

int nc_member_release(struct nc_member *member, struct nc_unit *unit, unsigned generation)
{
	int last = nc_unit_release(unit, generation);

	if (last < 0)
		return last;
	if (last > 0) {
		nc_pool_lock(member);
		reclaim_locked(member, unit);
		nc_pool_unlock(member);
	} else if (atomic_load(&unit->wake_on_release) &&
		   atomic_exchange(&unit->wake_on_release, false)) {
		nc_pool_wake(member);
	}
	/* It can be evicted now. */
	nc_memory_wake(member->waiting);
	return 0;
}

/* Counts a unit that was unlinked.  Returns true if it had expired, so that it did not exist. */
static bool ended_locked(struct nc_member *member, const struct nc_unit *unit, unsigned generation,
			 enum NC_eviction why)
{
	bool late = nc_unit_expired(unit);

	if (late)
		why = NC_EVICTION_LIFETIME;
	if (why != NC_EVICTION_NONE)
		nc_pool_notify_evicted(member, unit, generation, why);
	if (late)
		member->expired++;
	else
		member->destroys++;
	nc_pool_notify_if_granted(member, unit, generation);
	return late;
}

int nc_member_end(struct nc_member *member, struct nc_unit *unit, unsigned generation,
		  enum NC_eviction why)
{
	bool late = false, granted = false;
	int last;

	nc_pool_lock(member);
	last = nc_unit_unlink(unit, generation);
	if (last >= 0) {
		/* After unlinking: a thread that marks the unit later finds it unlinked. */
		granted = member->shared && atomic_load(&unit->granted);
		late = ended_locked(member, unit, generation, why);
	}
	if (last > 0)
		reclaim_locked(member, unit);
	nc_pool_unlock(member);
	if (last < 0)
		return last;
	return late ? -ENOENT : granted;
}

bool nc_member_is_full(struct nc_member *member, size_t more)
{
	bool full;

	nc_pool_lock(member);
	/* Above the low mark, not the high one, so that reclaiming ahead has nothing to do. */
	full = member->used > member->low || more > member->low - member->used;
	nc_pool_unlock(member);
	return full;
}

bool nc_member_evict(struct nc_member *member, struct nc_unit *unit, unsigned generation,
		     bool also_in_grace)
{
	bool evicted;

	nc_pool_lock(member);
	evicted = nc_word_generation(nc_unit_word(unit)) == generation &&
		  atomic_load_explicit(&unit->priority, memory_order_relaxed) < NC_PRIORITIES &&
		  (also_in_grace || !nc_unit_in_grace(unit, nc_clock_ns(CLOCK_MONOTONIC_COARSE))) &&
		  nc_pool_evict(member, unit);
	nc_pool_unlock(member);
	return evicted;
}

int nc_member_set_priority(struct nc_member *member, struct nc_unit *unit,
			   enum NC_priority priority)
{
	struct nc_replacement *from, *to;
	int error = 0;

	if ((unsigned)priority > NC_PRIORITY_PINNED)
		return -EINVAL;
	nc_pool_lock(member);
	from = nc_pool_order(member, unit);
	to = (unsigned)priority < NC_PRIORITIES ? &member->orders[priority] : NULL;
	if (from != to) {
		if (from)
			nc_replacement_remove(from, &unit->order);
		if (to)
			error = nc_replacement_add(to, &unit->order, unit->layout.extent);
		if (error && from) {
			/* Its old order still has space for it. */
			(void)nc_replacement_add(from, &unit->order, unit->layout.extent);
		} else if (!error) {
			member->pinned += !to;
			member->pinned -= !from;
			atomic_store_explicit(&unit->priority, (uint8_t)priority,
					      memory_order_relaxed);
		}
	}
	nc_pool_unlock(member);
	return error;
}

int nc_member_set_lifetime(struct nc_member *member, struct nc_unit *unit, uint64_t milliseconds)
{
	uint64_t now = nc_clock_ns(CLOCK_MONOTONIC);
	int error;

	if (milliseconds > NC_LIFETIME_MAX_MS)
		return -EINVAL;
	nc_pool_lock(member);
	error = set_expiry_locked(member, unit, tick_of(now, milliseconds), now);
	nc_pool_unlock(member);
	return error;
}

/* A unit that is being filled has the default, except after an insert that failed. */
static int prepare_priority(struct nc_member *member, struct nc_unit *unit,
			    enum NC_priority priority)
{
	if (atomic_load_explicit(&unit->priority, memory_order_relaxed) == (unsigned)priority)
		return 0;
	return nc_member_set_priority(member, unit, priority);
}

void nc_member_unprepare(struct nc_member *member, struct nc_unit *unit,
			 const struct nc_insertion *with)
{
	if (with && with->lifetime) {
		nc_pool_lock(member);
		nc_expiry_unreserve(&member->expiry);
		nc_pool_unlock(member);
	}
	/* If there is no memory for this, the next insert tries again: it sets what it needs. */
	(void)prepare_priority(member, unit, NC_PRIORITY_NORMAL);
}

int nc_member_prepare(struct nc_member *member, struct nc_unit *unit,
		      const struct nc_insertion *with)
{
	int error = prepare_priority(member, unit, with ? with->priority : NC_PRIORITY_NORMAL);

	if (error || !with || !with->lifetime)
		return error;
	nc_pool_lock(member);
	error = nc_expiry_reserve(&member->expiry);
	nc_pool_unlock(member);
	if (error)
		(void)prepare_priority(member, unit, NC_PRIORITY_NORMAL);
	return error;
}
