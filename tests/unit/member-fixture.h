/* SPDX-License-Identifier: MIT */
/*
 * member-fixture.h - shared by the tests of member.c: a member, and units in it.
 */
#ifndef MEMBER_FIXTURE_H
#define MEMBER_FIXTURE_H

#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/fragment.h"
#include "base/id.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#include "suite.h"

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)

static struct nc_member member;

static inline int try_alloc(size_t size, enum NC_kind kind, struct nc_unit **unit)
{
	struct nc_layout layout;

	ck_assert_int_eq(nc_layout_init(&layout, size, 0), 0);
	return nc_member_alloc(&member, &layout, kind, unit);
}

static inline struct nc_unit *must_fill(size_t size, enum NC_kind kind)
{
	struct nc_unit *unit = NULL;

	ck_assert_int_eq(try_alloc(size, kind, &unit), 0);
	pattern_fill(nc_unit_base(unit), unit->slot, 0, size);
	return unit;
}

static inline struct nc_unit *must_insert(size_t size, enum NC_kind kind, unsigned *generation)
{
	struct nc_unit *unit = must_fill(size, kind);

	ck_assert_int_eq(nc_member_insert(&member, unit, NULL), 0);
	*generation = nc_word_generation(nc_unit_word(unit));
	return unit;
}

static inline bool live(struct nc_unit *unit, unsigned generation)
{
	if (nc_member_hold(&member, unit, generation, false))
		return false;
	ck_assert_int_eq(nc_member_release(&member, unit, generation), 0);
	return true;
}

#endif
