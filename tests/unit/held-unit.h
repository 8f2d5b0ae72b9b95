/* SPDX-License-Identifier: MIT */
/*
 * held-unit.h - a unit with one hold, as the library passes it with a response.
 */
#ifndef HELD_UNIT_H
#define HELD_UNIT_H

#include <nabc-worker.h>
#include <nabc.h>
#include <stddef.h>

#include "suite.h"
#include "unit-holds.h"

static inline struct NC_range held(size_t length)
{
	struct NC_range range = {.length = length};
	NC_handle unit;

	ck_assert_int_eq(NC_alloc(&unit, length, 0), 0);
	ck_assert_int_eq(NC_insert(&unit), 0);
	range.id = NC_cache_id(&unit);
	ck_assert_int_eq(NC_free(&unit), 0);
	ck_assert_int_eq(hold_id(NULL, range.id), 0);
	return range;
}

/* The holds of such units as a response has them; good until the next call. */
static inline const struct NC_hold *holds_of_ranges(const struct NC_range *ranges, unsigned count)
{
	static struct NC_hold holds[NC_RESPONSE_RANGES_MAX];

	for (unsigned i = 0; i < count; i++)
		holds[i] = hold_of_id(NULL, ranges[i].id);
	return holds;
}

#endif
