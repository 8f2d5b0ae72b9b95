/* SPDX-License-Identifier: MIT */
/*
 * eviction.h - reclaims memory of a member: which units are evicted, and which are moved.
 *
 * Units that are held, pinned or being filled are never evicted.  A segment that many
 * units share is cleaned: its best units are copied to where there is room, within the
 * member's clean_limit, the others are evicted, and the segment is closed.
 *
 * All calls are of the owner's member, under its growing mutex and its lock; those that
 * say so leave the lock while they copy.
 */
#ifndef NC_EVICTION_H
#define NC_EVICTION_H

#include "store/pool.h"

/*
 * Frees budget for `need` more bytes of segments.  0, or -ENOMEM: that cannot
 * be had now, and nothing was evicted for it.  Leaves the lock.
 */
int nc_eviction_free(struct nc_member *member, size_t need);

/*
 * Frees a run of pages in a recycled segment, if what should go next lies in
 * one; any: wherever it can be had.  0; -ENOMEM, and nothing was evicted.
 */
int nc_eviction_run(struct nc_member *member, uint32_t pages, bool any);

/*
 * Frees a descriptor for one more segment, by evicting what has one.  0, or
 * -EMFILE: all are of segments that are in use.  Leaves the lock.
 */
int nc_eviction_descriptor(struct nc_member *member);

/* Evicts the unit that should go next, for its slot.  0 or -ENOMEM. */
int nc_eviction_slot(struct nc_member *member);

/*
 * Ahead of need: a lone unit or a segment less.  What is in the way because it
 * is held is marked, so that its last holder says so.  false: nothing may go.
 * Leaves the lock.
 */
bool nc_eviction_ahead(struct nc_member *member);

/*
 * Opens a segment for many units, which is charged with its descriptor already.  0 or
 * -errno.  Leaves the lock.
 */
int nc_eviction_open(struct nc_member *member, enum NC_kind kind);

#endif
