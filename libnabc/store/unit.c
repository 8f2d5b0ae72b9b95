/* SPDX-License-Identifier: MIT */
/* unit.c - states and generations of units; see unit.h for who may call what. */
#include <errno.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/id.h"
#include "os/futex.h"
#include "store/unit.h"

#define SPINS 64u
#define SLEEP_MOST_NS 1000000

int nc_units_init(struct nc_units *units, uint32_t limit, uint32_t generation)
{
	uint32_t chunks = (limit + NC_UNITS_CHUNK - 1) / NC_UNITS_CHUNK;

	*units = (struct nc_units){.limit = limit, .free = NC_UNIT_NONE, .generation = generation};
	units->chunks = calloc(chunks, sizeof(*units->chunks));
	return units->chunks ? 0 : -ENOMEM;
}

void nc_unit_forget(struct nc_unit *unit)
{
	if (nc_unit_sums_outside(unit))
		free(unit->sums);
	unit->sums = NULL;
	unit->sum_size = 0;
	atomic_store_explicit(&unit->summed, NC_SUMS_NONE, memory_order_relaxed);
	unit->layout = (struct nc_layout){0};
}

void nc_units_fini(struct nc_units *units)
{
	uint32_t chunks = (units->limit + NC_UNITS_CHUNK - 1) / NC_UNITS_CHUNK;

	for (uint32_t slot = 0; slot < units->count; slot++) {
		struct nc_unit *unit = nc_units_at(units, slot);

		/* A table filled by nc_units_reach() may lack chunks. */
		if (unit)
			nc_unit_forget(unit);
	}
	for (uint32_t i = 0; units->chunks && i < chunks; i++)
		free(atomic_load_explicit(&units->chunks[i], memory_order_relaxed));
	free(units->chunks);
	*units = (struct nc_units){.free = NC_UNIT_NONE};
}

struct nc_unit *nc_units_at(const struct nc_units *units, uint32_t slot)
{
	struct nc_unit *chunk;

	if (slot >= units->limit)
		return NULL;
	chunk = atomic_load_explicit(&units->chunks[slot / NC_UNITS_CHUNK], memory_order_acquire);
	return chunk ? &chunk[slot % NC_UNITS_CHUNK] : NULL;
}

struct nc_unit *nc_units_reach(struct nc_units *units, uint32_t slot)
{
	struct nc_unit *chunk;
	uint32_t first = slot / NC_UNITS_CHUNK * NC_UNITS_CHUNK;

	if (slot >= units->limit)
		return NULL;
	chunk = atomic_load_explicit(&units->chunks[slot / NC_UNITS_CHUNK], memory_order_relaxed);
	if (!chunk) {
		chunk = calloc(NC_UNITS_CHUNK, sizeof(*chunk));
		if (!chunk)
			return NULL;
		for (uint32_t i = 0; i < NC_UNITS_CHUNK; i++) {
			chunk[i].slot = first + i;
			/* The generation before the first: nc_units_take() adds one. */
			atomic_init(&chunk[i].word,
				    nc_word(units->generation - 1, NC_UNIT_FREE, 0));
		}
		/* Pairs with the acquire in nc_units_at(). */
		atomic_store_explicit(&units->chunks[slot / NC_UNITS_CHUNK], chunk,
				      memory_order_release);
	}
	if (slot >= units->count)
		units->count = slot + 1;
	return &chunk[slot % NC_UNITS_CHUNK];
}

struct nc_unit *nc_units_take(struct nc_units *units)
{
	struct nc_unit *unit;

	if (units->free != NC_UNIT_NONE) {
		unit = nc_units_at(units, units->free);
		units->free = unit->next;
	} else {
		unit = nc_units_reach(units, units->count);
		if (!unit)
			return NULL;
	}
	atomic_store_explicit(
		&unit->word,
		nc_word(nc_word_generation(nc_unit_word(unit)) + 1, NC_UNIT_FILLING, 0),
		memory_order_release);
	unit->next = unit->previous = NC_UNIT_NONE;
	unit->parked = false;
	atomic_store_explicit(&unit->granted, false, memory_order_relaxed);
	atomic_store_explicit(&unit->wake_on_release, false, memory_order_relaxed);
	atomic_store_explicit(&unit->expires, 0, memory_order_relaxed);
	atomic_store_explicit(&unit->priority, NC_PRIORITY_NORMAL, memory_order_relaxed);
	units->live++;
	return unit;
}

void nc_units_give(struct nc_units *units, struct nc_unit *unit)
{
	unsigned generation = nc_word_generation(nc_unit_word(unit));

	nc_unit_forget(unit);
	unit->store = NULL;
	atomic_store_explicit(&unit->word, nc_word(generation, NC_UNIT_FREE, 0),
			      memory_order_release);
	units->live--;
	if (generation >= NC_ID_GENERATION_MAX)
		return;
	unit->next = units->free;
	units->free = unit->slot;
}

void nc_unit_publish(struct nc_unit *unit, uint32_t holds)
{
	uint64_t word = nc_unit_word(unit);

	assert(nc_word_state(word) == NC_UNIT_FILLING);
	/* Sequentially consistent with the flag that the scrubber sleeps. */
	atomic_store(&unit->word, nc_word(nc_word_generation(word), NC_UNIT_LIVE, holds));
}

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * Returns the word after the unit's move has ended.  The thread that moves it may have been
 * preempted, also by this one if it has a real-time priority, so this one must sleep: a
 * hold of a moving unit says that some thread does.
 */
