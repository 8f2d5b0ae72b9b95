/* SPDX-License-Identifier: MIT */
/*
 * store.h - one segment in use: its kind, what is free in it, its units.
 *
 * recycled: page runs are taken and given in place.  appended: units are laid
 * one behind the other and never overwritten; the store goes as a whole.
 * sealed: one unit, frozen when it is inserted.  kernel: one unit, in the
 * module's arena until it is inserted, then the module's alone; whoever needs
 * its bytes in memory has a private copy made, which stays as long as it does.
 * Everything here is under the lock of the member that the store belongs to,
 * except what says otherwise.
 */
#ifndef NC_STORE_H
#define NC_STORE_H

#include <nabc.h>

#include "base/extent.h"
#include "os/device.h"
#include "os/segment.h"
#include "policy/cleaning.h"
#include "store/unit.h"

struct nc_store {
	struct nc_store *next, *previous; /* in the member's list */
	struct nc_store *next_run;	  /* in the member's list of recycled ones */
	struct nc_segment segment;
	enum NC_kind kind;
	size_t first;		  /* where units may begin: bytes */
	struct nc_extent extent;  /* recycled, of many units: pages behind first */
	size_t appended;	  /* appended: bytes laid */
	uint32_t newest, oldest;  /* ends of the list of its units, or NC_UNIT_NONE */
	uint32_t count;		  /* units, in any state */
	_Atomic uint32_t filling; /* of them not inserted, and copies on their way in */
	size_t live;		  /* bytes of memory of its units */
	bool full;		  /* no more is laid; with its last unit it is closed */
	bool alone;		  /* of one unit: full from the first on */
	bool sealed;		  /* appended: nobody can write it any more */
	bool frozen;		  /* sealed: can be written no more */
	bool counted;		  /* its descriptor, as one of the member's max_descriptors */
	bool busy;		  /* being cleaned: its cleaner closes it */
	bool weighed;		  /* what follows is known, from now or earlier */
	unsigned pass;		  /* the search for room that had to leave it, if any */
	struct nc_device *device; /* kernel: where the unit is; else NULL */
	uint64_t name;		  /* there */
	bool imported;		  /* kernel: another process's, and held in the module */
	size_t copied;		  /* kernel: bytes of the private copy that are counted */
	_Atomic bool present;	  /* its inserted units have their bytes in the segment */
	struct nc_cleaning_segment weight;
};

/*
 * A store with a segment of its own, for one unit of that size (alone) or for
 * many; NULL and *error on failure.  No memory is taken from the system yet.
 */
struct nc_store *nc_store_create(enum NC_kind kind, size_t size, bool huge, bool alone, int *error);

/* A store over a segment that exists and now belongs to it; units behind first. */
struct nc_store *nc_store_over(const struct nc_segment *segment, size_t first, int *error);

/* A sealed store over a frozen segment that now belongs to it. */
struct nc_store *nc_store_over_frozen(const struct nc_segment *segment, int *error);

/* A kernel store of that size, whole pages.  -ENOSPC: the module has no room. */
struct nc_store *nc_store_create_kernel(struct nc_device *device, size_t size, int *error);

/*
 * A kernel store over an inserted unit of that size, another process's, of
 * which this process may have the use: held there, or where it may hold no
 * more, copied.  0 or errors of holding.
 */
struct nc_store *nc_store_borrow_kernel(struct nc_device *device, uint64_t name,
					const struct nc_layout *layout, int *error);

/*
 * A private copy of a kernel store's unit, which is inserted, at
 * nc_unit_base() from then on.  One thread at a time.  0 or -errno.
 */
int nc_store_fetch(struct nc_store *store, size_t size);

void nc_store_close(struct nc_store *store);

/* Memory for a unit; its offset in the segment, or -ENOMEM. */
int64_t nc_store_take(struct nc_store *store, size_t extent);

/* Gives back what take gave and nothing was entered at. */
void nc_store_untake(struct nc_store *store, uint64_t at, size_t extent);

/* Enters the unit at an offset that take gave, and takes it out again. */
void nc_store_enter(struct nc_store *store, struct nc_units *units, struct nc_unit *unit,
		    uint64_t at);
void nc_store_leave(struct nc_store *store, struct nc_units *units, struct nc_unit *unit);

/*
 * Huge pages for appended memory, where the store's segment has them: each
 * block of NC_HUGE_PAGE bytes is collapsed before it is written for the first
 * time, one in a call.  A block that lies in one unit alone is collapsed when
 * filling the unit reaches it, by nc_store_prepare(): the unit's memory from
 * its start to `prepared` is done; returns how far it is done now, SIZE_MAX
 * for all of it.  The block in which the unit ends and the next unit will
 * begin is collapsed by nc_store_prepare_last(), as long as nobody uses the
 * memory behind the unit.  No lock: the store stays while the unit is being
 * filled.
 */
size_t nc_store_prepare(const struct nc_unit *unit, size_t prepared);
void nc_store_prepare_last(const struct nc_unit *unit);

/* Instead of insert: what was never named may be laid again. */
void nc_store_retract(struct nc_store *store, const struct nc_unit *unit);

/*
 * Before a unit is named: appended and sealed memory is written no more
 * (invariant 1); recycled memory stays writable unless protect says otherwise.
 * Needs no lock: the store stays while the unit is being filled.
 */
int nc_store_protect(struct nc_store *store, const struct nc_unit *unit, bool protect);

/* The unit is inserted: no longer being filled.  Needs no lock; true: it was the last one. */
static inline bool nc_store_filled(struct nc_store *store)
{
	return atomic_fetch_sub_explicit(&store->filling, 1, memory_order_acq_rel) == 1;
}

/* Whether the bytes of a unit that is inserted are at nc_unit_base(). */
static inline bool nc_unit_present(const struct nc_unit *unit)
{
	return atomic_load_explicit(&unit->store->present, memory_order_acquire);
}

/* Whether its pages may be handed to a socket by the segment's descriptor. */
static inline bool nc_unit_spliceable(const struct nc_unit *unit)
{
	return unit->store->kind == NC_KIND_APPENDED || unit->store->kind == NC_KIND_SEALED;
}

/*
 * Bytes of a unit that is inserted, into memory, gaps left out; the range is
 * inside.  0; -errno: the module did not give them.
 */
int nc_unit_read(const struct nc_unit *unit, size_t offset, void *to, size_t length);

/* Of a unit that is being filled, or present. */
static inline char *nc_unit_base(const struct nc_unit *unit)
{
	return unit->store->segment.base + unit->at;
}

#endif
