/* SPDX-License-Identifier: MIT */
/*
 * store.h - one segment in use: its kind, its free memory, its units.
 *
 * recycled: runs of pages are taken and returned in place.  appended: units are
 * laid one behind the other and never overwritten; the store is freed as a whole.
 * Only pages that were never part of an inserted unit are returned there.
 * sealed: one unit, frozen at insert.  kernel: one unit, in the module's arena or in
 * a buffer of the device until insert, afterwards only in the module; code that needs
 * its bytes in memory makes a private copy, which lives as long as the unit.
 *
 * All functions are called with the lock of the member that owns the store, unless
 * their comment says otherwise.
 */
#ifndef NC_STORE_H
#define NC_STORE_H

#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/extent.h"
#include "base/fragment.h"
#include "os/segment.h"
#include "policy/cleaning.h"
#include "store/unit.h"

struct nc_device;
struct nc_layout;
struct nc_pin;

struct nc_store {
	struct nc_store *next, *previous; /* in the member's list */
	struct nc_store *next_run;	  /* in the member's list of recycled stores */
	struct nc_segment segment;
	enum NC_kind kind;
	size_t first;		  /* offset in bytes where units may begin */
	struct nc_extent extent;  /* many units: the pages behind first */
	size_t appended;	  /* bytes up to which units may have memory */
	uint32_t newest, oldest;  /* ends of the list of its units, or NC_UNIT_NONE */
	uint32_t count;		  /* units in any state */
	_Atomic uint32_t filling; /* units not yet inserted, and copies in progress */
	size_t live;		  /* bytes of memory of its units */
	bool full;		  /* takes no more units; closed with its last unit */
	bool alone;		  /* for one unit: full from the start */
	bool sealed;		  /* appended: read-only for every process */
	bool frozen;		  /* sealed: read-only */
	bool counted;		  /* its descriptor counts towards the member's max_descriptors */
	bool busy;		  /* being compacted: the compaction closes it */
	bool weighed;		  /* weight is valid, possibly from an earlier rating */
	unsigned pass;		  /* number of the last search that could not reclaim it */
	struct nc_device *device; /* kernel: the device with the unit; otherwise NULL */
	uint64_t name;		  /* of the unit in the device */
	bool buffered;		  /* kernel: filled in a buffer of the device, not in the arena */
	/* kernel: belongs to another process, and is held in the module */
	bool imported;
	size_t copied;	      /* kernel: bytes of the private copy that are charged */
	_Atomic bool present; /* the bytes of its inserted units are in the segment */
	struct nc_cleaning_segment weight;
};

/*
 * Creates a store with its own segment, for one unit of that size (alone) or for
 * many.  Returns NULL and sets *error on failure.  The system allocates no memory
 * yet.
 */
struct nc_store *nc_store_create(enum NC_kind kind, size_t size, bool huge, bool alone, int *error);

/* Creates a store over an existing segment and takes ownership of it; units begin at first. */
struct nc_store *nc_store_over(const struct nc_segment *segment, size_t first, int *error);

/* Creates a sealed store over a frozen segment and takes ownership of it. */
struct nc_store *nc_store_over_frozen(const struct nc_segment *segment, int *error);

/*
 * Creates a kernel store of that size, in whole pages.  buffered: in a buffer of the
 * device, if it has one.  -ENOSPC: the module has no memory.
 */
struct nc_store *nc_store_create_kernel(struct nc_device *device, size_t size, bool buffered,
					int *error);

/*
 * A buffer is used again after the insert, so a unit must leave it before a pointer to
 * its bytes is given away; it also leaves it so that the module can read into the unit.
 * Its first filled bytes go with it: to the arena, or, if the module has no memory
 * (-ENOSPC), to private memory with nc_store_keep().  pin: for that memory; may be NULL.
 */
int nc_store_use_arena(struct nc_store *store, size_t filled);
int nc_store_keep(struct nc_store *store, size_t filled, struct nc_pin *pin);

/* Whether the unit, which is being filled, is in the module's arena. */
static inline bool nc_store_in_arena(const struct nc_store *store)
{
	return store->device && !store->buffered;
}

/* Makes the module's unit of size bytes from the buffer.  -ENOSPC: as above. */
int nc_store_put(struct nc_store *store, size_t size);

/*
 * Creates a kernel store over an inserted unit of another process that this process
 * may use.  Holds the unit in the module, or copies it if this process may hold no
 * more.  pin: for the copy; may be NULL.  *error: errors of holding.
 */
struct nc_store *nc_store_borrow_kernel(struct nc_device *device, uint64_t name,
					const struct nc_layout *layout, struct nc_pin *pin,
					int *error);

/*
 * Makes a private copy of an inserted kernel unit; it is then at nc_unit_base().
 * pin: for the copy; may be NULL.  One thread at a time.  Returns 0 or -errno.
 */
