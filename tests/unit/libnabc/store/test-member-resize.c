/* SPDX-License-Identifier: MIT */
/*
 * test-member-resize.c - unit tests of member-resize.c: where the memory goes that a unit
 * does not need when it is inserted.  Each test owns its member.
 */
#include <fcntl.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/fragment.h"
#include "os/segment.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#include "member-fixture.h"
#include "suite.h"

/* As a handle does: the unit has that many bytes from now on. */
static void shorten(struct nc_unit *unit, size_t size)
{
	struct nc_layout layout;

	ck_assert_int_eq(nc_layout_init(&layout, size, 0), 0);
	unit->layout.size = size;
	unit->layout.fragments = layout.fragments;
	nc_member_trim(&member, unit, layout.extent);
}

static struct nc_unit *must_insert_short(size_t size, size_t length, enum NC_kind kind)
{
	struct nc_unit *unit = must_fill(size, kind);
	char *base = nc_unit_base(unit);

	shorten(unit, length);
	ck_assert_ptr_eq(nc_unit_base(unit), base);
	ck_assert_int_eq(nc_member_insert(&member, unit, NULL), 0);
	ck_assert_uint_eq(pattern_match(nc_unit_base(unit), unit->slot, 0, length), length);
	return unit;
}

/* Other units were allocated behind the one that becomes shorter. */
static void check_shared(enum NC_kind kind)
{
	struct nc_unit *first = must_fill(8 * PAGE, kind), *second = must_fill(8 * PAGE, kind);
	struct nc_unit *third;
	unsigned generation;
	size_t live = first->store->live;

	ck_assert_ptr_eq(first->store, second->store);
	shorten(first, 100);
	ck_assert_uint_eq(first->layout.extent, PAGE);
	ck_assert_uint_eq(first->store->live, live - 7 * PAGE);
	ck_assert_int_eq(nc_member_insert(&member, first, NULL), 0);
	third = must_fill(7 * PAGE, kind);
	ck_assert_ptr_eq(nc_unit_base(third), nc_unit_base(first) + PAGE);
	ck_assert_int_eq(nc_member_insert(&member, third, NULL), 0);
	ck_assert_uint_eq(pattern_match(nc_unit_base(first), first->slot, 0, 100), 100);
	ck_assert_uint_eq(pattern_match(nc_unit_base(second), second->slot, 0, 8 * PAGE), 8 * PAGE);
	ck_assert_int_eq(nc_member_insert(&member, second, NULL), 0);
	/* What was inserted is reused only if it is recycled. */
	generation = nc_word_generation(nc_unit_word(first));
	ck_assert_int_eq(nc_member_destroy(&member, first, generation), 0);
	first = must_fill(PAGE, kind);
	ck_assert_int_eq(first->at == third->at - PAGE, kind == NC_KIND_RECYCLED);
	nc_member_abandon(&member, first);
}

START_TEST(test_shared)
{
	ck_assert_int_eq(nc_member_init_owner(&member, 4 * MIB, false), 0);
	check_shared(NC_KIND_RECYCLED);
	check_shared(NC_KIND_APPENDED);
	nc_member_fini(&member);
}
END_TEST

START_TEST(test_attached)
{
	struct nc_segment segment;

	ck_assert_int_eq(nc_segment_create(&segment, 32 * PAGE, false, true), 0);
	ck_assert_int_eq(nc_member_init_attached(&member, 5, &segment, PAGE, 64, 50), 0);
	check_shared(NC_KIND_RECYCLED);
	nc_member_fini(&member);
}
END_TEST

START_TEST(test_alone)
{
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED, NC_KIND_SEALED};

	for (unsigned i = 0; i < 3; i++) {
		struct nc_segment *segment;
		unsigned generation;
		struct nc_unit *unit;
		struct stat stat;

		ck_assert_int_eq(nc_member_init_owner(&member, 4 * MIB, false), 0);
		unit = must_insert_short(MIB, 2 * PAGE + 1, kinds[i]);
		segment = &unit->store->segment;
		ck_assert_uint_eq(member.used, 3 * PAGE);
		ck_assert_uint_eq(segment->size, 3 * PAGE);
		ck_assert_uint_eq(unit->store->live, 3 * PAGE);
		ck_assert_int_eq(fstat(segment->fd, &stat), 0);
		ck_assert_int_eq(stat.st_size, 3 * PAGE);
		ck_assert_int_eq(fcntl(segment->fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW),
				 F_SEAL_SHRINK | F_SEAL_GROW);
		generation = nc_word_generation(nc_unit_word(unit));
		ck_assert_int_eq(nc_member_destroy(&member, unit, generation), 0);
		ck_assert_uint_eq(member.used, 0);
		nc_member_fini(&member);
	}
}
END_TEST

/* The recipe of the manual: allocate more, insert what was written. */
START_TEST(test_budget)
{
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED};

	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(nc_member_init_owner(&member, 16 * MIB, false), 0);
		for (unsigned j = 0; j < 2000; j++)
			(void)must_insert_short(member.segment_size / 2, 3000, kinds[i]);
		/* Allocated as a whole, 64 would stay. */
		ck_assert_uint_ge(member.units.live, 1000);
		ck_assert_uint_le(member.used, member.budget);
		nc_member_fini(&member);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_shared);
	tcase_add_test(tcase, test_attached);
	tcase_add_test(tcase, test_alone);
	tcase_add_test(tcase, test_budget);
}

RUN_SUITE("member-resize", fill)
