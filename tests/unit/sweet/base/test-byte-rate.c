/* SPDX-License-Identifier: MIT */
/*
 * test-byte-rate.c - unit tests of byte-rate.h: what may be taken at once, and until when the rest
 * waits, with a clock of the test.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/byte-rate.h"

#include "suite.h"

#define MOST ((size_t)1000)

START_TEST(test_below)
{
	struct byte_rate rate = {0};

	for (uint64_t ms = 5000; ms < 100000; ms += 100)
		ck_assert(!byte_rate_take(&rate, 99, MOST, ms));
}
END_TEST

START_TEST(test_pause)
{
	struct byte_rate rate = {0};

	ck_assert(!byte_rate_take(&rate, 999, MOST, 5000));
	ck_assert(byte_rate_take(&rate, 1, MOST, 5400));
	ck_assert(byte_rate_take(&rate, 1, MOST, 5999));
	ck_assert(!byte_rate_take(&rate, 999, MOST, 6000));
	ck_assert(byte_rate_take(&rate, 1, MOST, 6000));
}
END_TEST

/* A writer without end, and a reader that waits as told: one limit and one read a second. */
START_TEST(test_flood)
{
	struct byte_rate rate = {0};
	uint64_t ms = 5000;
	size_t taken = 0;

	while (ms < 5000 + 60 * BYTE_RATE_MS) {
		ms += byte_rate_take(&rate, 300, MOST, ms) ? BYTE_RATE_MS : 0;
		taken += 300;
	}
	ck_assert_uint_ge(taken, 60 * MOST);
	ck_assert_uint_le(taken, 61 * (MOST + 300));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_below);
	tcase_add_test(tcase, test_pause);
	tcase_add_test(tcase, test_flood);
}

RUN_SUITE("byte-rate", fill)
