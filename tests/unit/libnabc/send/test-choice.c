/* SPDX-License-Identifier: MIT */
/*
 * test-choice.c - unit tests of choice.c with invented costs: the cheapest way is found and
 * sends nearly all messages, whatever it is, however the costs scatter and when they change.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "send/choice.h"

#include "suite.h"

#define ALL 7u
#define SIZE 100000u
#define MESSAGES 4000u

static struct nc_choice choice;

/* Nanoseconds for a message by each way; the lab's figures for 1 MB have these ratios. */
static const uint64_t lab[NC_WAYS] = {58700, 34400, 24600};

static void begin(void)
{
	memset(&choice, 0, sizeof(choice));
}

/* Sends messages: returns what they cost; counts[] gets how many each way sent. */
static uint64_t send_many(unsigned messages, const uint64_t costs[NC_WAYS], unsigned candidates,
			  unsigned counts[NC_WAYS])
{
	uint64_t total = 0;

	memset(counts, 0, NC_WAYS * sizeof(*counts));
	for (unsigned i = 0; i < messages; i++) {
		struct nc_pick pick = nc_choice_pick(&choice, candidates, 0);

		ck_assert(candidates >> pick.way & 1);
		total += costs[pick.way];
		counts[pick.way]++;
		if (pick.measure)
			nc_choice_measured(&choice, pick.way, costs[pick.way], SIZE, SIZE);
	}
	return total;
}

/* Each way begins with six messages, the given one first; the first of each is not measured. */
START_TEST(test_begin)
{
	unsigned counts[NC_WAYS] = {0};

	begin();
	for (unsigned i = 0; i < 18; i++) {
		struct nc_pick pick = nc_choice_pick(&choice, ALL, 1);

		ck_assert_uint_eq(pick.way, (1 + i) % NC_WAYS);
		ck_assert_int_eq(pick.measure, i >= NC_WAYS);
		counts[pick.way]++;
		ck_assert_uint_eq(nc_choice_cost(&choice, pick.way) > 0,
				  pick.measure && counts[pick.way] > 2);
		if (pick.measure)
			nc_choice_measured(&choice, pick.way, lab[pick.way], SIZE, SIZE);
		/* Picoseconds for each byte. */
		if (pick.measure)
			ck_assert_uint_eq(nc_choice_cost(&choice, pick.way),
					  lab[pick.way] * 1000 / SIZE);
	}
	ck_assert_uint_eq(nc_choice_best(&choice, ALL, 0), 2);
	ck_assert_uint_eq(nc_choice_best(&choice, 3, 0), 1);
	ck_assert_uint_eq(nc_choice_turns(&choice), 18);
	nc_choice_forget(&choice);
	ck_assert_uint_eq(nc_choice_best(&choice, ALL, 1), 1);
	ck_assert_uint_eq(nc_choice_cost(&choice, 2), 0);
	ck_assert_uint_eq(nc_choice_pick(&choice, ALL, 2).way, 2);
	ck_assert(!nc_choice_pick(&choice, ALL, 2).measure);
}
END_TEST

/* Whichever is the cheapest: after 200 messages it costs at most 5 % more than it alone. */
START_TEST(test_cheapest)
{
	uint64_t costs[NC_WAYS], total;
	unsigned counts[NC_WAYS], best = (unsigned)_i;

	begin();
	for (unsigned way = 0; way < NC_WAYS; way++)
		costs[way] = lab[(way + 2 - best + NC_WAYS) % NC_WAYS];
	ck_assert_uint_eq(costs[best], lab[2]);
	(void)send_many(200, costs, ALL, counts);
	total = send_many(MESSAGES, costs, ALL, counts);
	ck_assert_uint_le(total * 100, costs[best] * MESSAGES * 105);
	/* In the end the others get one message in a thousand together. */
	(void)send_many(4 * 8192, costs, ALL, counts);
	(void)send_many(4 * 8192, costs, ALL, counts);
	ck_assert_uint_le(counts[(best + 1) % NC_WAYS], 4 * 4);
	ck_assert_uint_ge(counts[(best + 1) % NC_WAYS], 3 * 4);
}
END_TEST

static uint64_t scatter(uint64_t *random, uint64_t cost)
{
	*random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	if (*random >> 57 == 0) /* one in 128 is interrupted */
		return 20 * cost;
	return cost * (70 + (*random >> 33) % 61) / 100;
}

