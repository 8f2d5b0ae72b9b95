/* SPDX-License-Identifier: MIT */
/*
 * member.c - this process's own units; see member.h.
 *
 * Naming and holding a unit touches its word alone.  Memory moves under the
 * member's lock: taken at alloc, given back when an unlinked unit loses its last
 * hold (and, in an attached process, when the owner has marked it dropped).
 * System calls, copies and waiting for either are outside of it.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/id.h"
#include "base/lock.h"
#include "store/member.h"
#include "store/eviction.h"

#define SEGMENT_MIN ((size_t)256 << 10)
#define SEGMENT_MAX ((size_t)8 << 20)
#define SEGMENT_LIMIT ((size_t)8 << 40) /* with few descriptors: pages are counted in 32 bits */
#define SEGMENTS_AIMED_AT 32u
#define SEGMENTS_FOR_RESERVE 8u
#define COLLECT_STEPS 16u
#define HIGH_WATER 95u
#define LOW_WATER 90u
#define CLEAN_LIMIT 50u
#define CLEAN_LIMIT_MAX 90u
#define DESCRIPTORS_MIN 4u
#define DESCRIPTORS_SHARE 4u /* by default, of those that the process may have */

static int member_init(struct nc_member *member, unsigned number, uint32_t slots,
		       uint32_t generation)
{
	*member = (struct nc_member){.number = number, .max_descriptors = UINT_MAX};
	for (unsigned i = 0; i < NC_PRIORITIES; i++)
		(void)nc_replacement_init(&member->orders[i], NC_POLICY_DEFAULT);
	pthread_mutex_init(&member->growing, NULL);
	nc_lock_init(&member->lock);
	return nc_units_init(&member->units, slots, generation);
}

static size_t percent(size_t of, unsigned percent)
{
	return of / 100 * percent + of % 100 * percent / 100;
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
	member->high = percent(budget, HIGH_WATER);
	member->low = percent(budget, LOW_WATER);
	member->clean_limit = CLEAN_LIMIT;
	return error;
}

static unsigned default_descriptors(void)
{
	struct rlimit limit;
	rlim_t share;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return DESCRIPTORS_MIN;
	share = limit.rlim_cur / DESCRIPTORS_SHARE;
	if (share < DESCRIPTORS_MIN)
		return DESCRIPTORS_MIN;
	return share < UINT_MAX ? (unsigned)share : UINT_MAX;
}

/*
 * With few descriptors segments are larger: half of the descriptors are enough
 * for the whole budget, and so are all of them for units that stand alone.
 */
static void bound_descriptors(struct nc_member *member, unsigned descriptors)
{
	size_t size = member->budget / (descriptors / 2);

	member->max_descriptors = descriptors;
	if (member->segment_size < size)
		member->segment_size = (size + NC_PAGE - 1) / NC_PAGE * NC_PAGE;
	if (member->segment_size > SEGMENT_LIMIT)
		member->segment_size = SEGMENT_LIMIT;
}

int nc_member_configure(struct nc_member *member, const struct NC_cache_options *options)
{
	unsigned high = options->high_water ? options->high_water : HIGH_WATER;
	unsigned low = options->low_water ? options->low_water : LOW_WATER;

	/* A low mark that is left to us follows the high one. */
	if (!options->low_water && low > high)
		low = high;
	if (high > 100 || low > high || options->clean_limit > CLEAN_LIMIT_MAX ||
	    (options->max_descriptors && options->max_descriptors < DESCRIPTORS_MIN))
		return -EINVAL;
	for (unsigned i = 0; i < NC_PRIORITIES; i++) {
		int error = nc_replacement_init(&member->orders[i], options->policy);

		if (error)
			return error;
	}
	member->high = percent(member->budget, high);
	member->low = percent(member->budget, low);
	if (options->clean_limit)
		member->clean_limit = options->clean_limit;
	member->protect = options->flags & NC_CACHE_PROTECT;
	bound_descriptors(member, options->max_descriptors ? options->max_descriptors
							   : default_descriptors());
	return 0;
}

int nc_member_init_attached(struct nc_member *member, unsigned number,
			    const struct nc_segment *segment, size_t first, uint32_t slots,
			    uint32_t generation)
{
	struct nc_store *store;
	int error = member_init(member, number, slots, generation);

	if (error)
		return error;
	store = nc_store_over(segment, first, &error);
	if (!store) {
		nc_units_fini(&member->units);
		return error;
	}
	member->shared = (struct nc_unit_shared *)(void *)segment->base;
	member->budget = member->used = member->high = segment->size;
	nc_pool_add_store(member, store);
	return 0;
}

void nc_member_use_device(struct nc_member *member, struct nc_device *device, int owner_pidfd)
{
	member->device = device;
	member->owner_pidfd = owner_pidfd;
	member->pid = getpid();
	if (member->shared)
		member->budget = member->high = 2 * member->used;
}

bool nc_member_has_device(const struct nc_member *member)
{
	return member->device && (!member->shared || atomic_load_explicit(&member->shared[0].maker,
									  memory_order_relaxed) ==
							     (uint64_t)member->pid);
}

