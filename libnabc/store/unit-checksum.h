/* SPDX-License-Identifier: MIT */
/*
 * unit-checksum.h - the checksums of a unit's fragments: stored with the unit from
 * the time it is filled, combined for any range, and compared with the bytes.
 *
 * A unit has checksums of one kind, or none (units of other processes).  The thread
 * that fills the unit owns them.  They never change after insert; from then on any
 * thread that holds the unit may read them.  Here an Internet checksum is in the
 * byte order of memory (checksum.h).
 */
#ifndef NC_UNIT_CHECKSUM_H
#define NC_UNIT_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <nabc.h>

#include "store/unit.h"

/* Returns the kind of the unit's checksums; NC_CHECKSUM_DEFAULT: none. */
enum NC_checksum_kind nc_unit_checksum_kind(const struct nc_unit *unit);

/*
 * Allocates checksums of that kind, not yet computed; freed with the unit.  Returns
 * 0, -ENOMEM, or -EINVAL (no such kind).
 */
int nc_unit_checksum_init(struct nc_unit *unit, enum NC_checksum_kind kind);

/* Truncates the unit to that many fragments; their checksums remain. */
void nc_unit_checksum_shorten(struct nc_unit *unit, uint32_t fragments);

/* Recomputes the checksums of fragments [first, end). */
void nc_unit_checksum_compute(struct nc_unit *unit, size_t first, size_t end);

/*
 * Overwrites bytes of one fragment whose checksum is known.  Updates the checksum
 * by the difference if that is less work than recomputing it.
 */
void nc_unit_checksum_rewrite(struct nc_unit *unit, size_t offset, const void *data, size_t length);

/*
 * Returns the checksum of a range inside the unit.  For the stored kind, the time
 * depends on the number of fragments, plus the bytes of fragments that the range
 * cuts; for the other kind, it reads every byte.
 */
uint32_t nc_unit_checksum_range(const struct nc_unit *unit, enum NC_checksum_kind kind,
				size_t offset, size_t length);

/* Whether nc_unit_checksum_range() reads bytes; then the unit must be present in memory. */
bool nc_unit_checksum_reads(const struct nc_unit *unit, enum NC_checksum_kind kind, size_t offset,
			    size_t length);

/*
 * Compares fragments from `first` on with their checksums until `bytes` bytes were
 * read, but at least one fragment.  Returns the number of good fragments, 0 behind
 * the last; -EBADMSG: one is corrupt; -ENODATA: the unit has no checksums.
 */
ssize_t nc_unit_checksum_verify(const struct nc_unit *unit, size_t first, size_t bytes);

#endif