/* Costs scatter by 30 %, and some messages are interrupted for long. */
START_TEST(test_scattered)
{
	uint64_t random = 1;

	for (unsigned seed = 0; seed < 50; seed++) {
		uint64_t total = 0;

		begin();
		random += seed;
		for (unsigned i = 0; i < 200 + MESSAGES; i++) {
			struct nc_pick pick = nc_choice_pick(&choice, ALL, 0);

			if (i >= 200)
				total += lab[pick.way];
			if (pick.measure)
				nc_choice_measured(&choice, pick.way,
						   scatter(&random, lab[pick.way]), SIZE, SIZE);
		}
		ck_assert_uint_le(total * 100, lab[2] * MESSAGES * 105);
	}
}
END_TEST

/* Equal ways do not alternate. */
START_TEST(test_equal)
{
	const uint64_t costs[NC_WAYS] = {10000, 9900, 9950};
	unsigned counts[NC_WAYS], others;

	begin();
	(void)send_many(200, costs, ALL, counts);
	(void)send_many(MESSAGES, costs, ALL, counts);
	others = MESSAGES;
	for (unsigned way = 0; way < NC_WAYS; way++)
		if (MESSAGES - counts[way] < others)
			others = MESSAGES - counts[way];
	ck_assert_uint_le(others, MESSAGES / 10);
}
END_TEST

START_TEST(test_change)
{
	const uint64_t changed[NC_WAYS] = {58700, 34400, 124600};
	unsigned counts[NC_WAYS];

	begin();
	(void)send_many(200, lab, ALL, counts);
	/* The best way costs more now: its samples show it. */
	(void)send_many(100, changed, ALL, counts);
	(void)send_many(100, changed, ALL, counts);
	ck_assert_uint_ge(counts[1], 90);
	/* Another has become cheap: a trial finds it, at the latest after 8192 messages. */
	(void)send_many(10000, changed, ALL, counts);
	(void)send_many(2 * 8192, lab, ALL, counts);
	(void)send_many(100, lab, ALL, counts);
	ck_assert_uint_ge(counts[2], 90);
}
END_TEST

/* A way that cannot send some messages is not picked for these, and not forgotten. */
START_TEST(test_candidates)
{
	unsigned counts[NC_WAYS];
	struct nc_pick pick;

	begin();
	for (unsigned i = 0; i < 20; i++) {
		pick = nc_choice_pick(&choice, 4, 2);
		ck_assert_uint_eq(pick.way, 2);
		/* Nothing to compare with. */
		ck_assert(!pick.measure);
	}
	(void)send_many(500, lab, ALL, counts);
	(void)send_many(50, lab, 3, counts);
	ck_assert_uint_eq(counts[2], 0);
	ck_assert_uint_ge(counts[1], 40);
	(void)send_many(50, lab, ALL, counts);
	ck_assert_uint_ge(counts[2], 40);
}
END_TEST

/* A way of which nothing is ever known does not become the best, and is tried less and less. */
START_TEST(test_unknown)
{
	unsigned picked = 0;

	begin();
	for (unsigned i = 0; i < MESSAGES; i++) {
		struct nc_pick pick = nc_choice_pick(&choice, 3, 0);

		picked += pick.way == 1;
		if (pick.measure && pick.way == 0)
			nc_choice_measured(&choice, 0, 1000, SIZE, SIZE);
	}
	ck_assert_uint_le(picked, MESSAGES / 50);
	ck_assert_uint_ge(picked, 6 + 4);
}
END_TEST

