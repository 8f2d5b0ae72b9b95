/* SPDX-License-Identifier: MIT */
/*
 * test-cleaning.c - unit tests of cleaning.c: which units survive and which segment is
 * compacted, by hand and by random figures against the definition.  Single-threaded.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/cleaning.h"

#include "suite.h"

#define UNITS 24

START_TEST(test_bound)
{
	ck_assert_uint_eq(nc_cleaning_bound(1000, 50), 500);
	ck_assert_uint_eq(nc_cleaning_bound(1001, 33), 330);
	ck_assert_uint_eq(nc_cleaning_bound(99, 99), 98);
	ck_assert_uint_eq(nc_cleaning_bound(4096, 0), 0);
	ck_assert_uint_eq(nc_cleaning_bound(4096, 100), 4096);
	/* No overflow in between. */
	ck_assert_uint_eq(nc_cleaning_bound(SIZE_MAX, 100), SIZE_MAX);
	ck_assert_uint_eq(nc_cleaning_bound((size_t)1 << 63, 50), (size_t)1 << 62);
}
END_TEST

static struct nc_cleaning_unit *unit_of(struct nc_cleaning_unit *units, size_t count, uint32_t slot)
{
	for (size_t i = 0; i < count; i++)
		if (units[i].slot == slot)
			return &units[i];
	ck_abort_msg("unit %u is lost", slot);
}

START_TEST(test_best_survive)
{
	struct nc_cleaning_unit units[] = {
		{.worth = 1, .bytes = 100, .slot = 0}, {.worth = 5, .bytes = 300, .slot = 1},
		{.worth = 3, .bytes = 300, .slot = 2}, {.worth = 2, .bytes = 200, .slot = 3},
		{.worth = 2, .bytes = 100, .slot = 4},
	};

	/* 300 of worth 5; the 300 of worth 3 do not fit; of worth 2 the smaller; 100 of worth 1. */
	ck_assert_uint_eq(nc_cleaning_survivors(units, 5, 500), 500);
	ck_assert(unit_of(units, 5, 1)->survives);
	ck_assert(!unit_of(units, 5, 2)->survives);
	ck_assert(!unit_of(units, 5, 3)->survives);
	ck_assert(unit_of(units, 5, 4)->survives);
	ck_assert(unit_of(units, 5, 0)->survives);
	ck_assert_uint_eq(nc_cleaning_survivors(units, 5, 1000), 1000);
	ck_assert_uint_eq(nc_cleaning_survivors(units, 5, 99), 0);
	ck_assert(!unit_of(units, 5, 0)->survives);
}
END_TEST

START_TEST(test_some_must)
{
	struct nc_cleaning_unit units[] = {
		{.worth = 9, .bytes = 100, .slot = 0},
		{.worth = 0, .bytes = 300, .slot = 1, .must = true},
		{.worth = 8, .bytes = 150, .slot = 2},
		{.worth = 0, .bytes = 300, .slot = 3, .must = true},
	};

	/* Above the bound by themselves: then nothing else survives. */
	ck_assert_uint_eq(nc_cleaning_survivors(units, 4, 500), 600);
	ck_assert(unit_of(units, 4, 1)->survives && unit_of(units, 4, 3)->survives);
	ck_assert(!unit_of(units, 4, 0)->survives && !unit_of(units, 4, 2)->survives);
	/* They use up their part of it first. */
	ck_assert_uint_eq(nc_cleaning_survivors(units, 4, 740), 700);
	ck_assert(unit_of(units, 4, 0)->survives && !unit_of(units, 4, 2)->survives);
}
END_TEST

START_TEST(test_nothing)
{
	struct nc_cleaning_segment segment = {.size = 4096, .copied = 1, .evicted = 1, .lost = 1};
	struct nc_cleaning_unit none;

	ck_assert_uint_eq(nc_cleaning_survivors(&none, 0, 4096), 0);
	nc_cleaning_weigh(&segment, &none, 0, 2048);
	ck_assert_uint_eq(segment.copied, 0);
	ck_assert_uint_eq(segment.evicted, 0);
	ck_assert_double_eq(segment.lost, 0);
	ck_assert_int_eq(nc_cleaning_pick(&segment, 0), -1);
	ck_assert_int_eq(nc_cleaning_pick(&segment, 1), 0);
}
END_TEST

