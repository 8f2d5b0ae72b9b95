/* SPDX-License-Identifier: MIT */
/*
 * eviction.h - reclaims memory of a member: which units are evicted, and which are
 * moved.
 *
 * Units that are held, pinned or being filled are never evicted.  A segment that
 * many units share is compacted: its best units are copied to other segments,
 * within the member's clean_limit, the rest are evicted, and the segment is closed.
 *
 * All calls are for the owner's member, with its growing mutex and its lock held.
 * Functions that say so release the lock while they copy.
 */
#ifndef NC_EVICTION_H
#define NC_EVICTION_H

#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nc_member;

/*
 * Frees budget for `need` more bytes of segments.  Returns 0, or -ENOMEM if that is
 * impossible now; then nothing was evicted for it.  Releases the lock meanwhile.
 */
int nc_eviction_free(struct nc_member *member, size_t need);

/*
 * Frees a run of pages in a recycled segment if the next victim is in one; with
 * any: wherever possible.  Returns 0, or -ENOMEM if nothing was evicted.
 */
int nc_eviction_run(struct nc_member *member, uint32_t pages, bool any);

/*
 * Frees a descriptor for one more segment by evicting units that occupy one.
 * Returns 0, or -EMFILE if all segments with one are in use.  Releases the lock
 * meanwhile.
 */
int nc_eviction_descriptor(struct nc_member *member);

/* Evicts the next victim to free its slot.  Returns 0 or -ENOMEM. */
int nc_eviction_slot(struct nc_member *member);

/*
 * Reclaims in advance: closes one single-unit store or one shared segment.  Held
 * units in the way are marked, so that their last holder wakes the collector.
 * Returns false if nothing can be evicted.  Releases the lock meanwhile.
 */
bool nc_eviction_ahead(struct nc_member *member);

/*
 * Opens a segment for many units; its bytes and descriptor are already charged.
 * Returns 0 or -errno.  Releases the lock meanwhile.
 */
int nc_eviction_open(struct nc_member *member, enum NC_kind kind);

#endif