/* Messages that need no measuring: most, but none before a trial, and not those to be measured. */
START_TEST(test_settled)
{
	unsigned counts[NC_WAYS], settled = 0, measured = 0, others = 0;

	begin();
	ck_assert(!nc_choice_settled(&choice, ALL, 2));
	(void)send_many(200, lab, ALL, counts);
	ck_assert(!nc_choice_settled(&choice, ALL, 1));
	for (unsigned i = 0; i < MESSAGES; i++) {
		struct nc_pick pick;

		if (nc_choice_settled(&choice, ALL, 2)) {
			settled++;
			continue;
		}
		pick = nc_choice_pick(&choice, ALL, 2);
		if (pick.measure)
			nc_choice_measured(&choice, pick.way, lab[pick.way], SIZE, SIZE);
		measured += pick.way == 2 && pick.measure;
		others += pick.way != 2;
	}
	ck_assert_uint_eq(nc_choice_turns(&choice), 200 + MESSAGES);
	ck_assert_uint_ge(settled, MESSAGES * 95 / 100);
	ck_assert_uint_ge(measured, MESSAGES / 64 - 2);
	ck_assert_uint_ge(others, 2 * 4);
	/* The best way costs more now, which the messages that are not settled show. */
	for (unsigned i = 0; i < 64 * 16; i++) {
		struct nc_pick pick;

		if (nc_choice_settled(&choice, ALL, 2))
			continue;
		pick = nc_choice_pick(&choice, ALL, 2);
		if (pick.measure)
			nc_choice_measured(&choice, pick.way,
					   pick.way == 2 ? 10 * lab[2] : lab[pick.way], SIZE, SIZE);
	}
	ck_assert(!nc_choice_settled(&choice, ALL, 2));
	ck_assert_uint_eq(nc_choice_best(&choice, ALL, 2), 1);
}
END_TEST

/* A message that takes several calls is one sample. */
START_TEST(test_parts)
{
	begin();
	nc_choice_measured(&choice, 1, 3000, 0, SIZE);
	nc_choice_measured(&choice, 1, 4000, SIZE / 2, SIZE);
	ck_assert_uint_eq(nc_choice_cost(&choice, 1), 0);
	nc_choice_measured(&choice, 1, 3000, SIZE / 2, SIZE);
	ck_assert_uint_eq(nc_choice_cost(&choice, 1), 100);
	/* Nothing, forever, and no overflow. */
	nc_choice_measured(&choice, 0, 0, 0, 0);
	ck_assert_uint_eq(nc_choice_cost(&choice, 0), 0);
	nc_choice_measured(&choice, 0, 0, SIZE, SIZE);
	ck_assert_uint_eq(nc_choice_cost(&choice, 0), 1);
	for (unsigned i = 0; i < 1000; i++)
		nc_choice_measured(&choice, 2, UINT64_MAX, 1, 1);
	ck_assert_uint_gt(nc_choice_cost(&choice, 2), 1000000);
}
END_TEST

/* The number of turns overflows. */
START_TEST(test_overflow)
{
	unsigned counts[NC_WAYS];

	begin();
	(void)send_many(4 * 8192, lab, ALL, counts);
	for (unsigned way = 0; way < NC_WAYS; way++)
		if (atomic_load(&choice.ways[way].due))
			atomic_fetch_add(&choice.ways[way].due, UINT32_MAX - 5 * 8192);
	atomic_fetch_add(&choice.turn, UINT32_MAX - 5 * 8192);
	(void)send_many(4 * 8192, lab, ALL, counts);
	ck_assert_uint_le(counts[0] + counts[1], 8 * 4);
	ck_assert_uint_ge(counts[0], 3 * 4);
	ck_assert_uint_ge(counts[1], 3 * 4);
}
END_TEST

static void *learn(void *context)
{
	(void)context;
	for (unsigned i = 0; i < scaled(20000); i++) {
		struct nc_pick pick = nc_choice_pick(&choice, ALL, 0);

		if (pick.measure)
			nc_choice_measured(&choice, pick.way, lab[pick.way], SIZE, SIZE);
		if (i % 1000 == 999)
			(void)nc_choice_best(&choice, ALL, 0);
	}
	return NULL;
}

START_TEST(test_threads)
{
	pthread_t threads[4];

	begin();
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, learn, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(nc_choice_turns(&choice), 4 * scaled(20000));
	ck_assert_uint_eq(nc_choice_best(&choice, ALL, 0), 2);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_begin);
	tcase_add_loop_test(tcase, test_cheapest, 0, NC_WAYS);
	tcase_add_test(tcase, test_scattered);
	tcase_add_test(tcase, test_equal);
	tcase_add_test(tcase, test_change);
	tcase_add_test(tcase, test_candidates);
	tcase_add_test(tcase, test_unknown);
	tcase_add_test(tcase, test_settled);
	tcase_add_test(tcase, test_parts);
	tcase_add_test(tcase, test_overflow);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("choice", fill)
