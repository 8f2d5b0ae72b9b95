/* SPDX-License-Identifier: MIT */
/*
 * test-replacement.c - unit tests of replacement*.c: the order of SIEVE and of
 * GDSF by hand.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <nabc.h>

#include "policy/replacement.h"

#include "replacement-fixture.h"
#include "suite.h"

static struct nc_replacement sieve(void)
{
	struct nc_replacement order;

	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_SIEVE), 0);
	return order;
}

static void evict(struct nc_replacement *order, int expected)
{
	ck_assert_int_eq(victim(order), expected);
	nc_replacement_remove(order, &things[expected].order);
}

START_TEST(test_empty)
{
	struct nc_replacement order = sieve();

	ck_assert_int_eq(victim(&order), -1);
	add(&order, 1);
	nc_replacement_remove(&order, &things[0].order);
	ck_assert_int_eq(victim(&order), -1);
	ck_assert_ptr_null(order.newest);
	ck_assert_ptr_null(order.oldest);
	ck_assert_ptr_null(order.hand);
}
END_TEST

START_TEST(test_oldest_first)
{
	struct nc_replacement order = sieve();

	add(&order, 5);
	for (int i = 0; i < 5; i++)
		evict(&order, i);
	ck_assert_int_eq(victim(&order), -1);
}
END_TEST

START_TEST(test_used_are_spared_once)
{
	struct nc_replacement order = sieve();

	add(&order, 5);
	nc_replacement_use(&order, &things[0].order);
	nc_replacement_use(&order, &things[2].order);
	evict(&order, 1);
	evict(&order, 3);
	/* The hand continues, it does not start again: 4 before 0. */
	evict(&order, 4);
	evict(&order, 0);
	evict(&order, 2);
}
END_TEST

START_TEST(test_all_used)
{
	struct nc_replacement order = sieve();

	add(&order, 4);
	for (int i = 0; i < 4; i++)
		nc_replacement_use(&order, &things[i].order);
	/* A round to clear the marks, then the oldest. */
	evict(&order, 0);
	evict(&order, 1);
}
END_TEST

START_TEST(test_pinned)
{
	struct nc_replacement order = sieve();

	add(&order, 4);
	for (int i = 0; i < 4; i++)
		things[i].pinned = true;
	ck_assert_int_eq(victim(&order), -1);
	things[2].pinned = false;
	nc_replacement_use(&order, &things[2].order);
	/* The only possible victim is evicted, used or not, wherever the hand is. */
	evict(&order, 2);
	ck_assert_int_eq(victim(&order), -1);
	things[0].pinned = false;
	evict(&order, 0);
}
END_TEST

/* The entry under the hand is removed: the hand moves on. */
START_TEST(test_remove_under_hand)
{
	struct nc_replacement order = sieve();

	add(&order, 5);
	evict(&order, 0);
	ck_assert_ptr_eq(order.hand, &things[1].order);
	nc_replacement_remove(&order, &things[1].order);
	ck_assert_ptr_eq(order.hand, &things[2].order);
	evict(&order, 2);
	nc_replacement_remove(&order, &things[4].order);
	evict(&order, 3);
	ck_assert_int_eq(victim(&order), -1);
}
END_TEST

/* --- the models ---------------------------------------------------------- */

/*
 * A used entry was evicted early: the hand stops at it; and only the least entry may
 * stop the hand.
 */
START_TEST(test_sieve_judged)
{
	struct nc_replacement order = sieve();
	double due;

	add(&order, 5);
	nc_replacement_use(&order, &things[0].order);
	nc_replacement_use(&order, &things[3].order);
	nc_replacement_judged(&order, &things[3].order, true);
	nc_replacement_judged(&order, &things[4].order, false);
	nc_replacement_remove(&order, &things[4].order);
	ck_assert_ptr_null(order.hand);
	nc_replacement_judged(&order, &things[3].order, false);
	nc_replacement_remove(&order, &things[3].order);
	ck_assert_ptr_eq(order.hand, &things[2].order);
	due = nc_replacement_worth(&order, &things[1].order);
	expect(due < nc_replacement_worth(&order, &things[0].order));
	expect(due <= nc_replacement_worth(&order, &things[2].order));
	/* Used again, it is no longer due. */
	nc_replacement_use(&order, &things[1].order);
	expect(nc_replacement_worth(&order, &things[1].order) >
	       nc_replacement_worth(&order, &things[0].order));
	evict(&order, 2);
}
END_TEST

/* All were used: after a round the hand stops at the oldest of the others, not at itself. */
START_TEST(test_sieve_judged_all_used)
{
	struct nc_replacement order = sieve();

	add(&order, 4);
	for (int i = 0; i < 4; i++)
		nc_replacement_use(&order, &things[i].order);
	nc_replacement_judged(&order, &things[0].order, false);
	nc_replacement_remove(&order, &things[0].order);
	ck_assert_ptr_eq(order.hand, &things[2].order);
	evict(&order, 2);
	evict(&order, 3);
	evict(&order, 1);
}
END_TEST

/* The floor is the least key that is current, not one that is outdated. */
START_TEST(test_gdsf_judged)
{
	struct nc_replacement order;

	memset(things, 0, sizeof(things));
	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_GDSF), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[0].order, 128), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[1].order, 64), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[2].order, 32), 0);
	for (int i = 0; i < 9; i++)
		nc_replacement_use(&order, &things[0].order);
	nc_replacement_judged(&order, &things[2].order, true);
	expect(order.clock == 0);
	nc_replacement_judged(&order, &things[2].order, false);
	expect(order.clock == 1.0 / 64);
	nc_replacement_fini(&order);
}
END_TEST