int nc_store_fetch(struct nc_store *store, size_t size, struct nc_pin *pin);

void nc_store_close(struct nc_store *store);

/* Takes memory for a unit; returns its offset in the segment, or -ENOMEM. */
int64_t nc_store_take(struct nc_store *store, size_t extent);

/* Returns memory from nc_store_take() at which no unit was entered. */
void nc_store_untake(struct nc_store *store, uint64_t at, size_t extent);

/* Returns how many bytes can be taken, possibly in several pieces. */
size_t nc_store_room(const struct nc_store *store);

/*
 * Returns the memory behind the first extent bytes of a unit that is being filled, and
 * sets its extent.  A unit that has the store for itself: nc_store_shrink() first.
 */
void nc_store_trim(struct nc_store *store, struct nc_unit *unit, size_t extent);

/*
 * Reduces a store with a single unit, which is being filled, to its first size bytes.
 * Needs no lock: the store remains open while the unit is being filled.  Returns 0, or
 * -errno: unchanged.
 */
int nc_store_shrink(struct nc_store *store, size_t size);

/*
 * The opposites.  nc_store_extend() takes the pages behind the unit; -ENOMEM: one of
 * them is in use.  nc_store_grow() may change the store's base; -EXDEV: the unit must
 * move to other memory.
 */
int nc_store_extend(struct nc_store *store, struct nc_unit *unit, size_t extent);
int nc_store_grow(struct nc_store *store, size_t size, bool huge);

/* Enters the unit at an offset from nc_store_take(); removes it. */
void nc_store_enter(struct nc_store *store, struct nc_units *units, struct nc_unit *unit,
		    uint64_t at);
void nc_store_leave(struct nc_store *store, struct nc_units *units, struct nc_unit *unit);

/*
 * Huge pages for appended memory, if the store's segment has them.  Each block of
 * NC_HUGE_PAGE bytes is collapsed before it is written for the first time, one per
 * call.  nc_store_prepare() collapses a block that lies within one unit when filling
 * the unit reaches it: the first `prepared` bytes of the unit are done; it returns
 * how many are done now, SIZE_MAX for all.  nc_store_prepare_last() collapses the
 * block in which the unit ends and the next unit will begin; call it for the last
 * unit: see nc_store_is_last().  Neither needs a lock: the store remains open while
 * the unit is being filled.
 */
size_t nc_store_prepare(const struct nc_unit *unit, size_t prepared);

/* Call it before the unit grows where it is: how much is prepared after that. */
size_t nc_store_prepared(const struct nc_unit *unit, size_t prepared);
void nc_store_prepare_last(const struct nc_unit *unit);

/* Whether no unit uses the memory behind this one. */
static inline bool nc_store_is_last(const struct nc_unit *unit)
{
	return unit->at + unit->layout.extent == unit->store->appended;
}

/* Called instead of insert: memory of a unit that was never published may be used again. */
void nc_store_retract(struct nc_store *store, const struct nc_unit *unit);

/*
 * Called before a unit is published: makes appended and sealed memory read-only
 * (invariant 1).  Recycled memory remains writable unless protect is set.  Needs no
 * lock: the store remains open while the unit is being filled.
 */
int nc_store_protect(struct nc_store *store, const struct nc_unit *unit, bool protect);

/*
 * Ends the filling of one unit.  Needs no lock.  Returns true if it was the last one.  Pairs with
 * the acquires of `filling` before a store is closed, sealed or compacted.
 */
static inline bool nc_store_filled(struct nc_store *store)
{
	return atomic_fetch_sub_explicit(&store->filling, 1, memory_order_acq_rel) == 1;
}

/*
 * Whether the bytes of an inserted unit are at nc_unit_base().  Pairs with the releases in
 * nc_store_fetch() and protect_kernel().
 */
static inline bool nc_unit_present(const struct nc_unit *unit)
{
	return atomic_load_explicit(&unit->store->present, memory_order_acquire);
}

/* Whether its pages may be passed to a socket through the segment's descriptor. */
static inline bool nc_unit_spliceable(const struct nc_unit *unit)
{
	return unit->store->kind == NC_KIND_APPENDED || unit->store->kind == NC_KIND_SEALED;
}

/*
 * Copies bytes of an inserted unit, without gaps; the range must be inside the
 * unit.  Returns 0, or -errno if the module failed to copy.
 */
int nc_unit_read(const struct nc_unit *unit, size_t offset, void *to, size_t length);

/* For a unit that is being filled, or present. */
static inline char *nc_unit_base(const struct nc_unit *unit)
{
	return unit->store->segment.base + unit->at;
}

/* Where the kernel reads the unit's bytes without a copy: see nc_segment_whole(). */
static inline char *nc_unit_lent_base(const struct nc_unit *unit)
{
	return nc_segment_whole(&unit->store->segment) + unit->at;
}

#endif
