/* SPDX-License-Identifier: MIT */
/*
 * remote-member.c - the owner's view of a member; see remote-member.h.
 *
 * In a unit's word here, generation is the lowest that may still be looked up; FREE
 * means not held, LIVE held, UNLINKED held and to be returned to the member.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/fragment.h"
#include "base/id.h"
#include "base/lock.h"
#include "cache/remote-member.h"
#include "os/device.h"
#include "os/identity.h"
#include "os/pin.h"
#include "os/segment.h"
#include "store/memory-wait.h"
#include "store/store.h"
#include "store/unit.h"

/*
 * A member that claimed to have used all generations of its number would cause the
 * number to be retired, and numbers are few.  So a claim is refused if it exceeds
 * what the fastest member could insert per slot: sixteen million a second.
 */
#define GENERATIONS_AT_ONCE 65536u
#define GENERATIONS_A_MILLISECOND 16384u

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
	return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static bool plausible(const struct nc_remote_member *remote, uint64_t generation)
{
	if (generation > NC_ID_GENERATION_MAX)
		return false;
	if (generation <= (uint64_t)remote->generation + GENERATIONS_AT_ONCE)
		return true;
	return (generation - remote->generation - GENERATIONS_AT_ONCE) /
		       GENERATIONS_A_MILLISECOND <=
	       (uint64_t)(now() - remote->admitted);
}

struct nc_remote_member *nc_remote_member_create(unsigned number, uint32_t generation)
{
	struct nc_remote_member *remote = calloc(1, sizeof(*remote));

	if (!remote)
		return NULL;
	remote->number = number;
	remote->generation = generation;
	nc_lock_init(&remote->lock);
	return remote;
}

static struct nc_unit_shared *entry_at(const struct nc_remote_member *remote, uint32_t slot)
{
	return (struct nc_unit_shared *)(void *)remote->store->segment.base + slot;
}

/* Closes the store of a unit that was held, unless it is the segment. */
static void leave_store(struct nc_remote_member *remote, struct nc_unit *unit)
{
	if (unit->store != remote->store) {
		remote->copied -= unit->store->copied;
		nc_store_close(unit->store);
	}
	unit->store = NULL;
}

static void close_locked(struct nc_remote_member *remote)
{
	/* The cache may be closed while units are held. */
	for (uint32_t slot = 0; remote->held && slot < remote->slots; slot++) {
		struct nc_unit *unit = nc_units_at(&remote->units, slot);

		if (unit && unit->store)
			leave_store(remote, unit);
	}
	if (remote->pin)
		nc_pin_forget_member(remote->pin, remote->store->segment.size);
	nc_store_close(remote->store);
	nc_units_fini(&remote->units);
	remote->store = NULL;
}

void nc_remote_member_free(struct nc_remote_member *remote)
{
	if (!remote)
		return;
	if (remote->store)
		close_locked(remote);
	pthread_mutex_destroy(&remote->lock);
	free(remote);
}

bool nc_remote_member_vacant(struct nc_remote_member *remote)
{
	bool vacant;

	pthread_mutex_lock(&remote->lock);
	vacant = !remote->store && remote->generation <= NC_ID_GENERATION_MAX;
	pthread_mutex_unlock(&remote->lock);
	return vacant;
}

int nc_remote_member_admit(struct nc_remote_member *remote, size_t size, uint32_t slots,
			   size_t *first)
{
	size_t table = (slots * sizeof(struct nc_unit_shared) + NC_PAGE - 1) / NC_PAGE * NC_PAGE;
	struct nc_segment segment;
	int error;

	if (size <= table || size % NC_PAGE)
		return -EINVAL;
	error = nc_segment_create(&segment, size, false, true);
	if (error)
		return error;
	if (remote->pin)
		nc_pin_expect_member(remote->pin, size);
	nc_segment_pin(&segment, remote->pin, false);
	pthread_mutex_lock(&remote->lock);
	error = nc_units_init(&remote->units, slots, remote->generation);
	if (!error)
		remote->store = nc_store_over(&segment, table, &error);
	if (error) {
		nc_units_fini(&remote->units);
		nc_segment_close(&segment);
		if (remote->pin)
			nc_pin_forget_member(remote->pin, size);
	} else {
		remote->slots = slots;
		remote->held = 0;
		remote->admitted = now();
		remote->alive = true;
		remote->pid = 0;
		remote->pidfd = -1;
		*first = table;
	}
	pthread_mutex_unlock(&remote->lock);
	return error;
}

/*
 * The next member with this number starts above every generation that this one can
 * have used.  The member's own claims count, since other processes may have learned
 * ids without the owner.
 */
static void raise_generation_locked(struct nc_remote_member *remote)
{
	uint64_t highest = remote->generation;

	for (uint32_t slot = 0; slot < remote->slots; slot++) {
		struct nc_unit *unit = nc_units_at(&remote->units, slot);
		/* Only the number counts, and the kernel orders the end of a process before this. */
		uint64_t claimed =
			atomic_load_explicit(&entry_at(remote, slot)->word, memory_order_relaxed) >>
			4;

		if (claimed > highest && plausible(remote, claimed))
			highest = claimed;
		if (unit && nc_word_generation(nc_unit_word(unit)) > highest)
			highest = nc_word_generation(nc_unit_word(unit));
	}
	remote->generation =
		highest < NC_ID_GENERATION_MAX ? (uint32_t)highest + 1 : NC_ID_GENERATION_MAX + 1;
}

