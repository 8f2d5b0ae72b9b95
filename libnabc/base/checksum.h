/* SPDX-License-Identifier: MIT */
/*
 * checksum.h - the Internet checksum (RFC 1071) of memory, and of data whose
 * parts have been summed before.
 *
 * Sums here are ones' complement sums, folded to 16 bits and not
 * complemented, in the byte order of the words in memory; two sums of
 * even-length parts simply add up (RFC 1071 section 2).  Zero has two forms:
 * only data that is all zero sums to 0, else a sum that is zero is 0xffff.
 */
#ifndef NC_CHECKSUM_H
#define NC_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* The sum of data taken as 16-bit words, an odd last byte padded with zero. */
uint16_t nc_checksum(const void *data, size_t length);

/* Sum of a followed by b; odd says that a has an odd number of bytes. */
uint16_t nc_checksum_add(uint16_t a, uint16_t b, int odd);

/*
 * Sum of count parts in a row that have the same length and these sums; odd
 * says that each has an odd number of bytes.
 */
uint16_t nc_checksum_add_many(const uint16_t *parts, size_t count, int odd);

/*
 * The sum of data of which a part is rewritten (RFC 1624): before and after
 * are the part's own sums, odd says that it begins at an odd byte.  A result
 * of 0xffff may stand for either form of zero.
 */
uint16_t nc_checksum_update(uint16_t sum, uint16_t before, uint16_t after, int odd);

/* nc_checksum() without the CPU's help, for tests and for CPUs that have none. */
uint16_t nc_checksum_plain(const void *data, size_t length);

#endif
