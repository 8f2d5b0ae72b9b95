/* SPDX-License-Identifier: MIT */
/* maintenance.c - does one bounded step of each maintenance task that is due; see maintenance.h. */
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

#include "base/fragment.h"
#include "policy/expiry.h"
#include "store/eviction.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit-checksum.h"
#include "store/maintenance.h"
#include "store/unit.h"

#define EXPIRED_STEPS 64u
#define LONE_STEPS 16u
#define SCRUB_BYTES ((size_t)256 << 10)
#define SCRUB_STEPS_A_SECOND 16u
#define SCRUB_SLOTS 4096u

void nc_maintenance_init(struct nc_maintenance *maintenance, struct nc_member *member,
			 size_t scrub_rate)
{
	*maintenance = (struct nc_maintenance){.member = member, .scrub_rate = scrub_rate};
	member->scrubs = scrub_rate != 0;
	atomic_store(&member->scrub_idle, member->scrubs);
}

static void drop_draft(struct nc_maintenance *maintenance)
{
	free(maintenance->draft);
	maintenance->draft = NULL;
}

void nc_maintenance_fini(struct nc_maintenance *maintenance)
{
	drop_draft(maintenance);
}

/* Drops expired units; true: there may be more. */
static bool expire_locked(struct nc_member *member, uint64_t now)
{
	struct nc_expiring entry;

	for (unsigned i = 0; i < EXPIRED_STEPS; i++) {
		struct nc_unit *unit;

		if (!nc_expiry_pop(&member->expiry, now, nc_pool_expiry_valid, member, &entry))
			return false;
		unit = nc_units_at(&member->units, entry.slot);
		nc_pool_drop(member, unit, entry.generation, NC_EVICTION_LIFETIME);
	}
	return true;
}

/* Keeps one empty segment for the next burst and closes the others. */
static void close_surplus_locked(struct nc_member *member)
{
	struct nc_store *store = member->runs;

	while (store && member->empties > 1) {
		struct nc_store *next = store->next_run;

		if (store->count == 0 && !store->busy &&
		    atomic_load_explicit(&store->filling, memory_order_acquire) == 0)
			nc_pool_close_store(member, store);
		store = next;
	}
}

/* Returns true if there is more to do. */
static bool drain_locked(struct nc_maintenance *maintenance)
{
	struct nc_member *member = maintenance->member;

	if (member->used > member->high)
		maintenance->draining = true;
	for (unsigned i = 0; i < LONE_STEPS && maintenance->draining; i++) {
		uint64_t cleaned = member->cleaned;

		/*
		 * Units that cannot be evicted now wake the collector later: see
		 * nc_eviction_ahead().
		 */
		if (member->used <= member->low || !nc_eviction_ahead(member))
			maintenance->draining = false;
		if (member->cleaned != cleaned)
			break;
	}
	return maintenance->draining;
}

/*
 * --- the scrubber -------------------------------------------------------------
 *
 * It computes the checksums of a unit that has none yet, and compares them in each
 * later round.  Both take several steps for a large unit.
 */

/* Returns the next unit to verify, held; NULL: none within SCRUB_SLOTS slots. */
static struct nc_unit *scrub_find(struct nc_maintenance *maintenance, uint32_t count)
{
	struct nc_member *member = maintenance->member;

	for (uint32_t i = 0; i < SCRUB_SLOTS && maintenance->passed < count; i++) {
		struct nc_unit *unit;
		unsigned generation;

		if (maintenance->slot >= count)
			maintenance->slot = 0;
		unit = nc_units_at(&member->units, maintenance->slot);
		generation = nc_word_generation(atomic_load(&unit->word));
		if (nc_unit_hold(unit, generation, false) == 0) {
			if (generation != maintenance->generation) {
				maintenance->fragment = 0;
				drop_draft(maintenance);
			}
			maintenance->generation = generation;
			/*
			 * Stray writes of this process cannot reach bytes that are
			 * only in the kernel.
			 */
			if (nc_unit_checksum_kind(unit) != NC_CHECKSUM_DEFAULT &&
			    nc_unit_present(unit)) {
				maintenance->passed = 0;
				return unit;
			}
			(void)nc_member_release(member, unit, generation);
		}
		maintenance->slot++;
		maintenance->passed++;
		maintenance->generation = 0;
	}
	return NULL;
}

/*
 * Compares, or computes, some fragments.  Returns their number; -EBADMSG: one is corrupt;
 * 0: there is no memory for checksums.
 */