static uint64_t settled(struct nc_unit *unit, unsigned generation)
{
	const uint64_t moving = nc_word(generation, NC_UNIT_MOVING, 0);
	const uint64_t awaited = nc_word(generation, NC_UNIT_MOVING, 1);
	uint64_t word = nc_unit_word(unit);

	for (unsigned turn = 0; turn < SPINS && (word == moving || word == awaited); turn++) {
		relax();
		word = nc_unit_word(unit);
	}
	while (word == moving || word == awaited) {
		/* The next move may have begun when this thread sleeps, and nobody wakes it. */
		if (word == awaited || atomic_compare_exchange_strong_explicit(
					       &unit->word, &word, awaited, memory_order_relaxed,
					       memory_order_relaxed))
			nc_futex_wait_high(&unit->word, (uint32_t)(awaited >> 32), SLEEP_MOST_NS);
		word = nc_unit_word(unit);
	}
	return word;
}

int nc_unit_hold(struct nc_unit *unit, unsigned generation, bool unlinked)
{
	uint64_t word = nc_unit_word(unit);

	do {
		bool named;

		if (nc_word_state(word) == NC_UNIT_MOVING)
			word = settled(unit, generation);
		named = nc_word_state(word) == NC_UNIT_LIVE ||
			(unlinked && nc_word_state(word) == NC_UNIT_UNLINKED &&
			 nc_word_holds(word) != 0);

		if (!named || nc_word_generation(word) != generation ||
		    nc_word_holds(word) == UINT32_MAX)
			return -ENOENT;
	} while (!atomic_compare_exchange_weak_explicit(
		&unit->word, &word, word + 1, memory_order_acquire, memory_order_acquire));
	return 0;
}

bool nc_unit_held(const struct nc_unit *unit, unsigned generation)
{
	uint64_t word = nc_unit_word(unit);

	return nc_word_generation(word) == generation && nc_word_holds(word) &&
	       (nc_word_state(word) == NC_UNIT_LIVE || nc_word_state(word) == NC_UNIT_UNLINKED);
}

int nc_unit_release(struct nc_unit *unit, unsigned generation)
{
	uint64_t word = nc_unit_word(unit);

	do {
		if (nc_word_generation(word) != generation || nc_word_holds(word) == 0 ||
		    nc_word_state(word) == NC_UNIT_MOVING)
			return -EINVAL;
		/* Sequentially consistent with the later read of the unit's `wake_on_release`. */
	} while (!atomic_compare_exchange_weak_explicit(
		&unit->word, &word, word - 1, memory_order_seq_cst, memory_order_acquire));
	return nc_word_holds(word) == 1 && nc_word_state(word) == NC_UNIT_UNLINKED;
}

int nc_unit_unlink(struct nc_unit *unit, unsigned generation)
{
	uint64_t word = nc_unit_word(unit);

	do {
		if (nc_word_state(word) == NC_UNIT_MOVING)
			word = settled(unit, generation);
		if (nc_word_state(word) != NC_UNIT_LIVE || nc_word_generation(word) != generation)
			return -ENOENT;
		/* Sequentially consistent with the later read of the unit's `granted`. */
	} while (!atomic_compare_exchange_weak_explicit(
		&unit->word, &word, nc_word(generation, NC_UNIT_UNLINKED, nc_word_holds(word)),
		memory_order_seq_cst, memory_order_acquire));
	return nc_word_holds(word) == 0;
}

bool nc_unit_unlink_idle(struct nc_unit *unit)
{
	uint64_t word = nc_unit_word(unit);

	/* As in nc_unit_unlink(). */
	return nc_word_state(word) == NC_UNIT_LIVE && nc_word_holds(word) == 0 &&
	       atomic_compare_exchange_strong_explicit(
		       &unit->word, &word, nc_word(nc_word_generation(word), NC_UNIT_UNLINKED, 0),
		       memory_order_seq_cst, memory_order_relaxed);
}

bool nc_unit_move_begin(struct nc_unit *unit, unsigned generation)
{
	uint64_t word = nc_word(generation, NC_UNIT_LIVE, 1);

	return atomic_compare_exchange_strong_explicit(&unit->word, &word,
						       nc_word(generation, NC_UNIT_MOVING, 0),
						       memory_order_acq_rel, memory_order_relaxed);
}

void nc_unit_move_end(struct nc_unit *unit, unsigned generation)
{
	uint64_t was = atomic_exchange_explicit(&unit->word, nc_word(generation, NC_UNIT_LIVE, 0),
						memory_order_release);

	assert(nc_word_generation(was) == generation && nc_word_state(was) == NC_UNIT_MOVING);
	if (nc_word_holds(was))
		nc_futex_wake_high(&unit->word);
}

int nc_shared_snapshot(struct nc_unit_shared *entry, uint64_t first, uint64_t end,
		       struct nc_unit_description *description)
{
	/* Read each field once: the member may change it meanwhile. */
	uint64_t start = atomic_load_explicit(&entry->at, memory_order_relaxed);
	uint64_t size = atomic_load_explicit(&entry->size, memory_order_relaxed);
	uint64_t fraglen = atomic_load_explicit(&entry->fraglen, memory_order_relaxed);
	uint64_t kernel = atomic_load_explicit(&entry->kernel, memory_order_relaxed);

	*description = (struct nc_unit_description){.at = kernel ? 0 : start, .kernel = kernel};
	if (fraglen == 0 || nc_layout_init(&description->layout, size, fraglen))
		return -EPROTO;
	if (kernel)
		return nc_layout_gapless(&description->layout) ? 0 : -EPROTO;
	if (start < first || start >= end || start % NC_PAGE ||
	    description->layout.extent > end - start)
		return -EPROTO;
	return 0;
}
