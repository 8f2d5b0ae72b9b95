/* SPDX-License-Identifier: MIT */
/*
 * test-timer.c - unit tests of timer.c with a clock set by the tests: order, what
 * callbacks may do, how long a loop may sleep; and many timers at random against a
 * plain list.
 */
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "base/timer.h"

#include "suite.h"

#define TIMERS 40

static struct timers timers;
static struct timer timer[TIMERS];
static uint64_t now;
static unsigned order[TIMERS * 4], expiries;

static void expired(struct timer *which)
{
	expect(!timer_is_running(which));
	expect(which->due <= now);
	expect(expiries < sizeof(order) / sizeof(order[0]));
	order[expiries++] = (unsigned)(which - timer);
}

static void start(unsigned which, unsigned duration)
{
	timer_start(&timers, &timer[which], duration, now, expired);
}

static void run_at(uint64_t when)
{
	now = when;
	expiries = 0;
	timers_run(&timers, now);
}

START_TEST(test_none)
{
	ck_assert_int_eq(timers_wait(&timers, 0), -1);
	timers_run(&timers, UINT64_MAX);
	timer_stop(&timer[0]);
	start(0, 10);
	timer_stop(&timer[0]);
	timer_stop(&timer[0]);
	ck_assert_int_eq(timers_wait(&timers, 0), -1);
	run_at(100);
	ck_assert_uint_eq(expiries, 0);
}
END_TEST

START_TEST(test_due)
{
	now = 1000;
	start(0, 50);
	ck_assert_int_eq(timers_wait(&timers, 1000), 50);
	ck_assert_int_eq(timers_wait(&timers, 1049), 1);
	ck_assert_int_eq(timers_wait(&timers, 1050), 0);
	ck_assert_int_eq(timers_wait(&timers, 9999), 0);
	run_at(1049);
	ck_assert_uint_eq(expiries, 0);
	run_at(1050);
	ck_assert_uint_eq(expiries, 1);
	/* Once. */
	run_at(5000);
	ck_assert_uint_eq(expiries, 0);
	ck_assert_int_eq(timers_wait(&timers, 5000), -1);
}
END_TEST

/* Of one duration: in the order of their starts, also when all are late. */
START_TEST(test_order)
{
	for (unsigned i = 0; i < 5; i++) {
		now = i * 10;
		start(i, 100);
	}
	start(5, 20);
	/* The short one is due first though it was started last. */
	ck_assert_int_eq(timers_wait(&timers, now), 20);
	run_at(60);
	ck_assert_uint_eq(expiries, 1);
	ck_assert_uint_eq(order[0], 5);
	ck_assert_int_eq(timers_wait(&timers, now), 40);
	run_at(130);
	ck_assert_uint_eq(expiries, 4);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(order[i], i);
	ck_assert_int_eq(timers_wait(&timers, now), 10);
}
END_TEST

/* A restart counts from now, with the same duration or another. */
START_TEST(test_restart)
{
	start(0, 100);
	start(1, 100);
	now = 60;
	start(0, 100);
	ck_assert_int_eq(timers_wait(&timers, now), 40);
	run_at(159);
	ck_assert_uint_eq(expiries, 1);
	ck_assert_uint_eq(order[0], 1);
	start(0, 5);
	ck_assert_int_eq(timers_wait(&timers, now), 5);
	run_at(164);
	ck_assert_uint_eq(expiries, 1);
	run_at(1000);
	ck_assert_uint_eq(expiries, 0);
}
END_TEST

/* After the first, the last and one in the middle are stopped, the queue is still valid. */
START_TEST(test_stop)
{
	for (unsigned gone = 0; gone < 5; gone++) {
		now = 0;
		for (unsigned i = 0; i < 5; i++)
			start(i, 30);
		timer_stop(&timer[gone]);
		start(5, 30);
		run_at(30);
		ck_assert_uint_eq(expiries, 5);
		for (unsigned i = 0; i < 4; i++)
			ck_assert_uint_eq(order[i], i + (i >= gone));
		ck_assert_uint_eq(order[4], 5);
	}
}
END_TEST

static void stops_and_starts(struct timer *which)
{
	expired(which);
	/* The next one, one of another duration, and itself again. */
	timer_stop(&timer[1]);
	timer_stop(&timer[4]);
	start(3, 7);
	timer_start(&timers, which, 10, now, expired);
}

START_TEST(test_callbacks)
{
	timer_start(&timers, &timer[0], 10, 0, stops_and_starts);
	start(1, 10);
	start(2, 10);
	start(4, 5);
	/* All with the duration 10 are due, and 4 is in a queue that comes later or earlier. */
	timer_stop(&timer[4]);
	start(4, 12);
	run_at(12);
	ck_assert_uint_eq(expiries, 2);
	ck_assert_uint_eq(order[0], 0);
	ck_assert_uint_eq(order[1], 2);
	run_at(19);
	ck_assert_uint_eq(expiries, 1);
	ck_assert_uint_eq(order[0], 3);
	run_at(22);
	ck_assert_uint_eq(expiries, 1);
	ck_assert_uint_eq(order[0], 0);
}
END_TEST

