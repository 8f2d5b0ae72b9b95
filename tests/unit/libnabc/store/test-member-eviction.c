/* SPDX-License-Identifier: MIT */
/*
 * test-member-eviction.c - unit tests of member.c: which units the owner's stores
 * evict for a new one, and which they do not.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <nabc.h>

#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#include "member-fixture.h"
#include "suite.h"

#define UNITS 400

/* Within the budget for any input; the newest and the held ones are there. */
static void check_eviction(enum NC_kind kind, size_t size)
{
	struct nc_unit *unit[UNITS];
	unsigned generation[UNITS], dead = 0;

	ck_assert_int_eq(nc_member_init_owner(&member, MIB, false), 0);
	for (unsigned i = 0; i < UNITS; i++) {
		unit[i] = must_insert(size, kind, &generation[i]);
		ck_assert_uint_le(member.used, member.budget);
		if (i == 1)
			ck_assert_int_eq(nc_member_hold(&member, unit[1], generation[1], false), 0);
		ck_assert(live(unit[i], generation[i]));
	}
	ck_assert(live(unit[1], generation[1]));
	ck_assert_uint_eq(pattern_match(nc_unit_base(unit[1]), unit[1]->slot, 0, size), size);
	for (unsigned i = 0; i < UNITS; i++)
		dead += !live(unit[i], generation[i]);
	ck_assert_uint_gt(dead, 0);
	ck_assert_uint_eq(member.evictions, dead);
	/* Memory is used: more than a quarter of it is not empty. */
	ck_assert_uint_ge((UNITS - dead) * ((size + PAGE - 1) / PAGE * PAGE), member.budget / 4);
	ck_assert_uint_eq(member.failures, 0);
	ck_assert_int_eq(nc_member_release(&member, unit[1], generation[1]), 0);
	nc_member_fini(&member);
}

START_TEST(test_eviction)
{
	check_eviction(NC_KIND_APPENDED, 40 << 10);
	check_eviction(NC_KIND_APPENDED, 10);
	check_eviction(NC_KIND_APPENDED, 180 << 10);
	check_eviction(NC_KIND_RECYCLED, 8 << 10);
	check_eviction(NC_KIND_RECYCLED, 130 << 10);
}
END_TEST

/* The segment with the last use stays, the other one is evicted. */
START_TEST(test_used_are_spared)
{
	struct nc_unit *unit[8], *more;
	unsigned generation[8], ignored;

	ck_assert_int_eq(nc_member_init_owner(&member, MIB, false), 0);
	for (unsigned i = 0; i < 8; i++)
		unit[i] = must_insert(128 << 10, NC_KIND_APPENDED, &generation[i]);
	ck_assert_uint_eq(member.used, MIB);
	ck_assert(live(unit[0], generation[0]));
	more = must_insert(128 << 10, NC_KIND_APPENDED, &ignored);
	ck_assert_ptr_nonnull(more);
	ck_assert(live(unit[0], generation[0]));
	ck_assert(live(unit[1], generation[1]));
	ck_assert(!live(unit[2], generation[2]) || unit[2] == more);
	ck_assert_int_eq(nc_member_hold(&member, unit[3], generation[3], true), -ENOENT);
	ck_assert(live(unit[7], generation[7]));
	ck_assert_uint_eq(member.evictions, 2);
	nc_member_fini(&member);
}
END_TEST

