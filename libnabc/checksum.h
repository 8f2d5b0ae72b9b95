/* SPDX-License-Identifier: MIT */
/*
 * checksum.h - the Internet checksum (RFC 1071) of memory.
 */
#ifndef NC_CHECKSUM_H
#define NC_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/*
 * The ones' complement sum of data taken as big-endian 16-bit words, an odd
 * last byte padded with zero, folded to 16 bits and not complemented, in the
 * machine's byte order of the words in memory (so two sums of even-length
 * parts add up, RFC 1071 section 2).
 */
uint16_t nc_checksum(const void *data, size_t length);

/* Sum of a followed by b; odd says that a has an odd number of bytes. */
uint16_t nc_checksum_add(uint16_t a, uint16_t b, int odd);

#endif
