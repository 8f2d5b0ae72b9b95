/* SPDX-License-Identifier: MIT */
/*
 * test-registered-limits.c - unit tests of registered.c: RLIMIT_MEMLOCK is small, or 0.
 * Each test owns its ring, its table and its segments; single-threaded.
 */
#include <nabc.h>
#include <stdio.h>
#include <string.h>

#include "os/registered.h"
#include "os/segment.h"

#include "pinned.h"
#include "registered-fixture.h"
#include "suite.h"

/* With a limit for one block: others wait until it is idle, and one line states why. */
START_TEST(test_memlock)
{
	size_t before;

	if (!limit_pins(3 * MIB) || !open_table(64 * MIB))
		return;
	before = pinned();
	create(3 * BLOCK);
	if (take(0, PAGE) == 0) {
		printf("nothing can be locked here: %s\n", line);
		close_table();
		return;
	}
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(take(BLOCK, PAGE), 0);
		ck_assert_uint_eq(take(2 * BLOCK, PAGE), 0);
	}
	ck_assert_uint_eq(counts().failed, 1);
	ck_assert_uint_eq(lines, 1);
	ck_assert_ptr_nonnull(
		strstr(line, "2048 of 65536 KiB of the cache are registered with io_uring"));
	ck_assert_ptr_nonnull(strstr(line, "raise RLIMIT_MEMLOCK from 3072 KiB to 68608 KiB"));
	table->idle = 0;
	for (unsigned i = 0; i < 6; i++) {
		table->retry_at = 0;
		/* On older kernels, what was cleared is unpinned a moment later. */
		if (take(i % 3 * BLOCK, PAGE) == 0)
			await_pinned(before);
	}
	ck_assert_uint_le(pinned(), before + BLOCK);
	ck_assert_uint_eq(lines, 1);
	nc_segment_close(&segment);
	await_pinned(before);
	close_table();
}
END_TEST

static void check_nothing(size_t limit)
{
	if (!limit_pins(limit) || !open_table(64 * MIB))
		return;
	create(2 * BLOCK);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_uint_eq(take(i % 2 * BLOCK, PAGE), 0);
	ck_assert_uint_eq(counts().failed, 1);
	ck_assert_uint_eq(counts().bytes, 0);
	ck_assert_uint_eq(lines, 1);
	ck_assert_ptr_nonnull(strstr(line, "raise RLIMIT_MEMLOCK"));
	nc_segment_close(&segment);
	close_table();
}

START_TEST(test_hardly_any_memlock)
{
	check_nothing(64 << 10);
}
END_TEST

START_TEST(test_no_memlock)
{
	check_nothing(0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_memlock);
	tcase_add_test(tcase, test_hardly_any_memlock);
	tcase_add_test(tcase, test_no_memlock);
}

RUN_SUITE("registered-limits", fill)