/* All is held: no memory, and held units are not affected. */
START_TEST(test_all_held)
{
	struct nc_unit *unit[64], *more;
	unsigned generation[64], count = 0;

	ck_assert_int_eq(nc_member_init_owner(&member, MIB, false), 0);
	while (count < 64 && try_alloc(60 << 10, NC_KIND_APPENDED, &unit[count]) == 0) {
		ck_assert_int_eq(nc_member_insert(&member, unit[count], NULL), 0);
		generation[count] = nc_word_generation(nc_unit_word(unit[count]));
		ck_assert_int_eq(nc_member_hold(&member, unit[count], generation[count], false), 0);
		count++;
	}
	ck_assert_uint_eq(count, 16);
	ck_assert_int_eq(try_alloc(60 << 10, NC_KIND_APPENDED, &more), -ENOMEM);
	ck_assert_int_eq(try_alloc(10, NC_KIND_RECYCLED, &more), -ENOMEM);
	ck_assert_uint_eq(member.failures, 3);
	ck_assert_uint_eq(member.evictions, 0);
	for (unsigned i = 0; i < count; i++)
		ck_assert(live(unit[i], generation[i]));
	/* The holders of one segment release it: it can be evicted. */
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(nc_member_release(&member, unit[i], generation[i]), 0);
	ck_assert_int_eq(try_alloc(60 << 10, NC_KIND_APPENDED, &more), 0);
	ck_assert_uint_eq(member.evictions, 4);
	for (unsigned i = 4; i < count; i++)
		ck_assert(live(unit[i], generation[i]));
	nc_member_fini(&member);
}
END_TEST

/* One held unit keeps its segment, so evicting its neighbours would free nothing: they stay. */
START_TEST(test_partly_held)
{
	struct nc_unit *unit[16], *more;
	unsigned generation[16], ignored;

	ck_assert_int_eq(nc_member_init_owner(&member, MIB, false), 0);
	for (unsigned i = 0; i < 16; i++) {
		unit[i] = must_insert(64 << 10, NC_KIND_APPENDED, &generation[i]);
		if (i % 4 == 0)
			ck_assert_int_eq(nc_member_hold(&member, unit[i], generation[i], false), 0);
	}
	ck_assert_int_eq(try_alloc(64 << 10, NC_KIND_APPENDED, &more), -ENOMEM);
	for (unsigned i = 0; i < 16; i++)
		ck_assert(live(unit[i], generation[i]));
	ck_assert_uint_eq(member.evictions, 0);
	ck_assert_uint_eq(member.used, MIB);
	/* Neither destroyed nor evicted, but only released.  That is enough. */
	ck_assert_int_eq(nc_member_release(&member, unit[8], generation[8]), 0);
	ck_assert(live(unit[8], generation[8]));
	more = must_insert(64 << 10, NC_KIND_APPENDED, &ignored);
	for (unsigned i = 0; i < 16; i++)
		ck_assert(live(unit[i], generation[i]) == (i / 4 != 2));
	ck_assert_uint_le(member.used, member.budget);
	nc_member_fini(&member);
}
END_TEST

START_TEST(test_filling_is_not_evicted)
{
	struct nc_unit *unit[5], *more;

	ck_assert_int_eq(nc_member_init_owner(&member, MIB, false), 0);
	for (unsigned i = 0; i < 5; i++)
		unit[i] = must_fill(200 << 10, i % 2 ? NC_KIND_APPENDED : NC_KIND_RECYCLED);
	ck_assert_int_eq(try_alloc(200 << 10, NC_KIND_APPENDED, &more), -ENOMEM);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_uint_eq(pattern_match(nc_unit_base(unit[i]), unit[i]->slot, 0, 200 << 10),
				  200 << 10);
	nc_member_abandon(&member, unit[2]);
	ck_assert_int_eq(try_alloc(200 << 10, NC_KIND_APPENDED, &more), 0);
	nc_member_fini(&member);
}
END_TEST

START_TEST(test_impossible_evicts_nothing)
{
	unsigned generation;
	struct nc_unit *unit, *more;

	ck_assert_int_eq(nc_member_init_owner(&member, MIB, false), 0);
	unit = must_insert(60 << 10, NC_KIND_APPENDED, &generation);
	ck_assert_int_eq(try_alloc(MIB + 1, NC_KIND_APPENDED, &more), -ENOMEM);
	ck_assert(live(unit, generation));
	ck_assert_uint_eq(member.evictions, 0);
	nc_member_fini(&member);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_eviction);
	tcase_add_test(tcase, test_used_are_spared);
	tcase_add_test(tcase, test_all_held);
	tcase_add_test(tcase, test_partly_held);
	tcase_add_test(tcase, test_filling_is_not_evicted);
	tcase_add_test(tcase, test_impossible_evicts_nothing);
}

RUN_SUITE("member-eviction", fill)
