/* SPDX-License-Identifier: MIT */
/*
 * test-client-times.c - unit tests of bench/load/client-histogram.c and
 * bench/load/client-pause.c: the statistics of many times, and which client wakes
 * when.
 */
#include <client-histogram.h>
#include <client-pause.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "suite.h"

static struct latency latency;

static void ck_near(double share, uint64_t truth)
{
	uint64_t told = latency_quantile(&latency, share);

	ck_assert_msg(told >= truth && told <= truth + truth / LATENCY_STEPS, "%g: %llu, not %llu",
		      share, (unsigned long long)told, (unsigned long long)truth);
}

START_TEST(test_quantiles)
{
	static const double shares[] = {0.001, 0.01, 0.5, 0.9, 0.99, 0.999};

	for (unsigned scale = 0; scale <= 16; scale += 4) {
		memset(&latency, 0, sizeof(latency));
		ck_assert_uint_eq(latency_quantile(&latency, 0.5), 0);
		for (uint64_t value = 1; value <= 10000; value++)
			latency_record(&latency, value << scale);
		ck_assert_uint_eq(latency.count, 10000);
		ck_assert_uint_eq(latency.sum, (uint64_t)50005000 << scale);
		for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
			ck_near(shares[i], (uint64_t)(10000 * shares[i] + 0.5) << scale);
		ck_assert_uint_eq(latency_quantile(&latency, 1), (uint64_t)10000 << scale);
	}
}
END_TEST

START_TEST(test_small_and_large)
{
	memset(&latency, 0, sizeof(latency));
	latency_record(&latency, 0);
	ck_assert_uint_eq(latency_quantile(&latency, 0.5), 0);
	for (uint64_t value = 1; value < LATENCY_STEPS; value++)
		latency_record(&latency, value);
	for (uint64_t value = 0; value < LATENCY_STEPS; value++)
		ck_assert_uint_eq(latency_quantile(&latency, (double)(value + 1) / LATENCY_STEPS),
				  value);
	latency_record(&latency, UINT64_MAX / 2);
	ck_assert_uint_eq(latency.most, UINT64_MAX / 2);
	ck_assert_uint_eq(latency_quantile(&latency, 1), UINT64_MAX / 2);
	ck_assert_uint_lt(latency_quantile(&latency, 0.9), LATENCY_STEPS);
}
END_TEST

#define SLEEPERS 1000u

/* They wake in the order of their times, none early, each once. */
START_TEST(test_pauses)
{
	uint64_t until[SLEEPERS], state = 7;
	unsigned asleep = 0, woken = 0;
	bool sleeps[SLEEPERS] = {false};
	struct pauses pauses;
	uint32_t who;

	ck_assert(pauses_open(&pauses, SLEEPERS));
	ck_assert_uint_eq(pauses_next(&pauses), UINT64_MAX);
	ck_assert(!pauses_take(&pauses, UINT64_MAX - 1, &who));
	for (uint64_t now = 0; now < 20000; now++) {
		for (unsigned i = 0; i < 3; i++) {
			who = (uint32_t)(random_next(&state) % SLEEPERS);
			if (sleeps[who])
				continue;
			until[who] = now + 1 + random_next(&state) % 2000;
			sleeps[who] = true;
			asleep++;
			pauses_add(&pauses, until[who], who);
		}
		while (pauses_take(&pauses, now, &who)) {
			expect(sleeps[who] && until[who] == now);
			sleeps[who] = false;
			asleep--;
			woken++;
		}
		expect(pauses.count == asleep);
		expect(pauses_next(&pauses) > now);
	}
	ck_assert_uint_gt(woken, 10000);
	pauses_close(&pauses);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_quantiles);
	tcase_add_test(tcase, test_small_and_large);
	tcase_add_test(tcase, test_pauses);
}

RUN_SUITE("client-times", fill)
