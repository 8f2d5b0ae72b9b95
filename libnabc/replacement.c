/* SPDX-License-Identifier: MIT */
/*
 * replacement.c - SIEVE; see replacement.h.  Owns no memory.
 */
#include <stddef.h>

#include "replacement.h"

void nc_replacement_add(struct nc_replacement *order, struct nc_replaceable *entry)
{
	entry->newer = NULL;
	entry->older = order->newest;
	atomic_store_explicit(&entry->used, false, memory_order_relaxed);
	if (order->newest)
		order->newest->newer = entry;
	else
		order->oldest = entry;
	order->newest = entry;
}

void nc_replacement_remove(struct nc_replacement *order, struct nc_replaceable *entry)
{
	if (order->hand == entry)
		order->hand = entry->newer;
	if (entry->newer)
		entry->newer->older = entry->older;
	else
		order->newest = entry->older;
	if (entry->older)
		entry->older->newer = entry->newer;
	else
		order->oldest = entry->newer;
	entry->newer = entry->older = NULL;
}

struct nc_replaceable *nc_replacement_victim(struct nc_replacement *order,
					     bool (*may_go)(struct nc_replaceable *entry))
{
	struct nc_replaceable *entry = order->hand ? order->hand : order->oldest;
	unsigned ends = 0;

	/* The first pass may clear every mark, so the third end proves that none may go. */
	while (entry && ends < 3) {
		if (may_go(entry)) {
			if (!atomic_load_explicit(&entry->used, memory_order_relaxed)) {
				order->hand = entry->newer;
				return entry;
			}
			atomic_store_explicit(&entry->used, false, memory_order_relaxed);
		}
		entry = entry->newer;
		if (!entry) {
			entry = order->oldest;
			ends++;
		}
	}
	return NULL;
}
