/* SPDX-License-Identifier: MIT */
/*
 * test-extent.c - unit tests of extent.c: page runs against a naive model of
 * one byte a page.  Pure, single-threaded.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/extent.h"

#include "suite.h"

/* First fit by a linear search. */
static int64_t naive_take(unsigned char *pages, uint32_t total, uint32_t count)
{
	for (uint32_t first = 0; count && first + count <= total; first++) {
		uint32_t free = 0;

		while (free < count && !pages[first + free])
			free++;
		if (free == count) {
			memset(pages + first, 1, count);
			return first;
		}
		first += free;
	}
	return -ENOMEM;
}

START_TEST(test_first_fit)
{
	struct nc_extent extent;

	ck_assert_int_eq(nc_extent_init(&extent, 100), 0);
	ck_assert_int_eq(nc_extent_take(&extent, 10), 0);
	ck_assert_int_eq(nc_extent_take(&extent, 20), 10);
	ck_assert_int_eq(nc_extent_take(&extent, 5), 30);
	nc_extent_give(&extent, 0, 10);
	nc_extent_give(&extent, 30, 5);
	/* The lowest run that is long enough, not the lowest page. */
	ck_assert_int_eq(nc_extent_take(&extent, 11), 30);
	ck_assert_int_eq(nc_extent_take(&extent, 10), 0);
	ck_assert_uint_eq(extent.used, 41);
	/* Adjacent runs that were freed separately form one run again. */
	nc_extent_give(&extent, 0, 10);
	nc_extent_give(&extent, 10, 20);
	ck_assert_int_eq(nc_extent_take(&extent, 30), 0);
	nc_extent_fini(&extent);
}
END_TEST

START_TEST(test_refused)
{
	struct nc_extent extent;

	ck_assert_int_eq(nc_extent_init(&extent, 70), 0);
	ck_assert_int_eq(nc_extent_take(&extent, 0), -ENOMEM);
	ck_assert_int_eq(nc_extent_take(&extent, 71), -ENOMEM);
	ck_assert_int_eq(nc_extent_take(&extent, UINT32_MAX), -ENOMEM);
	ck_assert_uint_eq(extent.used, 0);
	ck_assert_int_eq(nc_extent_take(&extent, 70), 0);
	ck_assert_int_eq(nc_extent_take(&extent, 1), -ENOMEM);
	nc_extent_give(&extent, 3, 1);
	ck_assert_int_eq(nc_extent_take(&extent, 2), -ENOMEM);
	ck_assert_int_eq(nc_extent_take(&extent, 1), 3);
	nc_extent_fini(&extent);

	ck_assert_int_eq(nc_extent_init(&extent, 0), 0);
	ck_assert_int_eq(nc_extent_take(&extent, 1), -ENOMEM);
	nc_extent_fini(&extent);
}
END_TEST

/* Whole maps around the limits of a word of 64 pages. */
START_TEST(test_whole)
{
	for (uint32_t pages = 1; pages < 200; pages++) {
		struct nc_extent extent;

		expect(nc_extent_init(&extent, pages) == 0);
		for (unsigned again = 0; again < 3; again++) {
			expect(nc_extent_take(&extent, pages) == 0);
			expect(extent.used == pages);
			expect(nc_extent_take(&extent, 1) == -ENOMEM);
			nc_extent_give(&extent, 0, pages);
			expect(extent.used == 0);
		}
		for (uint32_t page = 0; page < pages; page++)
			expect(nc_extent_take(&extent, 1) == page);
		expect(nc_extent_take(&extent, 1) == -ENOMEM);
		nc_extent_fini(&extent);
	}
}
END_TEST

/* The invariant of the hint: no free page is below it, after every step. */
START_TEST(test_hint)
{
	struct nc_extent extent;

	ck_assert_int_eq(nc_extent_init(&extent, 256), 0);
	for (unsigned i = 0; i < 256; i++)
		ck_assert_int_eq(nc_extent_take(&extent, 1), i);
	ck_assert_uint_eq(extent.hint, 256);
	nc_extent_give(&extent, 200, 4);
	ck_assert_uint_eq(extent.hint, 200);
	nc_extent_give(&extent, 100, 1);
	ck_assert_uint_eq(extent.hint, 100);
	/* The run does not fit at page 100: it is taken behind it, and the hint must stay. */
	ck_assert_int_eq(nc_extent_take(&extent, 3), 200);
	ck_assert_uint_eq(extent.hint, 100);
	ck_assert_int_eq(nc_extent_take(&extent, 1), 100);
	ck_assert_int_eq(nc_extent_take(&extent, 1), 203);
	nc_extent_fini(&extent);
}
END_TEST

#define RUNS 300

static void fuzz(uint32_t pages, uint32_t longest, uint64_t state)
{
	struct {
		uint32_t first, count;
	} run[RUNS];
	unsigned runs = 0, steps = scaled(20000);
	unsigned char *model = must_alloc(pages);
	struct nc_extent extent;

	memset(model, 0, pages);
	expect(nc_extent_init(&extent, pages) == 0);
	for (unsigned step = 0; step < steps; step++) {
		uint32_t used = 0;

		if (runs < RUNS && random_next(&state) % 100 < 55) {
			uint32_t count = 1 + (uint32_t)(random_next(&state) % longest);
			int64_t expected = naive_take(model, pages, count);

			expect(nc_extent_take(&extent, count) == expected);
			if (expected >= 0) {
				run[runs].first = (uint32_t)expected;
				run[runs++].count = count;
			}
		} else if (runs) {
			unsigned which = (unsigned)(random_next(&state) % runs);

			nc_extent_give(&extent, run[which].first, run[which].count);
			memset(model + run[which].first, 0, run[which].count);
			run[which] = run[--runs];
		}
		for (uint32_t page = 0; page < pages; page++)
			used += model[page];
		expect(extent.used == used);
	}
	while (runs--)
		nc_extent_give(&extent, run[runs].first, run[runs].count);
	expect(extent.used == 0);
	expect(nc_extent_take(&extent, pages) == 0);
	nc_extent_fini(&extent);
	free(model);
}

START_TEST(test_fuzz)
{
	fuzz(1, 2, 11);
	fuzz(63, 10, 12);
	fuzz(64, 10, 13);
	fuzz(65, 64, 14);
	fuzz(300, 5, 15);
	fuzz(1000, 130, 16);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_first_fit);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_whole);
	tcase_add_test(tcase, test_hint);
	tcase_add_test(tcase, test_fuzz);
}

RUN_SUITE("extent", fill)
