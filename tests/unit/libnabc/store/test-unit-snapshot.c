/* SPDX-License-Identifier: MIT */
/*
 * test-unit-snapshot.c - unit tests of unit.c: snapshots of a shared table with
 * invalid entries.  Owns its tables.
 */
#include <errno.h>
#include <stdint.h>

#include "base/fragment.h"
#include "store/unit.h"

#include "suite.h"

/* --- moving ----------------------------------------------------------------- */

#define FIRST 8192u
#define END 65536u

static int snapshot(uint64_t at, uint64_t size, uint64_t fraglen)
{
	struct nc_unit_shared entry = {.at = at, .size = size, .fraglen = fraglen};
	struct nc_unit_description description;
	int error = nc_shared_snapshot(&entry, FIRST, END, &description);

	if (!error) {
		ck_assert_uint_eq(description.at, at);
		ck_assert_uint_eq(description.kernel, 0);
		ck_assert_uint_eq(description.layout.size, size);
		ck_assert_uint_eq(description.layout.fraglen, fraglen);
		ck_assert_uint_le(description.at + description.layout.extent, END);
	}
	return error;
}

/* In the module: the place has no meaning, and there are no gaps. */
static int snapshot_kernel(uint64_t size, uint64_t fraglen)
{
	struct nc_unit_shared entry = {
		.at = UINT64_MAX, .size = size, .fraglen = fraglen, .kernel = 7};
	struct nc_unit_description description;
	int error = nc_shared_snapshot(&entry, FIRST, END, &description);

	if (!error) {
		ck_assert_uint_eq(description.at, 0);
		ck_assert_uint_eq(description.kernel, 7);
		ck_assert_uint_eq(description.layout.size, size);
	}
	return error;
}

START_TEST(test_snapshot_kernel)
{
	ck_assert_int_eq(snapshot_kernel(1, 4096), 0);
	ck_assert_int_eq(snapshot_kernel(100 << 20, 4096), 0);
	ck_assert_int_eq(snapshot_kernel(10000, 8192), 0);
	ck_assert_int_eq(snapshot_kernel(0, 4096), -EPROTO);
	ck_assert_int_eq(snapshot_kernel(UINT64_MAX, 4096), -EPROTO);
	ck_assert_int_eq(snapshot_kernel(10000, 0), -EPROTO);
	ck_assert_int_eq(snapshot_kernel(10000, 4097), -EPROTO);
	ck_assert_int_eq(snapshot_kernel(10000, 1448), -EPROTO);
}
END_TEST

START_TEST(test_snapshot)
{
	ck_assert_int_eq(snapshot(FIRST, 1, 4096), 0);
	ck_assert_int_eq(snapshot(FIRST, END - FIRST, 4096), 0);
	ck_assert_int_eq(snapshot(END - 4096, 4096, 4096), 0);
	ck_assert_int_eq(snapshot(FIRST, 10 * 1448, 1448), 0);
	/* at */
	ck_assert_int_eq(snapshot(0, 1, 4096), -EPROTO);
	ck_assert_int_eq(snapshot(FIRST - 4096, 1, 4096), -EPROTO);
	ck_assert_int_eq(snapshot(FIRST + 1, 1, 4096), -EPROTO);
	ck_assert_int_eq(snapshot(END, 1, 4096), -EPROTO);
	ck_assert_int_eq(snapshot(UINT64_MAX - 4095, 1, 4096), -EPROTO);
	/* size */
	ck_assert_int_eq(snapshot(FIRST, 0, 4096), -EPROTO);
	ck_assert_int_eq(snapshot(FIRST, END - FIRST + 1, 4096), -EPROTO);
	ck_assert_int_eq(snapshot(END - 4096, 4097, 4096), -EPROTO);
	ck_assert_int_eq(snapshot(FIRST, UINT64_MAX, 4096), -EPROTO);
	ck_assert_int_eq(snapshot(FIRST, UINT64_MAX - FIRST + 1, 4096), -EPROTO);
	/* fraglen: gaps count too */
	ck_assert_int_eq(snapshot(FIRST, 1, 0), -EPROTO);
	ck_assert_int_eq(snapshot(FIRST, 1, 4097), -EPROTO);
	ck_assert_int_eq(snapshot(FIRST, 1, UINT64_MAX), -EPROTO);
	ck_assert_int_eq(snapshot(FIRST, 28 * 1448, 1448), 0);
	ck_assert_int_eq(snapshot(FIRST, 28 * 1448 + 1, 1448), -EPROTO);
	ck_assert_int_eq(snapshot(FIRST, END - FIRST, 65), -EPROTO);
}
END_TEST

START_TEST(test_snapshot_random)
{
	uint64_t state = 61;
	unsigned good = 0;

	for (unsigned i = 0; i < 20000; i++) {
		uint64_t at = random_next(&state) % 24 * 4096 + (random_next(&state) % 8 == 0);
		uint64_t size = random_next(&state) >> random_next(&state) % 64;
		uint64_t fraglen = random_next(&state) >> random_next(&state) % 64;

		good += snapshot(at, size, fraglen) == 0;
	}
	ck_assert_uint_gt(good, 100);
}
END_TEST

/* The time of a claim wraps, and 0 means none. */
START_TEST(test_claim)
{
	uint64_t second = UINT64_C(1) << NC_GRACE_SHIFT;

	for (uint64_t turn = 0; turn < 3 * 65536; turn += 7) {
		struct nc_unit one = {0};
		uint64_t now = turn * second;

		ck_assert(!nc_unit_in_grace(&one, now));
		nc_unit_begin_grace(&one, now);
		ck_assert(nc_unit_in_grace(&one, now));
		ck_assert(nc_unit_in_grace(&one, now + (NC_GRACE_MOST - 1) * second));
		ck_assert(!nc_unit_in_grace(&one, now + (NC_GRACE_MOST + 1) * second));
		nc_unit_end_grace(&one);
		ck_assert(!nc_unit_in_grace(&one, now));
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_snapshot);
	tcase_add_test(tcase, test_snapshot_kernel);
	tcase_add_test(tcase, test_snapshot_random);
	tcase_add_test(tcase, test_claim);
}

RUN_SUITE("unit-snapshot", fill)
