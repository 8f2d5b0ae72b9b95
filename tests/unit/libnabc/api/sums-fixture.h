/* SPDX-License-Identifier: MIT */
/* sums-fixture.h - checksums, computed bit by bit and by the library. */
#ifndef SUMS_FIXTURE_H
#define SUMS_FIXTURE_H

#include <nabc.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include "base/id.h"

#include "nabc-fixture.h"
#include "suite.h"

static inline uint32_t crc_of(const unsigned char *data, size_t length)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < length; i++) {
		crc ^= data[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
	}
	return ~crc;
}

static inline uint32_t must_sum(size_t id, enum NC_checksum_kind kind, size_t offset, size_t length)
{
	uint32_t value;

	ck_assert_int_eq(NC_checksum(cache, id, &value, kind, length, offset), 0);
	return value;
}

#endif
