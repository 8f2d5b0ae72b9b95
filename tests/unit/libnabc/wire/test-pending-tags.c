/* SPDX-License-Identifier: MIT */
/*
 * test-pending-tags.c - unit tests of the tags of pending requests: twice, removed, withdrawn by
 * number, and many.  Single-threaded.
 */
#include <errno.h>
#include <stdint.h>

#include "base/hash-table.h"
#include "wire/pending-tags.h"

#include "suite.h"

START_TEST(test_twice)
{
	struct nc_pending_tags tags = {0};

	ck_assert_int_eq(nc_pending_tags_add(&tags, 7, 1), 0);
	ck_assert_int_eq(nc_pending_tags_add(&tags, 7, 2), -EEXIST);
	ck_assert_int_eq(nc_pending_tags_add(&tags, 0, 2), 0);
	ck_assert_int_eq(nc_pending_tags_add(&tags, 0, 3), -EEXIST);
	nc_pending_tags_remove(&tags, 7);
	nc_pending_tags_remove(&tags, 7);
	nc_pending_tags_remove(&tags, UINT64_MAX);
	ck_assert_int_eq(nc_pending_tags_add(&tags, 7, 3), 0);
	ck_assert_int_eq(nc_pending_tags_add(&tags, 0, 4), -EEXIST);
	nc_pending_tags_fini(&tags);
}
END_TEST

/* Those of some numbers, in any order of the table. */
START_TEST(test_withdraw)
{
	struct nc_pending_tags tags = {0};

	for (uint64_t i = 1; i <= 1000; i++)
		expect(nc_pending_tags_add(&tags, i << 32 | (1000 - i), i) == 0);
	nc_pending_tags_withdraw(&tags, 101, 900);
	for (uint64_t i = 1; i <= 1000; i++)
		expect(nc_pending_tags_add(&tags, i << 32 | (1000 - i), 1000 + i) ==
		       (i > 100 && i <= 900 ? 0 : -EEXIST));
	nc_pending_tags_withdraw(&tags, 901, 900);
	ck_assert_uint_eq(tags.table.count, 1000);
	nc_pending_tags_withdraw(&tags, 0, UINT64_MAX);
	ck_assert_uint_eq(tags.table.count, 0);
	nc_pending_tags_fini(&tags);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_twice);
	tcase_add_test(tcase, test_withdraw);
}

RUN_SUITE("pending-tags", fill)
