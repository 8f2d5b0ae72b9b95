/* SPDX-License-Identifier: MIT */
/* replacement-internal.h - shared by the policies of replacement.h, for replacement*.c only. */
#ifndef NC_REPLACEMENT_INTERNAL_H
#define NC_REPLACEMENT_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "policy/replacement.h"

extern const struct nc_replacement_policy nc_replacement_sieve, nc_replacement_lru,
	nc_replacement_gdsf;

static inline double nc_replacement_load(const _Atomic double *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

static inline void nc_replacement_store(_Atomic double *to, double value)
{
	atomic_store_explicit(to, value, memory_order_relaxed);
}

/* --- the heap, with the least entry first ---------------------------------------- */

/* Returns 0 or -ENOMEM. */
int nc_replacement_heap_add(struct nc_replacement *order, struct nc_replaceable *entry, double key);
void nc_replacement_heap_remove(struct nc_replacement *order, struct nc_replaceable *entry);

/* Updates the heap until the first entry's remembered key is current; returns that entry. */
struct nc_replaceable *nc_replacement_heap_least(struct nc_replacement *order);

/* Returns the least entry that may be evicted, or NULL. */
struct nc_replaceable *nc_replacement_heap_victim(struct nc_replacement *order,
						  bool (*may_evict)(struct nc_replaceable *entry,
								    void *context),
						  void *context);

#endif