/* Small before large, used before unused, and old frequency does not count forever. */
START_TEST(test_gdsf)
{
	struct nc_replacement order;

	memset(things, 0, sizeof(things));
	for (int i = 0; i < ENTRIES; i++)
		things[i].number = i;
	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_GDSF), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[0].order, 8192), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[1].order, 4096), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[2].order, 65536), 0);
	for (int i = 0; i < 20; i++)
		nc_replacement_use(&order, &things[2].order);
	evict(&order, 0);
	for (int i = 3; i < 30; i++) {
		int gone;

		ck_assert_int_eq(nc_replacement_add(&order, &things[i].order, 4096), 0);
		gone = victim(&order);
		expect(gone >= 0);
		nc_replacement_remove(&order, &things[gone].order);
		if (gone == 2)
			break;
		ck_assert_int_lt(i, 29);
	}
	nc_replacement_fini(&order);
}
END_TEST

/* The size that GDSF uses is less than a thousandth below the real one. */
START_TEST(test_gdsf_sizes)
{
	struct nc_replacement order;
	uint64_t state = 5;

	memset(things, 0, sizeof(things));
	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_GDSF), 0);
	/* An entry without worth, so that the key of the other is its worth. */
	ck_assert_int_eq(nc_replacement_add(&order, &things[1].order, (size_t)1 << 62), 0);
	for (unsigned i = 0; i < 10000; i++) {
		size_t bytes = random_next(&state) >> (4 + random_next(&state) % 60);
		double inverse;

		ck_assert_int_eq(nc_replacement_add(&order, &things[0].order, bytes), 0);
		inverse = nc_replacement_worth(&order, &things[0].order);
		bytes = bytes ? bytes : 1;
		if (bytes < (size_t)1 << 40) {
			expect(inverse * (double)bytes > 1 - 1e-4);
			expect(inverse * (double)bytes < 1 + 1e-3);
		}
		nc_replacement_remove(&order, &things[0].order);
	}
	nc_replacement_fini(&order);
}
END_TEST

START_TEST(test_uses_do_not_wrap)
{
	struct nc_replacement order;

	memset(things, 0, sizeof(things));
	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_GDSF), 0);
	things[1].number = 1;
	ck_assert_int_eq(nc_replacement_add(&order, &things[0].order, 100), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[1].order, 100), 0);
	nc_replacement_use(&order, &things[1].order);
	for (unsigned i = 0; i < 0x10000; i++)
		nc_replacement_use(&order, &things[0].order);
	/* Years later, an entry that was used often still has its rank. */
	atomic_store(&order.clock, 10000);
	nc_replacement_use(&order, &things[0].order);
	nc_replacement_use(&order, &things[1].order);
	expect(atomic_load(&things[0].order.ranked.key) > 10000 + 600);
	evict(&order, 1);
	nc_replacement_fini(&order);
}
END_TEST

START_TEST(test_names)
{
	struct nc_replacement order;

	ck_assert_str_eq(nc_replacement_name(NC_POLICY_SIEVE), "sieve");
	ck_assert_str_eq(nc_replacement_name(NC_POLICY_LRU), "lru");
	ck_assert_str_eq(nc_replacement_name(NC_POLICY_GDSF), "gdsf");
	ck_assert_str_eq(nc_replacement_name(NC_POLICY_DEFAULT), "gdsf");
	ck_assert_ptr_null(nc_replacement_name((enum NC_policy)(NC_POLICY_GDSF + 1)));
	ck_assert_ptr_null(nc_replacement_name((enum NC_policy) - 1));
	ck_assert_int_eq(nc_replacement_init(&order, (enum NC_policy)(NC_POLICY_GDSF + 1)),
			 -EINVAL);
	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_DEFAULT), 0);
	ck_assert_str_eq(order.policy->name, "gdsf");
}
END_TEST

/* A heap that cannot grow accepts no more entries and is unchanged. */
START_TEST(test_no_room)
{
	struct nc_replacement order;

	memset(things, 0, sizeof(things));
	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_LRU), 0);
	order.count = order.room = UINT32_MAX / 2 + 1;
	ck_assert_int_eq(nc_replacement_add(&order, &things[0].order, 1), -ENOMEM);
	ck_assert_uint_eq(order.count, UINT32_MAX / 2 + 1);
	ck_assert_uint_eq(order.room, UINT32_MAX / 2 + 1);
	order.count = order.room = 0;
	ck_assert_int_eq(nc_replacement_add(&order, &things[0].order, 1), 0);
	nc_replacement_fini(&order);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_empty);
	tcase_add_test(tcase, test_oldest_first);
	tcase_add_test(tcase, test_used_are_spared_once);
	tcase_add_test(tcase, test_all_used);
	tcase_add_test(tcase, test_pinned);
	tcase_add_test(tcase, test_remove_under_hand);
	tcase_add_test(tcase, test_sieve_judged);
	tcase_add_test(tcase, test_sieve_judged_all_used);
	tcase_add_test(tcase, test_gdsf_judged);
	tcase_add_test(tcase, test_gdsf);
	tcase_add_test(tcase, test_gdsf_sizes);
	tcase_add_test(tcase, test_uses_do_not_wrap);
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_no_room);
}

RUN_SUITE("replacement", fill)