void nc_member_fini(struct nc_member *member)
{
	while (member->stores) {
		struct nc_store *store = member->stores;

		member->stores = store->next;
		nc_store_close(store);
	}
	nc_units_fini(&member->units);
	nc_expiry_fini(&member->expiry);
	for (unsigned i = 0; i < NC_PRIORITIES; i++)
		nc_replacement_fini(&member->orders[i]);
	pthread_mutex_destroy(&member->growing);
	pthread_mutex_destroy(&member->lock);
}

/* The collector may have found this thread here and left. */
static void leave_growing_locked(struct nc_member *member)
{
	if (member->used > member->high || member->empties > 1)
		nc_pool_due(member);
	pthread_mutex_unlock(&member->growing);
}

uint32_t nc_member_filling(struct nc_member *member)
{
	uint32_t filling = 0;

	/* Without the cleaner's copies on their way in. */
	pthread_mutex_lock(&member->growing);
	nc_pool_lock(member);
	for (struct nc_store *store = member->stores; store; store = store->next)
		filling += atomic_load_explicit(&store->filling, memory_order_acquire);
	leave_growing_locked(member);
	nc_pool_unlock(member);
	return filling;
}

/* --- the end of a unit ------------------------------------------------------ */

/* In an attached process, the owner has a say: reclaims only what it left. */
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
		if (unit->parked || nc_unit_unlink(unit, generation) == 1)
			nc_pool_give(member, unit);
	}
}

/* The same of units in the kernel module, each of which has a store of its own. */
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

/* --- memory ------------------------------------------------------------------- */

/* Whether a unit gets a store of its own. */
static bool stands_alone(const struct nc_member *member, enum NC_kind kind, size_t extent)
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

/* Memory in a store that is there already. */
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
	if (stands_alone(member, kind, extent))
		return -ENOMEM;
	if (kind == NC_KIND_RECYCLED)
		return place_in_runs_locked(member, extent, where);
	*where = member->appended;
	return *where ? nc_store_take(*where, extent) : -ENOMEM;
}

/* Whether a store of the kind has a file. */
static bool takes_descriptor(enum NC_kind kind)
{
	return kind != NC_KIND_KERNEL;
}

/* A store of its own for the unit, which is charged already.  Leaves the lock. */
static int64_t open_alone_locked(struct nc_member *member, enum NC_kind kind, size_t extent,
				 struct nc_store **where)
{
	bool huge = member->huge && kind != NC_KIND_SEALED, counted = takes_descriptor(kind);
	int error;

	nc_pool_unlock(member);
	*where = kind == NC_KIND_KERNEL ? nc_store_create_kernel(member->device, extent, &error)
					: nc_store_create(kind, extent, huge, true, &error);
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
 * The log has just taken the last of the budget: the next cleaning needs room
 * to copy to, so it is done while there is some.
 */
static void keep_reserve_locked(struct nc_member *member, enum NC_kind kind)
{
	if (kind == NC_KIND_APPENDED && member->used + member->segment_size > member->budget &&
	    member->budget / member->segment_size >= SEGMENTS_FOR_RESERVE)
		(void)nc_eviction_ahead(member);
}

/* The next thing to try without the memory or the descriptor: 0, or -errno: no more can be done. */
static int make_room_locked(struct nc_member *member, enum NC_kind kind, size_t extent)
{
	bool alone = stands_alone(member, kind, extent);
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

/* Memory in a store that is opened for it, or once something went.  Leaves the lock. */
static int64_t grow_locked(struct nc_member *member, enum NC_kind kind, size_t extent,
			   struct nc_store **where)
{
	bool alone = stands_alone(member, kind, extent), opened = false;
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
			/* With the last descriptor in use, one that nobody needs must go first. */
			if (error == -EMFILE && nc_eviction_ahead(member))
				continue;
			if (alone)
				break;
		} else {
			error = make_room_locked(member, kind, extent);
		}
		if (error) {
			at = error;
			break;
		}
	}
	if (at >= 0)
		/* Nobody takes it away while the reserve is made. */
		atomic_fetch_add_explicit(&(*where)->filling, 1, memory_order_relaxed);
	if (opened)
		keep_reserve_locked(member, kind);
	if (at >= 0)
		(void)nc_store_filled(*where);
	leave_growing_locked(member);
	return at;
}

/* A member's own unit in the module, within as much as its segment.  Leaves the lock. */
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
		/* There is memory, so nobody has looked yet whether slots came back. */
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
	else if (error != -ENOSPC) /* then there is other memory */
		member->failures_system++;
	nc_pool_unlock(member);
	return error;
}

