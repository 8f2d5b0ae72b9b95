/* SPDX-License-Identifier: MIT */
/*
 * test-balancer.c - unit tests of the choice among several addresses: by load, in
 * turn, without those that have failed.  Single-threaded; the test sets the clock.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/balancer.h"

#include "suite.h"

static struct balancer *make(unsigned count)
{
	struct balancer *balancer = calloc(1, sizeof(*balancer) + count * sizeof(struct upstream));

	ck_assert_ptr_nonnull(balancer);
	balancer->count = count;
	for (unsigned i = 0; i < count; i++)
		balancer->all[i].number = i;
	return balancer;
}

/* Returns the number of the chosen one, -1: none. */
static int chosen(struct balancer *balancer, uint64_t now, uint64_t out)
{
	const struct upstream *upstream = balancer_choose(balancer, now, out);

	return upstream ? (int)upstream->number : -1;
}

START_TEST(test_turns)
{
	struct balancer *balancer = make(3);

	for (int i = 0; i < 9; i++)
		ck_assert_int_eq(chosen(balancer, 0, 0), i % 3);
	free(balancer);
}
END_TEST

START_TEST(test_load)
{
	struct balancer *balancer = make(3);
	unsigned given[3] = {0};

	balancer->all[1].in_use = 5;
	for (int i = 0; i < 14; i++) {
		struct upstream *upstream = balancer_choose(balancer, 0, 0);

		ck_assert_uint_ne(upstream->number, i < 9 ? 1 : 3);
		upstream->in_use++;
		given[upstream->number]++;
	}
	/* By then all have about the same. */
	ck_assert_uint_ge(given[0], 5);
	ck_assert_uint_ge(given[2], 5);
	ck_assert_uint_ge(given[1], 1);
	free(balancer);
}
END_TEST

START_TEST(test_failures)
{
	struct balancer *balancer = make(2);
	struct upstream *bad = &balancer->all[0];
	uint64_t now = 1000, aside = BALANCER_ASIDE_MS;

	ck_assert(balancer_failed(bad, now));
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(chosen(balancer, now + aside - 1, 0), 1);
	/* Whatever the load of the other. */
	balancer->all[1].in_use = 50;
	ck_assert_int_eq(chosen(balancer, now + aside - 1, 0), 1);
	ck_assert_int_eq(chosen(balancer, now + aside, 0), 0);
	/* Each failure delays longer, up to a limit; concurrent ones count as one. */
	for (int i = 0; i < 40; i++) {
		now = bad->aside_until_ms;
		ck_assert(!balancer_failed(bad, now));
		ck_assert(!balancer_failed(bad, now));
		aside = aside * 2 < BALANCER_ASIDE_MAX_MS ? aside * 2 : BALANCER_ASIDE_MAX_MS;
		ck_assert_uint_eq(bad->aside_until_ms, now + aside);
	}
	ck_assert_uint_eq(aside, BALANCER_ASIDE_MAX_MS);
	ck_assert(balancer_answered(bad));
	ck_assert(!balancer_answered(bad));
	ck_assert_int_eq(chosen(balancer, now, 0), 0);
	ck_assert(balancer_failed(bad, now));
	ck_assert_uint_eq(bad->aside_until_ms, now + BALANCER_ASIDE_MS);
	free(balancer);
}
END_TEST

/* When all have failed, the one whose delay ends first is used at once. */
START_TEST(test_all_failed)
{
	struct balancer *balancer = make(3);

	balancer_failed(&balancer->all[0], 200);
	balancer_failed(&balancer->all[1], 100);
	balancer_failed(&balancer->all[2], 300);
	ck_assert_int_eq(chosen(balancer, 300, 0), 1);
	ck_assert_int_eq(chosen(balancer, 300, 2), 0);
	ck_assert_int_eq(chosen(balancer, 300, 3), 2);
	ck_assert_int_eq(chosen(balancer, 300, 7), -1);
	free(balancer);
}
END_TEST

START_TEST(test_most)
{
	struct balancer *balancer = make(BALANCER_MAX);
	uint64_t tried = 0;

	for (unsigned i = 0; i < BALANCER_MAX; i++) {
		struct upstream *upstream = balancer_choose(balancer, 0, tried);

		ck_assert_ptr_nonnull(upstream);
		ck_assert(!(tried & balancer_bit(upstream)));
		tried |= balancer_bit(upstream);
	}
	ck_assert_int_eq(chosen(balancer, 0, tried), -1);
	free(balancer);
}
END_TEST

/* Those that are no address any more get nothing, not even if all others have failed. */
START_TEST(test_out)
{
	struct balancer *balancer = make(3);

	balancer->all[1].out = true;
	for (unsigned i = 0; i < 6; i++)
		ck_assert_int_eq(chosen(balancer, 0, 0), i % 2 ? 2 : 0);
	balancer_failed(&balancer->all[0], 100);
	balancer_failed(&balancer->all[2], 200);
	ck_assert_int_eq(chosen(balancer, 200, 0), 0);
	ck_assert_int_eq(chosen(balancer, 200, 5), -1);
	balancer->all[1].out = false;
	ck_assert_int_eq(chosen(balancer, 200, 0), 1);
	balancer->count = 0;
	ck_assert_int_eq(chosen(balancer, 200, 0), -1);
	free(balancer);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_out);
	tcase_add_test(tcase, test_turns);
	tcase_add_test(tcase, test_load);
	tcase_add_test(tcase, test_failures);
	tcase_add_test(tcase, test_all_failed);
	tcase_add_test(tcase, test_most);
}

RUN_SUITE("balancer", fill)
