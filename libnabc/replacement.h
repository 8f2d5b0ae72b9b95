/* SPDX-License-Identifier: MIT */
/*
 * replacement.h - which of many things is to go first.
 *
 * SIEVE (Zhang et al., NSDI 2024): a queue in order of arrival, a mark on
 * each entry that was used, and a hand that walks from the oldest to the
 * newest, clearing marks, and stops at the first entry without one.  Using an
 * entry is one relaxed store and needs no lock; all else is under the
 * caller's lock.
 */
#ifndef NC_REPLACEMENT_H
#define NC_REPLACEMENT_H

#include <stdatomic.h>
#include <stdbool.h>

struct nc_replaceable {
	struct nc_replaceable *newer, *older;
	_Atomic bool used;
};

struct nc_replacement {
	struct nc_replaceable *newest, *oldest;
	struct nc_replaceable *hand; /* NULL: begin at the oldest */
};

void nc_replacement_add(struct nc_replacement *order, struct nc_replaceable *entry);
void nc_replacement_remove(struct nc_replacement *order, struct nc_replaceable *entry);

/*
 * The entry to go, still in the order; NULL when may_go refuses all of them.
 */
struct nc_replaceable *nc_replacement_victim(struct nc_replacement *order,
					     bool (*may_go)(struct nc_replaceable *entry));

static inline void nc_replacement_use(struct nc_replaceable *entry)
{
	/* Look before writing: a hot entry's line stays shared between CPUs. */
	if (!atomic_load_explicit(&entry->used, memory_order_relaxed))
		atomic_store_explicit(&entry->used, true, memory_order_relaxed);
}

#endif
