/* SPDX-License-Identifier: MIT */
/*
 * crc32c.h - CRC32C (Castagnoli, as in RFC 3720) of memory, and of data whose
 * parts' CRCs are known.
 */
#ifndef NC_CRC32C_H
#define NC_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of data that follows data with the CRC before; 0 at the start. */
uint32_t nc_crc32c(uint32_t before, const void *data, size_t length);

/*
 * What length bytes do to the CRC of whatever precedes them; O(log length).
 * Worth keeping where many parts have the same length.
 */
uint32_t nc_crc32c_operator(size_t length);

/* CRC of a followed by b, whose length the operator is made of. */
uint32_t nc_crc32c_add(uint32_t a, uint32_t b, uint32_t length_of_b);

/*
 * The CRC of data of which a part is rewritten: before and after are the
 * part's own CRCs, behind is the operator of the bytes that follow it.
 */
uint32_t nc_crc32c_update(uint32_t crc, uint32_t before, uint32_t after, uint32_t behind);

/* The same without the CPU's help, for tests and for CPUs that have none. */
uint32_t nc_crc32c_plain(uint32_t before, const void *data, size_t length);
uint32_t nc_crc32c_add_plain(uint32_t a, uint32_t b, uint32_t length_of_b);

#endif