static ssize_t scrub_fragments(struct nc_maintenance *maintenance, struct nc_unit *unit,
			       size_t bytes)
{
	size_t first = maintenance->fragment, done;

	/* Another thread may have computed them since the last step. */
	if (nc_unit_checksum_kept(unit)) {
		drop_draft(maintenance);
		return nc_unit_checksum_verify(unit, first, bytes);
	}
	if (!maintenance->draft)
		maintenance->draft = nc_unit_checksum_draft(unit);
	if (!maintenance->draft)
		return 0;
	done = nc_unit_checksum_draft_step(unit, maintenance->draft, first, bytes);
	if (first + done == unit->layout.fragments) {
		nc_unit_checksum_publish(unit, maintenance->draft);
		maintenance->draft = NULL;
	}
	return (ssize_t)done;
}

/* Scrubs some fragments of the unit and returns how many bytes count as read. */
static size_t scrub_unit(struct nc_maintenance *maintenance, struct nc_unit *unit, size_t bytes)
{
	struct nc_member *member = maintenance->member;
	ssize_t good = scrub_fragments(maintenance, unit, bytes);
	size_t fragments = unit->layout.fragments;
	size_t read = (size_t)(good > 0 ? good : 1) * unit->layout.fraglen;

	if (read > unit->layout.size)
		read = unit->layout.size;
	nc_pool_lock(member);
	if (good < 0)
		nc_pool_drop(member, unit, maintenance->generation, NC_EVICTION_CORRUPT);
	if (good)
		member->scrubbed += read;
	nc_pool_unlock(member);
	maintenance->fragment += (size_t)(good > 0 ? good : 0);
	(void)nc_member_release(member, unit, maintenance->generation);
	if (good <= 0 || maintenance->fragment >= fragments) {
		maintenance->slot++;
		maintenance->generation = 0;
	}
	return read;
}

/* Returns when to continue, in ns; 0: after the next insert. */
static uint64_t scrub(struct nc_maintenance *maintenance, uint64_t now, uint32_t count)
{
	struct nc_member *member = maintenance->member;
	size_t rate = maintenance->scrub_rate, bytes = rate / SCRUB_STEPS_A_SECOND, read = 0;

	if (bytes > SCRUB_BYTES)
		bytes = SCRUB_BYTES;
	if (maintenance->scrub_due > now)
		return maintenance->scrub_due;
	while (read <= bytes) {
		struct nc_unit *unit = scrub_find(maintenance, count);

		if (!unit)
			break;
		atomic_store(&member->scrub_idle, false);
		read += scrub_unit(maintenance, unit, bytes - read + 1);
	}
	if (maintenance->passed >= count && atomic_load(&member->scrub_idle)) {
		maintenance->passed = 0;
		maintenance->scrub_due = 0;
		return 0;
	}
	if (maintenance->passed >= count) {
		/*
		 * Set the flag first, then look once more, in scrub_find(): an insert sees the flag
		 * or is seen.  All four are sequentially consistent: see nc_unit_publish().
		 */
		atomic_store(&member->scrub_idle, true);
		maintenance->passed = 0;
	}
	if (!read)
		read = rate / SCRUB_STEPS_A_SECOND;
	maintenance->scrub_due = now + (uint64_t)((double)(read + 1) * 1e9 / (double)rate);
	return maintenance->scrub_due;
}

bool nc_maintenance_step(struct nc_maintenance *maintenance, uint64_t *next)
{
	struct nc_member *member = maintenance->member;
	uint64_t now = nc_clock_ns(CLOCK_MONOTONIC), again;
	uint32_t count;
	bool more;

	/* Events from here on wake the collector again. */
	atomic_store(&member->woken, false);
	*next = 0;
	/* The thread that holds the mutex wakes the collector if it leaves too little memory. */
	if (pthread_mutex_trylock(&member->growing)) {
		nc_pool_lock(member);
		more = expire_locked(member, now);
	} else {
		nc_pool_lock(member);
		more = expire_locked(member, now);
		close_surplus_locked(member);
		more |= drain_locked(maintenance);
		pthread_mutex_unlock(&member->growing);
	}
	*next = nc_expiry_next(&member->expiry, now);
	count = member->units.count;
	nc_pool_unlock(member);
	if (maintenance->scrub_rate) {
		again = scrub(maintenance, now, count);
		if (again && (!*next || again < *next))
			*next = again;
	}
	return more;
}
