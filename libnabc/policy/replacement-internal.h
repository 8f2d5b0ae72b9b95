/* SPDX-License-Identifier: MIT */
/*
 * replacement-internal.h - what the policies of replacement.h are made of: for
 * replacement*.c alone.
 */
#ifndef NC_REPLACEMENT_INTERNAL_H
#define NC_REPLACEMENT_INTERNAL_H

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

/* --- the heap, whose least is first ---------------------------------------- */

/* 0 or -ENOMEM. */
int nc_replacement_heap_add(struct nc_replacement *order, struct nc_replaceable *entry, double key);
void nc_replacement_heap_remove(struct nc_replacement *order, struct nc_replaceable *entry);

/* Lets the heap remember the present key of its first entry, which is returned. */
struct nc_replaceable *nc_replacement_heap_least(struct nc_replacement *order);

/* The least entry that may go, or NULL. */
struct nc_replaceable *nc_replacement_heap_victim(struct nc_replacement *order,
						  bool (*may_go)(struct nc_replaceable *entry,
								 void *context),
						  void *context);

#endif