void nc_remote_member_identify(struct nc_remote_member *remote, struct nc_device *device, pid_t pid,
			       int pidfd)
{
	pthread_mutex_lock(&remote->lock);
	remote->device = device && nc_device_usable(device) ? device : NULL;
	remote->pid = pid;
	remote->pidfd = pidfd;
	/* Nothing is published with it: nc_member_has_device() needs only the number. */
	if (remote->store)
		atomic_store_explicit(&entry_at(remote, 0)->maker,
				      remote->device && pid > 0 ? (uint64_t)pid : 0,
				      memory_order_relaxed);
	pthread_mutex_unlock(&remote->lock);
}

void nc_remote_member_detach(struct nc_remote_member *remote)
{
	pthread_mutex_lock(&remote->lock);
	if (remote->store && remote->alive) {
		remote->alive = false;
		raise_generation_locked(remote);
		if (remote->held == 0)
			close_locked(remote);
	}
	pthread_mutex_unlock(&remote->lock);
}

/*
 * Whether the module has such a unit and this member's process made it.  A unit of
 * another process may be granted to the owner, but this member must not pass it on.
 * The maker's pid is valid if the process still runs.
 */
static bool is_own(const struct nc_remote_member *remote,
		   const struct nc_unit_description *description)
{
	struct nc_device_unit unit;

	return remote->device && remote->pid > 0 &&
	       nc_device_stat(remote->device, description->kernel, &unit) == 0 && unit.sendable &&
	       unit.size == description->layout.size && unit.maker == remote->pid &&
	       !nc_identity_ended(remote->pidfd);
}

/* Returns the store of the unit; NULL: its description is false, or it no longer exists. */
static struct nc_store *store_of_locked(struct nc_remote_member *remote,
					const struct nc_unit_description *description)
{
	int error;

	if (!description->kernel)
		return remote->store;
	return is_own(remote, description)
		       ? nc_store_borrow_kernel(remote->device, description->kernel,
						&description->layout, remote->pin, &error)
		       : NULL;
}

/* Returns the memory of a unit to the member, and wakes its thread that waits for some. */
static void drop_entry_locked(struct nc_remote_member *remote, struct nc_unit_shared *entry,
			      unsigned generation)
{
	/* Sequentially consistent with the flag: see nc_memory_expect(). */
	atomic_store(&entry->word, nc_shared_word(generation, NC_SHARED_DROPPED));
	nc_memory_wake(&entry_at(remote, 0)->waiting);
}

static int hold_first_locked(struct nc_remote_member *remote, struct nc_unit *unit,
			     unsigned generation)
{
	struct nc_unit_shared *entry = entry_at(remote, unit->slot);
	uint64_t live = nc_shared_word(generation, NC_SHARED_LIVE);
	struct nc_unit_description description;
	struct nc_store *store = NULL;

	/* The exchange pairs with the release in publish_shared_locked(). */
	if (generation < nc_word_generation(nc_unit_word(unit)) || !remote->alive ||
	    !plausible(remote, generation) ||
	    !atomic_compare_exchange_strong_explicit(&entry->word, &live,
						     nc_shared_word(generation, NC_SHARED_BUSY),
						     memory_order_acq_rel, memory_order_relaxed))
		return -ENOENT;
	if (nc_shared_snapshot(entry, remote->store->first, remote->store->segment.size,
			       &description) == 0)
		store = store_of_locked(remote, &description);
	if (!store) {
		drop_entry_locked(remote, entry, generation);
		return -EPROTO;
	}
	unit->layout = description.layout;
	unit->at = description.at;
	unit->store = store;
	unit->sums = NULL;
	atomic_store_explicit(&unit->word, nc_word(generation, NC_UNIT_LIVE, 1),
			      memory_order_release);
	remote->held++;
	return 0;
}

/*
 * Adds a hold to a unit that is held.  The member may have destroyed it meanwhile,
 * which only its entry shows; then no other process can hold it.
 */
static int hold_again_locked(struct nc_remote_member *remote, struct nc_unit *unit,
			     unsigned generation, bool unlinked)
{
	uint64_t word =
		atomic_load_explicit(&entry_at(remote, unit->slot)->word, memory_order_acquire);

	if (!unlinked && word != nc_shared_word(generation, NC_SHARED_BUSY)) {
		(void)nc_unit_unlink(unit, generation);
		return -ENOENT;
	}
	return nc_unit_hold(unit, generation, unlinked);
}

