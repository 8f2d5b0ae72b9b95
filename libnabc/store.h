/* SPDX-License-Identifier: MIT */
/*
 * store.h - one segment in use: its kind, what is free in it, its units.
 *
 * recycled: page runs are taken and given in place.  appended: units are laid
 * one behind the other and never overwritten; the store goes as a whole.
 * Everything here is under the lock of the member that the store belongs to.
 */
#ifndef NC_STORE_H
#define NC_STORE_H

#include <nabc.h>

#include "extent.h"
#include "replacement.h"
#include "segment.h"
#include "unit.h"

struct nc_store {
	struct nc_replaceable order; /* must be first: the victim is this store */
	struct nc_store *next;	     /* in the member's list */
	struct nc_segment segment;
	enum NC_kind kind;
	size_t first;		 /* where units may begin: bytes */
	struct nc_extent extent; /* recycled: pages behind first */
	size_t appended;	 /* appended: bytes laid */
	uint32_t newest, oldest; /* ends of the list of its units, or NC_UNIT_NONE */
	uint32_t count;		 /* units, in any state */
	uint32_t filling;	 /* of them not inserted */
	bool full;		 /* appended: no more is laid */
	bool dying;		 /* evicted: closed with its last unit */
};

/* A store with a segment of its own; NULL and *error on failure. */
struct nc_store *nc_store_create(enum NC_kind kind, size_t size, bool huge, int *error);

/* A store over a segment that exists and now belongs to it; units behind first. */
struct nc_store *nc_store_over(const struct nc_segment *segment, size_t first, int *error);

void nc_store_close(struct nc_store *store);

/* Memory for a unit; its offset in the segment, or -ENOMEM. */
int64_t nc_store_take(struct nc_store *store, size_t extent);

/* Enters the unit at an offset that take gave, and takes it out again. */
void nc_store_enter(struct nc_store *store, struct nc_units *units, struct nc_unit *unit,
		    uint64_t at);
void nc_store_leave(struct nc_store *store, struct nc_units *units, struct nc_unit *unit);

/* Instead of insert: what was never named may be laid again. */
void nc_store_retract(struct nc_store *store, const struct nc_unit *unit);

/* After insert: appended memory is written no more (invariant 1). */
int nc_store_inserted(struct nc_store *store, const struct nc_unit *unit);

static inline char *nc_unit_base(const struct nc_unit *unit)
{
	return unit->store->segment.base + unit->at;
}

#endif
