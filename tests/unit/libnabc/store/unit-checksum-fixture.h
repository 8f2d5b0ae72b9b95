/* SPDX-License-Identifier: MIT */
/*
 * unit-checksum-fixture.h - shared by the tests of unit-checksum.c: units of many
 * shapes in plain memory, and the sums of their bytes in one piece.
 */
#ifndef UNIT_CHECKSUM_FIXTURE_H
#define UNIT_CHECKSUM_FIXTURE_H

#include <nabc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/crc32c.h"
#include "base/fragment.h"
#include "os/segment.h"
#include "store/store.h"
#include "store/unit-checksum.h"
#include "store/unit.h"

#include "suite.h"

static const enum NC_checksum_kind kinds[] = {NC_CHECKSUM_INET, NC_CHECKSUM_CRC32C};

static struct nc_store store;

/* Even and odd fragments, with and without gaps, with sums inside the unit and outside. */
static const struct {
	size_t size, fraglen;
} shapes[] = {{1, 0},	       {5000, 0},	{8192, 0},     {16385, 0},     {40000, 0},
	      {700, 1448},     {1448, 1448},	{14480, 1448}, {20000, 1448},  {333, 100},
	      {10000, 99},     {100, 1},	{5, 1},	       {4000, 64},     {1001, 8},
	      {60000, 4095},   {100000, 12288}, {90000, 1025}, {200000, 8192}, {77, 33},
	      {3 * 1449, 1449}};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static inline void make_unit(struct nc_unit *unit, size_t size, size_t fraglen, uint64_t seed)
{
	*unit = (struct nc_unit){.store = &store};
	ck_assert_int_eq(nc_layout_init(&unit->layout, size, fraglen), 0);
	store.segment.base = must_alloc(unit->layout.extent);
	/* Gaps belong to no fragment and must not count. */
	memset(store.segment.base, 0xcc, unit->layout.extent);
	for (size_t at = 0, run; at < size; at += run) {
		size_t where = nc_layout_at(&unit->layout, at, &run);

		pattern_fill(store.segment.base + where, seed, at, run);
	}
}

static inline void free_unit(struct nc_unit *unit)
{
	if (nc_unit_sums_outside(unit))
		free(unit->sums);
	free(store.segment.base);
}

static inline char *byte_at(const struct nc_unit *unit, size_t at)
{
	size_t run;

	return nc_unit_base(unit) + nc_layout_at(&unit->layout, at, &run);
}

static inline unsigned char *flat(const struct nc_unit *unit)
{
	unsigned char *bytes = must_alloc(unit->layout.size);

	for (size_t at = 0, run; at < unit->layout.size; at += run) {
		size_t where = nc_layout_at(&unit->layout, at, &run);

		memcpy(bytes + at, nc_unit_base(unit) + where, run);
	}
	return bytes;
}

static inline uint32_t sum_of(enum NC_checksum_kind kind, const void *bytes, size_t length)
{
	return kind == NC_CHECKSUM_INET ? nc_checksum(bytes, length) : nc_crc32c(0, bytes, length);
}

static inline void check_range(struct nc_unit *unit, const unsigned char *bytes, size_t offset,
			       size_t length)
{
	for (unsigned k = 0; k < 2; k++)
		expect(nc_unit_checksum_range(unit, kinds[k], offset, length) ==
		       sum_of(kinds[k], bytes + offset, length));
}

#endif