int nc_member_alloc(struct nc_member *member, const struct nc_layout *layout, enum NC_kind kind,
		    struct nc_unit **unit)
{
	size_t extent = layout->extent;
	struct nc_store *store;
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
	nc_pool_unlock(member);
	/* The store stays while the unit is being filled. */
	if (kind == NC_KIND_APPENDED)
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
	leave_growing_locked(member);
	if (error)
		return refused_locked(member, error);
	store = nc_store_over_frozen(segment, &error);
	if (!store)
		return refused_locked(member, error);
	store->full = true;
	error = enter_locked(member, layout, store, 0, unit);
	if (error) {
		/* The segment is still the caller's. */
		store->segment = (struct nc_segment){.fd = -1};
		nc_store_close(store);
		return refused_locked(member, error);
	}
	member->used += segment->size;
	nc_pool_add_store(member, store);
	(void)nc_store_filled(store);
	atomic_fetch_add_explicit(&member->inserts, 1, memory_order_relaxed);
	nc_unit_begin_grace(*unit, nc_clock_ns(CLOCK_MONOTONIC_COARSE));
	nc_unit_publish(*unit);
	/* Before it can be evicted. */
	(void)nc_unit_hold(*unit, nc_word_generation(nc_unit_word(*unit)), false);
	nc_pool_unlock(member);
	return 0;
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

	atomic_store_explicit(&entry->at, unit->at, memory_order_relaxed);
	atomic_store_explicit(&entry->size, unit->layout.size, memory_order_relaxed);
	atomic_store_explicit(&entry->fraglen, unit->layout.fraglen, memory_order_relaxed);
	atomic_store_explicit(&entry->kernel, unit->store->name, memory_order_relaxed);
	atomic_store_explicit(
		&entry->word,
		nc_shared_word(nc_word_generation(nc_unit_word(unit)), NC_SHARED_LIVE),
		memory_order_release);
}

int nc_member_insert(struct nc_member *member, struct nc_unit *unit)
{
	struct nc_store *store = unit->store;
	int error = 0;

	/* First, since what is in the module for good cannot be taken back. */
	if (store->device && member->shared)
		error = nc_device_grant(store->device, store->name, member->owner_pidfd);
	if (!error)
		error = nc_store_protect(store, unit, member->protect);
	if (error)
		return error;
	atomic_fetch_add_explicit(&member->inserts, 1, memory_order_relaxed);
	if (store->kind == NC_KIND_RECYCLED && !member->shared) {
		/* Once it is published it may go at any moment. */
		(void)nc_store_filled(store);
		nc_unit_publish(unit);
	} else {
		nc_pool_lock(member);
		(void)nc_store_filled(store);
		nc_unit_publish(unit);
		nc_pool_settle(member, store);
		if (member->shared)
			publish_shared_locked(member, unit);
		nc_pool_unlock(member);
	}
	if (member->scrubs && atomic_load(&member->scrub_idle))
		nc_pool_wake(member);
	return 0;
}

/* Room in the budget for a copy; nothing of a member's own can go for it. */
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
	/* Somebody may have been quicker. */
	if (!nc_unit_present(unit)) {
		error = reserve_locked(member, size);
		if (!error) {
			member->used += size;
			nc_pool_unlock(member);
			error = nc_store_fetch(store, unit->layout.size);
			nc_pool_lock(member);
			store->copied = error ? 0 : size;
			member->used -= error ? size : 0;
			fetched = !error;
		}
	}
	leave_growing_locked(member);
	nc_pool_unlock(member);
	return error ? error : fetched;
}

/* --- use ----------------------------------------------------------------------- */

bool nc_unit_expired(const struct nc_unit *unit)
{
	uint32_t tick = atomic_load_explicit(&unit->expires, memory_order_relaxed);

	return tick && nc_tick_passed(tick, nc_clock_ns(CLOCK_MONOTONIC_COARSE));
}

static void use(struct nc_member *member, struct nc_unit *unit)
{
	struct nc_replacement *order = nc_pool_order(member, unit);

	if (order)
		nc_replacement_use(order, &unit->order);
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
	return 0;
}

int nc_member_destroy(struct nc_member *member, struct nc_unit *unit, unsigned generation)
{
	bool late = false;
	int last;

	nc_pool_lock(member);
	last = nc_unit_unlink(unit, generation);
	if (last >= 0) {
		late = nc_unit_expired(unit);
		if (late)
			member->expired++;
		else
			member->destroys++;
		nc_pool_tell_if_granted(member, unit, generation);
	}
	if (last > 0)
		reclaim_locked(member, unit);
	nc_pool_unlock(member);
	if (last < 0)
		return last;
	return late ? -ENOENT : 0;
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
			/* Where it was there is room for it. */
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
	uint64_t before, after;
	struct nc_expiring entry = {.slot = unit->slot,
				    .generation = nc_word_generation(nc_unit_word(unit))};
	int error = 0;

	if (milliseconds > NC_LIFETIME_MAX_MS)
		return -ERANGE;
	if (milliseconds)
		entry.tick = nc_tick_after(now + milliseconds * 1000000u);
	nc_pool_lock(member);
	before = nc_expiry_next(&member->expiry, now);
	if (entry.tick)
		error = nc_expiry_add(&member->expiry, &entry);
	if (!error) {
		bool stale = atomic_exchange_explicit(&unit->expires, entry.tick,
						      memory_order_relaxed) != 0;

		if (stale)
			nc_expiry_forget(&member->expiry, nc_pool_expiry_valid, member);
		after = nc_expiry_next(&member->expiry, now);
		if (after && (!before || after < before))
			nc_pool_due(member);
	}
	nc_pool_unlock(member);
	return error;
}