/* The maximum number of durations; the sleep is the shortest of all. */
START_TEST(test_durations)
{
	for (unsigned round = 0; round < 3; round++) {
		now = 0;
		for (unsigned i = 0; i < TIMER_DURATIONS; i++)
			start(i, (TIMER_DURATIONS - i) * 100);
		for (unsigned i = TIMER_DURATIONS; i--;) {
			ck_assert_int_eq(timers_wait(&timers, now), 100);
			run_at(now + 100);
			ck_assert_uint_eq(expiries, 1);
			ck_assert_uint_eq(order[0], i);
		}
	}
}
END_TEST

/* Durations change with configurations: one without timers is reused. */
START_TEST(test_many_durations)
{
	for (unsigned i = 1; i < 1000; i++) {
		start(0, i);
		start(1, 1000000);
		ck_assert_int_eq(timers_wait(&timers, now), (int)i);
		run_at(now + i);
		ck_assert_uint_eq(expiries, 1);
	}
	/* More concurrent durations than queues: in any order, all expire. */
	timer_stop(&timer[1]);
	for (unsigned i = 0; i < TIMERS; i++)
		start(i, (i * 7 % TIMERS + 1) * 10);
	for (unsigned i = 0; i < TIMERS; i++) {
		ck_assert_int_eq(timers_wait(&timers, now), 10);
		run_at(now + 10);
		ck_assert_uint_eq(expiries, 1);
		ck_assert_uint_eq(order[0] * 7 % TIMERS, i);
	}
}
END_TEST

#define MANY (3 * TIMERS_RUN_MAX)

static struct timer many[MANY];
static unsigned many_expired[2], last_of_many;

static void one_of_many(struct timer *which)
{
	unsigned number = (unsigned)(which - many);

	expect(number == last_of_many + 2);
	last_of_many = number;
	many_expired[0]++;
}

static void one_of_others(struct timer *which)
{
	(void)which;
	many_expired[1]++;
}

/* A part of those that are due, in their order; another duration has its share of each part. */
START_TEST(test_many_due)
{
	unsigned left = MANY / 2, others = MANY / 2;

	last_of_many = -2u;
	memset(many_expired, 0, sizeof(many_expired));
	for (unsigned i = 0; i < MANY; i++)
		timer_start(&timers, &many[i], i % 2 ? 20 : 10, 0,
			    i % 2 ? one_of_others : one_of_many);
	while (left || others) {
		ck_assert_int_eq(timers_wait(&timers, 20), 0);
		timers_run(&timers, 20);
		ck_assert_uint_eq(left - many_expired[0], others - many_expired[1]);
		ck_assert_uint_le(many_expired[0] + many_expired[1], TIMERS_RUN_MAX);
		ck_assert_uint_gt(many_expired[0], 0);
		left -= many_expired[0];
		others -= many_expired[1];
		memset(many_expired, 0, sizeof(many_expired));
	}
	ck_assert_int_eq(timers_wait(&timers, 20), -1);
}
END_TEST

START_TEST(test_far_away)
{
	start(0, UINT_MAX);
	ck_assert_int_eq(timers_wait(&timers, 0), INT_MAX);
	ck_assert_int_eq(timers_wait(&timers, UINT_MAX - 5u), 5);
}
END_TEST

/* Compared with the due times only. */
START_TEST(test_random)
{
	uint64_t due[TIMERS], state = 11;

	memset(due, 0xff, sizeof(due));
	for (unsigned step = 0; step < scaled(50000); step++) {
		uint64_t random = random_next(&state), next = UINT64_MAX;
		unsigned which = (unsigned)(random >> 8) % TIMERS, count = 0;
		/* A few durations, or more, so that they have to share queues. */
		unsigned duration =
			step & 1024 ? 1 + (unsigned)(random >> 16) % 200 : 1u << (random >> 16) % 8;

		if (random % 3 == 0) {
			start(which, duration);
			due[which] = now + duration;
		} else if (random % 3 == 1) {
			timer_stop(&timer[which]);
			due[which] = UINT64_MAX;
		} else {
			run_at(now + (random >> 32) % 20);
			for (unsigned i = 0; i < expiries; i++) {
				expect(due[order[i]] <= now);
				due[order[i]] = UINT64_MAX;
			}
		}
		for (unsigned i = 0; i < TIMERS; i++) {
			next = due[i] < next ? due[i] : next;
			count += due[i] <= now && random % 3 == 2;
		}
		expect(count == 0);
		expect(timers_wait(&timers, now) == (next == UINT64_MAX ? -1
						     : next <= now	? 0
									: (int)(next - now)));
	}
}
END_TEST

static void set_up(void)
{
	memset(&timers, 0, sizeof(timers));
	memset(timer, 0, sizeof(timer));
	now = 0;
	expiries = 0;
}

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, NULL);
	tcase_add_test(tcase, test_none);
	tcase_add_test(tcase, test_due);
	tcase_add_test(tcase, test_order);
	tcase_add_test(tcase, test_restart);
	tcase_add_test(tcase, test_stop);
	tcase_add_test(tcase, test_callbacks);
	tcase_add_test(tcase, test_durations);
	tcase_add_test(tcase, test_many_durations);
	tcase_add_test(tcase, test_many_due);
	tcase_add_test(tcase, test_far_away);
	tcase_add_test(tcase, test_random);
}

RUN_SUITE("timer", fill)
