/* SPDX-License-Identifier: MIT */
/*
 * held-unit.h - a unit with one hold, as the library passes it with a response.
 */
#ifndef HELD_UNIT_H
#define HELD_UNIT_H

#include <nabc.h>

#include "suite.h"

static inline struct NC_range held(size_t length)
{
	struct NC_range range = {.length = length};
	NC_handle unit;

	ck_assert_int_eq(NC_alloc(&unit, length, 0), 0);
	ck_assert_int_eq(NC_insert(&unit), 0);
	range.id = NC_cache_id(&unit);
	ck_assert_int_eq(NC_free(&unit), 0);
	ck_assert_int_eq(NC_hold(NULL, range.id), 0);
	return range;
}

#endif
