/* SPDX-License-Identifier: MIT */
/*
 * unit-checksum.h - the sums of a unit's fragments: kept beside the unit from the time
 * it is filled, combined for any range, and compared with the bytes.
 *
 * A unit keeps sums of one kind, or none (another process's units).  They
 * belong to whoever fills the unit and never change once it is inserted; from
 * then on any thread that holds the unit may use them.  An Internet checksum
 * is in the byte order of memory here (checksum.h).
 */
#ifndef NC_UNIT_CHECKSUM_H
#define NC_UNIT_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <nabc.h>

#include "store/unit.h"

/* The kind that the unit keeps; NC_CHECKSUM_DEFAULT: none. */
enum NC_checksum_kind nc_unit_checksum_kind(const struct nc_unit *unit);

/*
 * Room for sums of that kind, which are not known yet; freed with the unit.
 * 0, -ENOMEM; -EINVAL: no such kind.
 */
int nc_unit_checksum_init(struct nc_unit *unit, enum NC_checksum_kind kind);

/* The unit ends with so many fragments, of those that it has; their sums stay. */
void nc_unit_checksum_shorten(struct nc_unit *unit, uint32_t fragments);

/* Sums the fragments [first, end) anew. */
void nc_unit_checksum_compute(struct nc_unit *unit, size_t first, size_t end);

/*
 * Writes data over bytes of one fragment whose sum is known, and corrects the
 * sum by what changed, if that is less work than to sum the fragment.
 */
void nc_unit_checksum_rewrite(struct nc_unit *unit, size_t offset, const void *data, size_t length);

/*
 * The sum of a range inside the unit.  Of the kept kind, it costs as much as
 * there are fragments, plus reading the bytes of those that the range cuts;
 * of the other kind, every byte is read.
 */
uint32_t nc_unit_checksum_range(const struct nc_unit *unit, enum NC_checksum_kind kind,
				size_t offset, size_t length);

/* Whether it reads bytes, of which there must be some in memory then. */
bool nc_unit_checksum_reads(const struct nc_unit *unit, enum NC_checksum_kind kind, size_t offset,
			    size_t length);

/*
 * Compares fragments from `first` on with their sums, until `bytes` bytes were
 * read, but at least one fragment.  The number of fragments that are good, 0
 * behind the last; -EBADMSG: one is not; -ENODATA: the unit keeps no sums.
 */
ssize_t nc_unit_checksum_verify(const struct nc_unit *unit, size_t first, size_t bytes);

#endif
