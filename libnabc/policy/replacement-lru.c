/* SPDX-License-Identifier: MIT */
/*
 * replacement-lru.c - LRU: the key is the time of the last use; see replacement.h.
 */

#include <stdbool.h>
#include <stddef.h>

#include "policy/replacement-internal.h"
#include "policy/replacement.h"

static int lru_add(struct nc_replacement *order, struct nc_replaceable *entry, size_t bytes)
{
	double now = nc_replacement_load(&order->clock) + 1;

	(void)bytes;
	nc_replacement_store(&order->clock, now);
	return nc_replacement_heap_add(order, entry, now);
}

static void lru_use(struct nc_replacement *order, struct nc_replaceable *entry)
{
	/* After the entry that was added last, before the next one. */
	double now = nc_replacement_load(&order->clock) + 0.5;

	if (nc_replacement_load(&entry->ranked.key) < now)
		nc_replacement_store(&entry->ranked.key, now);
}

/* An entry whose last use is twice as long ago is half as likely to be used again soon. */
static double lru_worth(const struct nc_replacement *order, const struct nc_replaceable *entry)
{
	return 1 /
	       (nc_replacement_load(&order->clock) + 1 - nc_replacement_load(&entry->ranked.key));
}

static void lru_judged(struct nc_replacement *order, struct nc_replaceable *entry, bool survived)
{
	(void)order;
	(void)entry;
	(void)survived;
}

const struct nc_replacement_policy nc_replacement_lru = {
	.name = "lru",
	.add = lru_add,
	.remove = nc_replacement_heap_remove,
	.use = lru_use,
	.victim = nc_replacement_heap_victim,
	.worth = lru_worth,
	.judged = lru_judged,
};