int nc_remote_member_hold(struct nc_remote_member *remote, uint32_t slot, unsigned generation,
			  bool unlinked, struct nc_unit **unit)
{
	int error = -ENOENT;

	pthread_mutex_lock(&remote->lock);
	if (remote->store && slot < remote->slots && generation >= remote->units.generation)
		*unit = nc_units_reach(&remote->units, slot);
	else
		*unit = NULL;
	if (*unit) {
		uint64_t word = nc_unit_word(*unit);

		if (nc_word_holds(word) == 0)
			error = hold_first_locked(remote, *unit, generation);
		else if (remote->alive || unlinked)
			error = hold_again_locked(remote, *unit, generation, unlinked);
	}
	pthread_mutex_unlock(&remote->lock);
	return error;
}

/* The last hold is released: returns the unit to the member, or makes it ready to be held again. */
static void unhold_locked(struct nc_remote_member *remote, struct nc_unit *unit,
			  unsigned generation, bool unlinked)
{
	struct nc_unit_shared *entry = entry_at(remote, unit->slot);
	uint64_t busy = nc_shared_word(generation, NC_SHARED_BUSY);

	/* Both pair with the acquires in reclaim_locked() and collect_locked() of the member. */
	if (unlinked || !atomic_compare_exchange_strong_explicit(
				&entry->word, &busy, nc_shared_word(generation, NC_SHARED_LIVE),
				memory_order_acq_rel, memory_order_relaxed)) {
		/* The member destroyed it meanwhile, or wrote an invalid value. */
		drop_entry_locked(remote, entry, generation);
		if (generation < NC_ID_GENERATION_MAX)
			generation++;
	}
	atomic_store_explicit(&unit->word, nc_word(generation, NC_UNIT_FREE, 0),
			      memory_order_release);
	leave_store(remote, unit);
	remote->held--;
	if (remote->held == 0 && !remote->alive)
		close_locked(remote);
}

int nc_remote_member_fetch(struct nc_remote_member *remote, struct nc_unit *unit)
{
	struct nc_store *store = unit->store;
	size_t size = store->segment.size;
	int error = 0, fetched = 0;

	pthread_mutex_lock(&remote->lock);
	if (!nc_unit_present(unit)) {
		error = remote->copied + size > remote->store->segment.size
				? -ENOMEM
				: nc_store_fetch(store, unit->layout.size, remote->pin);
		fetched = !error;
		store->copied = error ? 0 : size;
		remote->copied += store->copied;
	}
	pthread_mutex_unlock(&remote->lock);
	return error ? error : fetched;
}

int nc_remote_member_release(struct nc_remote_member *remote, uint32_t slot, unsigned generation)
{
	struct nc_unit *unit;
	int error = -EINVAL;

	pthread_mutex_lock(&remote->lock);
	unit = remote->store && slot < remote->slots ? nc_units_at(&remote->units, slot) : NULL;
	if (unit) {
		int last = nc_unit_release(unit, generation);

		if (last >= 0 && nc_word_holds(nc_unit_word(unit)) == 0)
			unhold_locked(remote, unit, generation, last == 1);
		error = last < 0 ? last : 0;
	}
	pthread_mutex_unlock(&remote->lock);
	return error;
}

bool nc_remote_member_next(struct nc_remote_member *remote, uint32_t *slot, unsigned *generation,
			   struct nc_unit_description *description)
{
	bool found = false;

	pthread_mutex_lock(&remote->lock);
	for (; remote->store && remote->alive && *slot < remote->slots; ++*slot) {
		struct nc_unit_shared *entry = entry_at(remote, *slot);
		struct nc_unit *unit = nc_units_at(&remote->units, *slot);
		uint64_t word = atomic_load_explicit(&entry->word, memory_order_acquire);
		uint64_t lowest =
			unit ? nc_word_generation(nc_unit_word(unit)) : remote->units.generation;

		*generation = (unsigned)(word >> 4);
		if (word >> 4 < lowest || !plausible(remote, word >> 4) ||
		    ((word & 0xf) != NC_SHARED_LIVE && (word & 0xf) != NC_SHARED_BUSY) ||
		    nc_shared_snapshot(entry, remote->store->first, remote->store->segment.size,
				       description))
			continue;
		/*
		 * Not held, so the member may have described its next unit meanwhile.  Pairs
		 * with the fence in publish_shared_locked().
		 */
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&entry->word, memory_order_relaxed) != word)
			continue;
		found = true;
		break;
	}
	pthread_mutex_unlock(&remote->lock);
	return found;
}

int nc_remote_member_destroy(struct nc_remote_member *remote, uint32_t slot, unsigned generation)
{
	struct nc_unit *unit = NULL;
	int error = -ENOENT;

	pthread_mutex_lock(&remote->lock);
	if (remote->store && slot < remote->slots && generation >= remote->units.generation)
		unit = nc_units_reach(&remote->units, slot);
	if (unit) {
		uint64_t word = nc_unit_word(unit);

		if (nc_word_holds(word) == 0) {
			/* Take a hold first, so that there is only one path that ends a unit. */
			error = hold_first_locked(remote, unit, generation);
			if (!error) {
				(void)nc_unit_unlink(unit, generation);
				(void)nc_unit_release(unit, generation);
				unhold_locked(remote, unit, generation, true);
			}
		} else {
			int last = nc_unit_unlink(unit, generation);

			error = last < 0 ? last : 0;
		}
	}
	pthread_mutex_unlock(&remote->lock);
	return error;
}
