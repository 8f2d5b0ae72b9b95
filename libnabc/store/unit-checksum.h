/* SPDX-License-Identifier: MIT */
/*
 * unit-checksum.h - the checksums of a unit's fragments: computed when first needed,
 * kept with the unit, combined for any range, and compared with the bytes.
 *
 * A unit keeps checksums of one kind, or none (units of other processes).  Most units
 * have none when they are inserted.  The first thread that needs them computes those
 * of all fragments and publishes them; they never change again.  Two threads may
 * compute them at the same time; the first to publish wins, and no thread waits.
 * With nc_unit_checksum_keep() the thread that fills the unit computes them instead
 * and owns them until insert.
 *
 * Functions that compute or read bytes need the unit's bytes at nc_unit_base(); after
 * insert, the caller holds the unit.  Here an Internet checksum is in the byte order
 * of memory (checksum.h).
 */
#ifndef NC_UNIT_CHECKSUM_H
#define NC_UNIT_CHECKSUM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <nabc.h>

#include "store/unit.h"

/* Returns the kind of the unit's checksums, computed or not; NC_CHECKSUM_DEFAULT: none. */
enum NC_checksum_kind nc_unit_checksum_kind(const struct nc_unit *unit);

/* The unit shall have checksums of that kind.  Returns 0, or -EINVAL (no such kind). */
int nc_unit_checksum_init(struct nc_unit *unit, enum NC_checksum_kind kind);

/* Whether the unit has its checksums now. */
static inline bool nc_unit_checksum_kept(const struct nc_unit *unit)
{
	return atomic_load_explicit(&unit->summed, memory_order_acquire) == NC_SUMS_KEPT;
}

/* --- while the unit is filled ---------------------------------------------------- */

/*
 * Allocates the checksums, which the caller then computes before insert; freed with
 * the unit.  Returns 0 or -ENOMEM.
 */
int nc_unit_checksum_keep(struct nc_unit *unit);

/* Truncates the unit to that many fragments; their checksums remain, if there are any. */
void nc_unit_checksum_shorten(struct nc_unit *unit, uint32_t fragments);

/*
 * The opposite: the new fragments' checksums are undefined.  Returns 0, or -ENOMEM: nothing
 * has changed.
 */
int nc_unit_checksum_lengthen(struct nc_unit *unit, uint32_t fragments);

/* Moves the kind, and the checksums, to a new unit with as many fragments and without a kind. */
void nc_unit_checksum_move(struct nc_unit *from, struct nc_unit *to);

/* Recomputes the checksums of fragments [first, end), if the unit keeps them already. */
void nc_unit_checksum_compute(struct nc_unit *unit, size_t first, size_t end);

/*
 * Overwrites bytes of one fragment whose checksum is known.  Updates the checksum
 * by the difference if that is less work than recomputing it.
 */
void nc_unit_checksum_rewrite(struct nc_unit *unit, size_t offset, const void *data, size_t length);

/* --- after insert; any thread ------------------------------------------------------ */

/*
 * Computes the checksums of an inserted unit unless it has them.  Returns 1 if this
 * call computed them, so that a comparison would find nothing; 0 if it had them;
 * -ENOMEM; or -ENODATA (the unit keeps none).
 */
int nc_unit_checksum_make(struct nc_unit *unit);

/*
 * Computes them in steps.  A draft is memory for the checksums of all fragments, which the
 * caller owns; NULL: no memory.  Free it with free(), or publish it, once every
 * fragment was computed; the unit then keeps it, unless it has checksums already.
 * nc_unit_checksum_draft_step() computes as many fragments from `first` on as
 * nc_unit_checksum_verify() would compare, and returns their number.
 */
void *nc_unit_checksum_draft(const struct nc_unit *unit);
size_t nc_unit_checksum_draft_step(const struct nc_unit *unit, void *draft, size_t first,
				   size_t bytes);
void nc_unit_checksum_publish(struct nc_unit *unit, void *draft);

/*
 * Returns the checksum of a range inside the unit.  For the unit's own kind, the time
 * depends on the number of fragments, plus the bytes of fragments that the range
 * cuts; the first such call computes the checksums of all fragments, if the range
 * contains a whole one and there is memory.  For the other kind, it reads every byte.
 */
uint32_t nc_unit_checksum_range(struct nc_unit *unit, enum NC_checksum_kind kind, size_t offset,
				size_t length);

/*
 * Asks the module for the checksum of a range of a unit whose bytes only the kernel has, without
 * a copy.  Returns 0 or -errno; then the bytes must be fetched.
 */
int nc_unit_checksum_ask(const struct nc_unit *unit, enum NC_checksum_kind kind, size_t offset,
			 size_t length, uint32_t *sum);

/* Whether nc_unit_checksum_range() reads bytes; then the unit must be present in memory. */
bool nc_unit_checksum_reads(const struct nc_unit *unit, enum NC_checksum_kind kind, size_t offset,
			    size_t length);

/*
 * Compares fragments from `first` on with their checksums until `bytes` bytes were
 * read, but at least one fragment.  Returns the number of good fragments, 0 behind
 * the last; -EBADMSG: one is corrupt; -ENODATA: the unit has no checksums, or not yet.
 */
ssize_t nc_unit_checksum_verify(const struct nc_unit *unit, size_t first, size_t bytes);

#endif
