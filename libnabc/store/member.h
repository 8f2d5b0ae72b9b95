/* SPDX-License-Identifier: MIT */
/*
 * member.h - the memory of this process as one member of a cache: its
 * stores, its table of units, its quota.
 *
 * The owner is member 0 and may open and evict stores within its budget; an
 * attached process has one store, which the owner gave it, and publishes
 * its units in the table at the segment's start.  All calls lock inside and
 * may come from any thread; hold and release of a live unit lock nothing.
 */
#ifndef NC_MEMBER_H
#define NC_MEMBER_H

#include "store/pool.h"

int nc_member_init_owner(struct nc_member *member, size_t budget, bool huge);

/* Before anything is in it: policy, watermarks, limits.  0, or -EINVAL: out of range. */
int nc_member_configure(struct nc_member *member, const struct NC_cache_options *options);

/* Takes the segment over; its table ends and its units begin at first. */
int nc_member_init_attached(struct nc_member *member, unsigned number,
			    const struct nc_segment *segment, size_t first, uint32_t slots,
			    uint32_t generation);

/*
 * Units may lie in the kernel module from now on; in an attached process as
 * much as in its segment, and granted to the owner, whom the pidfd names.
 */
void nc_member_use_device(struct nc_member *member, struct nc_device *device, int owner_pidfd);

/* Whether there is a device, and the owner would take what this process lays there. */
bool nc_member_has_device(const struct nc_member *member);

/* Closes every store, whatever is in it. */
void nc_member_fini(struct nc_member *member);

/* Units that handles are filling. */
uint32_t nc_member_filling(struct nc_member *member);

/*
 * A unit in state FILLING with memory of that kind; the caller's until
 * inserted or abandoned.  0; -ENOMEM; -EMFILE and others of memfd_create;
 * -ENOSPC: the kernel module has no room for it.
 */
int nc_member_alloc(struct nc_member *member, const struct nc_layout *layout, enum NC_kind kind,
		    struct nc_unit **unit);
void nc_member_abandon(struct nc_member *member, struct nc_unit *unit);

/*
 * Enters a frozen segment that came from another process as one LIVE unit of
 * the owner's; the segment belongs to the member afterwards, and on failure
 * still to the caller.  Fragments have no sums.  The unit is held once, so that
 * it is still this one when the caller names it.  0; -ENOMEM.
 */
int nc_member_adopt(struct nc_member *member, const struct nc_segment *segment,
		    const struct nc_layout *layout, struct nc_unit **unit);

/* Publishes; on failure the unit is FILLING as before. */
int nc_member_insert(struct nc_member *member, struct nc_unit *unit);

/*
 * Sees to it that the bytes of an inserted unit, which the caller holds, are at
 * nc_unit_base() as long as it is held.  1: they were fetched; 0: they were
 * there; -ENOMEM; errors of mmap(2).
 */
int nc_member_fetch(struct nc_member *member, struct nc_unit *unit);

/*
 * 0, -ENOENT.  A unit whose time is over is no more, whether it was collected
 * or not; who holds it already may hold it again with unlinked.
 */
int nc_member_hold(struct nc_member *member, struct nc_unit *unit, unsigned generation,
		   bool unlinked);
int nc_member_release(struct nc_member *member, struct nc_unit *unit, unsigned generation);
int nc_member_destroy(struct nc_member *member, struct nc_unit *unit, unsigned generation);

/* Whether anybody holds the unit, which is used by that once more. */
bool nc_member_held(struct nc_member *member, struct nc_unit *unit, unsigned generation);

/* Whether the time of a unit that the caller holds is over. */
bool nc_unit_expired(const struct nc_unit *unit);

/*
 * Of a unit that the caller holds.  milliseconds from now, 0: for ever.
 * 0; -EINVAL, -ERANGE: no such priority, more than a year; -ENOMEM.
 */
int nc_member_set_priority(struct nc_member *member, struct nc_unit *unit,
			   enum NC_priority priority);
int nc_member_set_lifetime(struct nc_member *member, struct nc_unit *unit, uint64_t milliseconds);

#endif
