/* SPDX-License-Identifier: MIT */
/*
 * checksum.h - the Internet checksum (RFC 1071) of memory, and of data whose parts
 * have known sums.
 *
 * Sums here are ones' complement sums, folded to 16 bits and not complemented, in
 * the byte order of the words in memory; the sums of two even-length parts can be
 * added (RFC 1071 section 2).  Zero has two forms: only data of all zeroes has sum
 * 0; any other sum that is zero is 0xffff.
 */
#ifndef NC_CHECKSUM_H
#define NC_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Returns the sum of data as 16-bit words; an odd last byte is padded with zero. */
uint16_t nc_checksum(const void *data, size_t length);

/* Returns the sum of a followed by b; odd: a has an odd number of bytes. */
uint16_t nc_checksum_add(uint16_t a, uint16_t b, int odd);

/*
 * Returns the sum of count consecutive parts of equal length with these sums; odd:
 * each has an odd number of bytes.
 */
uint16_t nc_checksum_add_many(const uint16_t *parts, size_t count, int odd);

/*
 * Returns the sum of data after a part was rewritten (RFC 1624): before and after
 * are the part's sums; odd: it begins at an odd byte.  The result 0xffff may stand
 * for either form of zero.
 */
uint16_t nc_checksum_update(uint16_t sum, uint16_t before, uint16_t after, int odd);

/* nc_checksum() without CPU extensions, for tests and for CPUs that have none. */
uint16_t nc_checksum_plain(const void *data, size_t length);

#endif
