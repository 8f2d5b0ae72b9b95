/* SPDX-License-Identifier: MIT */
/*
 * upkeep.c - one bounded step of each thing that is due; see upkeep.h.
 */
#include "store/room.h"
#include "store/sums.h"
#include "store/upkeep.h"

#define EXPIRED_STEPS 64u
#define LONE_STEPS 16u
#define SCRUB_BYTES ((size_t)256 << 10)
#define SCRUB_STEPS_A_SECOND 16u
#define SCRUB_SLOTS 4096u

void nc_upkeep_init(struct nc_upkeep *upkeep, struct nc_member *member, size_t scrub_rate)
{
	*upkeep = (struct nc_upkeep){.member = member, .scrub_rate = scrub_rate};
	member->scrubs = scrub_rate != 0;
	atomic_store(&member->scrub_idle, member->scrubs);
}

/* Units whose time is over; true: there may be more. */
static bool expire_locked(struct nc_member *member, uint64_t now)
{
	struct nc_expiring entry;

	for (unsigned i = 0; i < EXPIRED_STEPS; i++) {
		struct nc_unit *unit;

		if (!nc_expiry_pop(&member->expiry, now, nc_stock_expiry_valid, member, &entry))
			return false;
		unit = nc_units_at(&member->units, entry.slot);
		nc_stock_drop(member, unit, entry.generation, &member->expired);
	}
	return true;
}

/* One empty segment is kept for the next burst; more are given back. */
static void close_surplus_locked(struct nc_member *member)
{
	struct nc_store *store = member->runs;

	while (store && member->empties > 1) {
		struct nc_store *next = store->next_run;

		if (store->count == 0 && !store->busy &&
		    atomic_load_explicit(&store->filling, memory_order_acquire) == 0)
			nc_stock_close_store(member, store);
		store = next;
	}
}

/* true: there is more to do. */
static bool drain_locked(struct nc_upkeep *upkeep)
{
	struct nc_member *member = upkeep->member;

	if (member->used > member->high)
		upkeep->draining = true;
	for (unsigned i = 0; i < LONE_STEPS && upkeep->draining; i++) {
		uint64_t cleaned = member->cleaned;

		/* What cannot go now says so itself when it can: see nc_room_ahead(). */
		if (member->used <= member->low || !nc_room_ahead(member))
			upkeep->draining = false;
		if (member->cleaned != cleaned)
			break;
	}
	return upkeep->draining;
}

/* --- the scrubber ------------------------------------------------------------- */

/* The unit to verify next, held; NULL: none in so many slots. */
static struct nc_unit *scrub_find(struct nc_upkeep *upkeep, uint32_t count)
{
	struct nc_member *member = upkeep->member;

	for (uint32_t i = 0; i < SCRUB_SLOTS && upkeep->passed < count; i++) {
		struct nc_unit *unit;
		unsigned generation;

		if (upkeep->slot >= count)
			upkeep->slot = 0;
		unit = nc_units_at(&member->units, upkeep->slot);
		generation = nc_word_generation(atomic_load(&unit->word));
		if (nc_unit_hold(unit, generation, false) == 0) {
			if (generation != upkeep->generation)
				upkeep->fragment = 0;
			upkeep->generation = generation;
			/* What lies in the kernel alone no stray write of ours can reach. */
			if (nc_sums_kind(unit) != NC_CHECKSUM_DEFAULT && nc_unit_present(unit)) {
				upkeep->passed = 0;
				return unit;
			}
			(void)nc_member_release(member, unit, generation);
		}
		upkeep->slot++;
		upkeep->passed++;
		upkeep->generation = 0;
	}
	return NULL;
}

/* Some fragments of that unit; the bytes that were read. */
static size_t scrub_unit(struct nc_upkeep *upkeep, struct nc_unit *unit, size_t bytes)
{
	struct nc_member *member = upkeep->member;
	ssize_t good = nc_sums_verify(unit, upkeep->fragment, bytes);
	size_t fragments = unit->layout.fragments;
	size_t read = (size_t)(good > 0 ? good : 1) * unit->layout.fraglen;

	if (read > unit->layout.size)
		read = unit->layout.size;
	nc_stock_lock(member);
	if (good < 0)
		nc_stock_drop(member, unit, upkeep->generation, &member->corrupt);
	member->scrubbed += read;
	nc_stock_unlock(member);
	upkeep->fragment += (size_t)(good > 0 ? good : 0);
	(void)nc_member_release(member, unit, upkeep->generation);
	if (good <= 0 || upkeep->fragment >= fragments) {
		upkeep->slot++;
		upkeep->generation = 0;
	}
	return read;
}

/* When to come again, in ns; 0: when something is inserted. */
static uint64_t scrub(struct nc_upkeep *upkeep, uint64_t now, uint32_t count)
{
	struct nc_member *member = upkeep->member;
	size_t rate = upkeep->scrub_rate, bytes = rate / SCRUB_STEPS_A_SECOND, read = 0;

	if (bytes > SCRUB_BYTES)
		bytes = SCRUB_BYTES;
	if (upkeep->scrub_due > now)
		return upkeep->scrub_due;
	while (read <= bytes) {
		struct nc_unit *unit = scrub_find(upkeep, count);

		if (!unit)
			break;
		atomic_store(&member->scrub_idle, false);
		read += scrub_unit(upkeep, unit, bytes - read + 1);
	}
	if (upkeep->passed >= count && atomic_load(&member->scrub_idle)) {
		upkeep->passed = 0;
		upkeep->scrub_due = 0;
		return 0;
	}
	if (upkeep->passed >= count) {
		/* Said first, then looked once more: who inserts sees one or is seen. */
		atomic_store(&member->scrub_idle, true);
		upkeep->passed = 0;
	}
	if (!read)
		read = rate / SCRUB_STEPS_A_SECOND;
	upkeep->scrub_due = now + (uint64_t)((double)(read + 1) * 1e9 / (double)rate);
	return upkeep->scrub_due;
}

bool nc_upkeep_step(struct nc_upkeep *upkeep, uint64_t *next)
{
	struct nc_member *member = upkeep->member;
	uint64_t now = nc_clock_ns(CLOCK_MONOTONIC), again;
	uint32_t count;
	bool more;

	/* What becomes due from here on is told anew. */
	atomic_store(&member->woken, false);
	*next = 0;
	/* Whoever is making room tells when it leaves too little. */
	if (pthread_mutex_trylock(&member->growing)) {
		nc_stock_lock(member);
		more = expire_locked(member, now);
	} else {
		nc_stock_lock(member);
		more = expire_locked(member, now);
		close_surplus_locked(member);
		more |= drain_locked(upkeep);
		pthread_mutex_unlock(&member->growing);
	}
	*next = nc_expiry_next(&member->expiry, now);
	count = member->units.count;
	nc_stock_unlock(member);
	if (upkeep->scrub_rate) {
		again = scrub(upkeep, now, count);
		if (again && (!*next || again < *next))
			*next = again;
	}
	return more;
}
