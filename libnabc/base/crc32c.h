/* SPDX-License-Identifier: MIT */
/*
 * crc32c.h - CRC32C (Castagnoli, as in RFC 3720) of memory, and of data whose parts
 * have known CRCs.
 */
#ifndef NC_CRC32C_H
#define NC_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Returns the CRC of data that follows data with the CRC `before`; 0 at the start. */
uint32_t nc_crc32c(uint32_t before, const void *data, size_t length);

/*
 * Returns the operator that appends length bytes to a CRC; O(log length).  Compute
 * it once if many parts have the same length.
 */
uint32_t nc_crc32c_operator(size_t length);

/* Returns the CRC of a followed by b; length_of_b is the operator of b's length. */
uint32_t nc_crc32c_add(uint32_t a, uint32_t b, uint32_t length_of_b);

/*
 * Returns the CRC of data after a part was rewritten: before and after are the
 * part's CRCs, behind is the operator of the bytes that follow it.
 */
uint32_t nc_crc32c_update(uint32_t crc, uint32_t before, uint32_t after, uint32_t behind);

/* Without CPU extensions, for tests and for CPUs that have none. */
uint32_t nc_crc32c_plain(uint32_t before, const void *data, size_t length);
uint32_t nc_crc32c_add_plain(uint32_t a, uint32_t b, uint32_t length_of_b);

#endif
