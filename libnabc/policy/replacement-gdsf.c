/* SPDX-License-Identifier: MIT */
/*
 * replacement-gdsf.c - GreedyDual-Size-Frequency: the key is the floor plus the
 * uses per byte; see replacement.h.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/replacement-internal.h"
#include "policy/replacement.h"

#define USES_MAX UINT16_MAX

/* Packs into 16 bits, rounded down by less than a thousandth: exponent and 10 bits. */
static uint16_t bytes_pack(size_t bytes)
{
	unsigned exponent;

	if (bytes < 1024)
		return (uint16_t)bytes;
	exponent = 63 - 10 - (unsigned)__builtin_clzll(bytes);
	return (uint16_t)((exponent + 1) << 10 | (bytes >> exponent & 1023));
}

static double bytes_unpack(uint16_t packed)
{
	unsigned exponent = packed >> 10;

	if (!exponent)
		return packed ? packed : 1;
	return (double)((uint64_t)(1024 | (packed & 1023)) << (exponent - 1));
}

static double gdsf_key(const struct nc_replacement *order, const struct nc_replaceable *entry,
		       unsigned uses)
{
	/* Atomic, since an entry may be used while it is added. */
	uint16_t bytes = atomic_load_explicit(&entry->ranked.bytes, memory_order_relaxed);

	return nc_replacement_load(&order->clock) + uses / bytes_unpack(bytes);
}

static int gdsf_add(struct nc_replacement *order, struct nc_replaceable *entry, size_t bytes)
{
	atomic_store_explicit(&entry->ranked.bytes, bytes_pack(bytes), memory_order_relaxed);
	atomic_store_explicit(&entry->ranked.uses, 1, memory_order_relaxed);
	return nc_replacement_heap_add(order, entry, gdsf_key(order, entry, 1));
}

/* Two simultaneous uses may count as one. */
static void gdsf_use(struct nc_replacement *order, struct nc_replaceable *entry)
{
	unsigned uses = atomic_load_explicit(&entry->ranked.uses, memory_order_relaxed);
	double key;

	if (uses < USES_MAX)
		atomic_store_explicit(&entry->ranked.uses, (uint16_t)++uses, memory_order_relaxed);
	key = gdsf_key(order, entry, uses);
	if (nc_replacement_load(&entry->ranked.key) < key)
		nc_replacement_store(&entry->ranked.key, key);
}

/* The key is the floor at the last use plus the uses per byte. */
static double gdsf_worth(const struct nc_replacement *order, const struct nc_replaceable *entry)
{
	double worth = nc_replacement_load(&entry->ranked.key) - order->heap[0]->ranked.remembered;

	return worth > 0 ? worth : 0;
}

/*
 * The floor becomes the key of the entry with the least key, which should have been
 * evicted: a better one that was evicted with its segment tells nothing about age.
 */
static void gdsf_judged(struct nc_replacement *order, struct nc_replaceable *entry, bool survived)
{
	double key;

	(void)entry;
	if (survived)
		return;
	key = nc_replacement_heap_least(order)->ranked.remembered;
	if (key > nc_replacement_load(&order->clock))
		nc_replacement_store(&order->clock, key);
}

static struct nc_replaceable *
gdsf_victim(struct nc_replacement *order,
	    bool (*may_evict)(struct nc_replaceable *entry, void *context), void *context)
{
	struct nc_replaceable *entry = nc_replacement_heap_victim(order, may_evict, context);

	if (entry && nc_replacement_load(&order->clock) < entry->ranked.remembered)
		nc_replacement_store(&order->clock, entry->ranked.remembered);
	return entry;
}

const struct nc_replacement_policy nc_replacement_gdsf = {
	.name = "gdsf",
	.add = gdsf_add,
	.remove = nc_replacement_heap_remove,
	.use = gdsf_use,
	.victim = gdsf_victim,
	.worth = gdsf_worth,
	.judged = gdsf_judged,
};
