/* SPDX-License-Identifier: MIT */
/* replacement-sieve.c - SIEVE: a queue, a mark on used entries, and a hand; see replacement.h. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/replacement-internal.h"
#include "policy/replacement.h"

/* Marks of SIEVE. */
enum {
	UNUSED, /* since the hand passed, or ever */
	USED,
	DUE, /* the hand has stopped here, but the entry was not evicted */
};

static uint64_t arrival(const struct nc_replaceable *entry)
{
	return (uint64_t)entry->queued.arrival_high << 32 | entry->queued.arrival_low;
}

static uint8_t mark_of(const struct nc_replaceable *entry)
{
	return atomic_load_explicit(&entry->queued.mark, memory_order_relaxed);
}

static void set_mark(struct nc_replaceable *entry, uint8_t mark)
{
	atomic_store_explicit(&entry->queued.mark, mark, memory_order_relaxed);
}

static int sieve_add(struct nc_replacement *order, struct nc_replaceable *entry, size_t bytes)
{
	(void)bytes;
	order->arrivals++;
	entry->queued.arrival_low = (uint32_t)order->arrivals;
	entry->queued.arrival_high = (uint16_t)(order->arrivals >> 32);
	entry->queued.newer = NULL;
	entry->queued.older = order->newest;
	set_mark(entry, UNUSED);
	if (order->newest)
		order->newest->queued.newer = entry;
	else
		order->oldest = entry;
	order->newest = entry;
	return 0;
}

static void sieve_remove(struct nc_replacement *order, struct nc_replaceable *entry)
{
	struct nc_replaceable *newer = entry->queued.newer, *older = entry->queued.older;

	if (order->hand == entry)
		order->hand = newer;
	if (newer)
		newer->queued.older = older;
	else
		order->newest = older;
	if (older)
		older->queued.newer = newer;
	else
		order->oldest = newer;
	entry->queued.newer = entry->queued.older = NULL;
}

static void sieve_use(struct nc_replacement *order, struct nc_replaceable *entry)
{
	(void)order;
	/* Read before writing: a hot entry's cache line stays shared between CPUs. */
	if (mark_of(entry) != USED)
		set_mark(entry, USED);
}

static struct nc_replaceable *
sieve_victim(struct nc_replacement *order,
	     bool (*may_evict)(struct nc_replaceable *entry, void *context), void *context)
{
	struct nc_replaceable *entry = order->hand ? order->hand : order->oldest;
	unsigned ends = 0;

	/* The first pass may clear every mark, so the third end proves that none may be evicted. */
	while (entry && ends < 3) {
		if (may_evict(entry, context)) {
			if (mark_of(entry) != USED) {
				order->hand = entry->queued.newer;
				return entry;
			}
			set_mark(entry, UNUSED);
		}
		entry = entry->queued.newer;
		if (!entry) {
			entry = order->oldest;
			ends++;
		}
	}
	return NULL;
}

/* The sooner the hand would stop at the entry, the lower its worth. */
static double sieve_worth(const struct nc_replacement *order, const struct nc_replaceable *entry)
{
	const struct nc_replaceable *hand = order->hand ? order->hand : order->oldest;
	uint64_t round = arrival(order->newest) - arrival(order->oldest) + 1;
	uint64_t way = arrival(entry) - arrival(hand);
	uint8_t mark = mark_of(entry);

	if (arrival(entry) < arrival(hand))
		way += round;
	if (mark == USED)
		way += round;
	else if (mark == DUE)
		way = 0;
	return 1 / (double)(2 * round - way);
}

/* If a used entry was evicted, the hand stops at an unused one instead. */
static void sieve_judged(struct nc_replacement *order, struct nc_replaceable *entry, bool survived)
{
	struct nc_replaceable *at = order->hand ? order->hand : order->oldest;
	unsigned ends = 0;

	if (survived || mark_of(entry) != USED)
		return;
	set_mark(entry, DUE);
	while (ends < 2) {
		struct nc_replaceable *next = at->queued.newer;

		if (mark_of(at) == UNUSED) {
			set_mark(at, DUE);
			order->hand = next;
			return;
		}
		if (mark_of(at) == USED)
			set_mark(at, UNUSED);
		if (!next)
			ends++;
		at = next ? next : order->oldest;
	}
}

const struct nc_replacement_policy nc_replacement_sieve = {
	.name = "sieve",
	.add = sieve_add,
	.remove = sieve_remove,
	.use = sieve_use,
	.victim = sieve_victim,
	.worth = sieve_worth,
	.judged = sieve_judged,
};