/* Each survivor fits after all units that are better; no other unit does. */
static void check_survivors(const struct nc_cleaning_unit *units, size_t count, size_t bound)
{
	for (size_t i = 0; i < count; i++) {
		size_t better = 0;

		for (size_t j = 0; j < count; j++) {
			bool before =
				units[j].must != units[i].must	   ? units[j].must
				: units[j].worth != units[i].worth ? units[j].worth > units[i].worth
				: units[j].bytes != units[i].bytes ? units[j].bytes < units[i].bytes
								   : j < i;

			if (before && units[j].survives)
				better += units[j].bytes;
		}
		expect(units[i].survives == (units[i].must || better + units[i].bytes <= bound));
	}
}

START_TEST(test_against_definition)
{
	uint64_t state = 11;

	for (unsigned round = 0; round < scaled(20000); round++) {
		struct nc_cleaning_segment segment = {.size = 1 << 20};
		struct nc_cleaning_unit units[UNITS];
		size_t count = random_next(&state) % (UNITS + 1);
		size_t bound = random_next(&state) % 3000;
		size_t copied = 0, evicted = 0;
		uint32_t slots = 0;
		double lost = 0;

		for (size_t i = 0; i < count; i++)
			units[i] = (struct nc_cleaning_unit){
				.worth = (double)(random_next(&state) % 8),
				.bytes = 1 + random_next(&state) % 500,
				.must = random_next(&state) % 16 == 0,
				.survives = random_next(&state) % 2,
				.slot = (uint32_t)i,
			};
		nc_cleaning_weigh(&segment, units, count, bound);
		check_survivors(units, count, bound);
		for (size_t i = 0; i < count; i++) {
			slots |= 1u << units[i].slot;
			*(units[i].survives ? &copied : &evicted) += units[i].bytes;
			if (!units[i].survives)
				lost += units[i].worth * (double)units[i].bytes;
		}
		expect(slots == (1u << count) - 1);
		expect(segment.copied == copied);
		expect(segment.evicted == evicted);
		expect(segment.lost == lost);
		expect(nc_cleaning_survivors(units, count, bound) == copied);
	}
}
END_TEST

START_TEST(test_pick)
{
	struct nc_cleaning_segment segments[] = {
		{.size = 1000, .copied = 500, .evicted = 500, .lost = 50, .opened = 1},
		{.size = 1000, .copied = 100, .evicted = 500, .lost = 72, .opened = 2},
		{.size = 4000, .copied = 0, .evicted = 4000, .lost = 400, .opened = 3},
	};

	/* 0.1, 0.08 and 0.1 a byte. */
	ck_assert_int_eq(nc_cleaning_pick(segments, 3), 1);
	/* Equal: the one opened first, at any index. */
	ck_assert_int_eq(nc_cleaning_pick(segments, 1), 0);
	segments[1] = segments[2];
	ck_assert_int_eq(nc_cleaning_pick(segments, 3), 0);
	segments[1] = segments[0];
	segments[1].opened = 0;
	ck_assert_int_eq(nc_cleaning_pick(segments, 3), 1);
	/* An empty one costs nothing. */
	segments[2].lost = 0;
	ck_assert_int_eq(nc_cleaning_pick(segments, 3), 2);
}
END_TEST

/* A segment whose compaction would free nothing is never picked. */
START_TEST(test_pick_gains)
{
	struct nc_cleaning_segment segments[] = {
		{.size = 1000, .copied = 1000, .evicted = 0, .lost = 0},
		{.size = 1000, .copied = 1200, .evicted = 0, .lost = 0},
		{.size = 1000, .copied = 501, .evicted = 0, .lost = 0},
	};

	ck_assert_int_eq(nc_cleaning_pick(segments, 3), -1);
	segments[0].evicted = 10;
	ck_assert_int_eq(nc_cleaning_pick(segments, 1), -1);
	/* Two halves make one. */
	segments[2].copied = 500;
	ck_assert_int_eq(nc_cleaning_pick(segments, 3), 2);
	segments[2].copied = 900;
	segments[2].evicted = 100;
	segments[2].lost = 1e9;
	ck_assert_int_eq(nc_cleaning_pick(segments, 3), 2);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_bound);
	tcase_add_test(tcase, test_best_survive);
	tcase_add_test(tcase, test_some_must);
	tcase_add_test(tcase, test_nothing);
	tcase_add_test(tcase, test_against_definition);
	tcase_add_test(tcase, test_pick);
	tcase_add_test(tcase, test_pick_gains);
}

RUN_SUITE("cleaning", fill)
