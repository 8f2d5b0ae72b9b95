/* SPDX-License-Identifier: MIT */
/*
 * test-epoch.c - unit tests of epoch.c with an invented clock: what a message costs after the
 * call that sends it counts, and nothing is learned while others disturb.
 */
#include <stdint.h>

#include "send/choice.h"
#include "send/epoch.h"

#include "suite.h"

#define BOTH 3u /* ways 0 and 1 */
#define SIZE 100000u

/* Six epochs of each way. */
#define BEGINNING (12 * (NC_EPOCH_SETTLE + NC_EPOCH_LEAST))

static struct nc_epoch epoch;
static struct nc_choice choice, other;
static uint64_t now;

static uint64_t cpu_ns(void)
{
	return now;
}

static void begin(void)
{
	epoch = (struct nc_epoch){0};
	nc_choice_forget(&choice);
	nc_choice_forget(&other);
	now = 1;
}

/* Messages whose work is done later. */
#define LATER 24u

struct late {
	uint64_t cost[LATER];
	unsigned ways[LATER];
	unsigned at;
};

/* Sends a message; what an earlier one costs is spent now. */
static unsigned send_one(struct late *late, const uint64_t costs[2], unsigned first)
{
	unsigned way = nc_epoch_way(&epoch, &choice, BOTH, first, SIZE, cpu_ns);
	unsigned at = late->at++ % LATER;

	if (late->cost[at])
		nc_epoch_continues(&epoch, &choice, late->ways[at]);
	now += late->cost[at];
	late->cost[at] = costs[way];
	late->ways[at] = way;
	return way;
}

/* The cheaper way is found, whichever it is and whatever was tried first. */
START_TEST(test_cheaper)
{
	const uint64_t costs[2] = {_i & 1 ? 120000 : 100000, _i & 1 ? 100000 : 120000};
	const unsigned best = _i & 1, first = _i >> 1;
	struct late late = {0};
	unsigned good = 0;

	begin();
	for (unsigned i = 0; i < BEGINNING + 400; i++)
		(void)send_one(&late, costs, first);
	for (unsigned i = 0; i < 4000; i++)
		good += send_one(&late, costs, first) == best;
	ck_assert_uint_eq(good, 4000);
	ck_assert_uint_eq(nc_choice_best(&choice, BOTH, first), best);
	for (unsigned way = 0; way < 2; way++)
		ck_assert_uint_eq(nc_choice_cost(&choice, way), costs[way] * 1000 / SIZE);
}
END_TEST

/* A way that has become cheaper is found by its later trials. */
START_TEST(test_changes)
{
	uint64_t costs[2] = {100000, 120000};
	struct late late = {0};
	unsigned good = 0;

	begin();
	for (unsigned i = 0; i < 2 * BEGINNING; i++)
		(void)send_one(&late, costs, 0);
	costs[0] = 200000;
	for (unsigned i = 0; i < 400 * NC_EPOCH_LEAST; i++)
		(void)send_one(&late, costs, 0);
	for (unsigned i = 0; i < 1000; i++)
		good += send_one(&late, costs, 0) == 1;
	ck_assert_uint_eq(good, 1000);
}
END_TEST

/* The first guess sends a whole epoch; a measured one takes 2 ms at least. */
START_TEST(test_length)
{
	const uint64_t costs[2] = {10000, 10000};
	struct late late = {0};
	unsigned way = 1, changes = 0, length = 0, longest = 0;

	begin();
	for (unsigned i = 0; changes < 11; i++) {
		unsigned next = send_one(&late, costs, 1);

		ck_assert_uint_lt(i, 12 * 1024);
		ck_assert(i >= NC_EPOCH_SETTLE + NC_EPOCH_LEAST || next == 1);
		length = next == way ? length + 1 : 1;
		changes += next != way;
		longest = length > longest ? length : longest;
		way = next;
	}
	/* 2 ms are 200 messages, which follow at most those that settle; the last are late. */
	ck_assert_uint_ge(longest, 200);
	ck_assert_uint_le(longest, 200 + 2 * NC_EPOCH_LEAST + NC_EPOCH_SETTLE + LATER);
}
END_TEST

/* Messages of the other way that do not end keep an epoch from being measured, not from ending. */
START_TEST(test_never_settles)
{
	unsigned ways[2] = {0};

	begin();
	for (unsigned i = 0; i < 8 * 1024; i++) {
		unsigned way = nc_epoch_way(&epoch, &choice, BOTH, 0, SIZE, cpu_ns);

		ways[way]++;
		now += 100000;
		nc_epoch_continues(&epoch, &choice, !way);
		/* These are none of its business. */
		nc_epoch_continues(&epoch, &other, way);
	}
	ck_assert_uint_eq(ways[0], 4 * 1024);
	ck_assert_uint_eq(ways[1], 4 * 1024);
	ck_assert_uint_eq(nc_choice_cost(&choice, 0), 0);
	ck_assert_uint_eq(nc_choice_cost(&choice, 1), 0);
}
END_TEST

/* One message of another kind in 16 does not matter; one in two ends each epoch. */
START_TEST(test_others)
{
	const unsigned share = _i ? 2 : 16;

	begin();
	for (unsigned i = 0; i < 2 * BEGINNING; i++) {
		(void)nc_epoch_way(&epoch, &choice, BOTH, 0, SIZE, cpu_ns);
		now += 100000;
		if (i % share == 0) {
			(void)nc_epoch_way(&epoch, &other, BOTH, 1, SIZE, cpu_ns);
			now += 100000;
		}
	}
	ck_assert_int_eq(nc_choice_cost(&choice, 0) > 0, !_i);
	ck_assert_int_eq(nc_choice_cost(&choice, 1) > 0, !_i);
	ck_assert_uint_eq(nc_choice_cost(&other, 0), 0);
	ck_assert_uint_eq(nc_choice_cost(&other, 1), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_cheaper, 0, 4);
	tcase_add_test(tcase, test_changes);
	tcase_add_test(tcase, test_length);
	tcase_add_test(tcase, test_never_settles);
	tcase_add_loop_test(tcase, test_others, 0, 2);
}

RUN_SUITE("epoch", fill)
