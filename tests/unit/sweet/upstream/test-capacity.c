/* SPDX-License-Identifier: MIT */
/*
 * test-capacity.c - unit tests of capacity.c.  Most of them play an application with some processes,
 * each of which accepts one connection, in the order of their opening, and answers it in a
 * millisecond; the test sets the clock.
 */
#include "upstream/capacity.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "suite.h"

#define MOST 256u
#define LINKS_MAX 512u
#define LATER (CAPACITY_STUCK_MS + 1)

struct link {
	uint64_t connecting, connected; /* numbers */
	uint64_t opened_ms, began_ms;
	bool waits; /* as far as the server knows */
};

static struct capacity capacity;
static uint64_t now_ms;
static unsigned processes;	       /* of the application */
static struct link served[LINKS_MAX];  /* that a process has */
static struct link waiting[LINKS_MAX]; /* in the system's queue */
static unsigned served_count, waiting_count;

static void set_up(void)
{
	capacity_init(&capacity, MOST);
	now_ms = 1000;
	served_count = waiting_count = 0;
}

static void tear_down(void)
{
	capacity_clear(&capacity);
}

static unsigned limit(void)
{
	return atomic_load(&capacity.limit);
}

static unsigned open_now(void)
{
	return served_count + waiting_count;
}

static struct link make_one(void)
{
	struct link made = {.opened_ms = now_ms, .began_ms = now_ms, .waits = true};

	made.connecting = capacity_number(&capacity);
	made.connected = capacity_number(&capacity);
	capacity_opened(&capacity);
	return made;
}

static void open_one(void)
{
	waiting[waiting_count++] = make_one();
}

static bool answered(const struct link *link, uint64_t at_ms)
{
	return capacity_accepted(&capacity, link->connecting, link->opened_ms, at_ms);
}

static void stuck(const struct link *link, uint64_t at_ms)
{
	capacity_stuck(&capacity, link->opened_ms, at_ms);
}

/* Processes without a connection accept those that wait. */
static void accept_some(void)
{
	while (served_count < processes && waiting_count) {
		served[served_count++] = waiting[0];
		waiting_count--;
		memmove(waiting, waiting + 1, waiting_count * sizeof(waiting[0]));
	}
}

/* The application answers the request of a connection, and the next one of it begins. */
static void respond(unsigned i)
{
	struct link *link = &served[i];

	if (link->waits)
		(void)answered(link, now_ms);
	link->waits = false;
	if (capacity_yields(&capacity, link->began_ms, now_ms)) {
		capacity_closed(&capacity, false);
		served[i] = served[--served_count];
		return;
	}
	link->began_ms = now_ms;
}

/* A millisecond, in which there are as many requests as clients. */
static void pass(unsigned clients)
{
	now_ms++;
	if (waiting_count && now_ms - waiting[0].opened_ms >= CAPACITY_STUCK_MS)
		stuck(&waiting[0], now_ms);
	for (unsigned i = served_count; i > 0; i--)
		respond(i - 1);
	if (open_now() < clients && open_now() >= limit())
		(void)capacity_raise(&capacity, now_ms);
	while (open_now() < clients && open_now() < limit())
		open_one();
	accept_some();
}

static void pass_ms(unsigned ms, unsigned clients)
{
	for (unsigned i = 0; i < ms; i++)
		pass(clients);
}

/* An application that serves all connections has no limit, however long a response takes. */
START_TEST(test_all_served)
{
	struct link slow, next;

	processes = MOST;
	pass_ms(100, 64);
	ck_assert_uint_eq(limit(), MOST);
	ck_assert_uint_eq(served_count, 64);
	/* One is slow; the next connection shows that it was accepted. */
	slow = make_one();
	stuck(&slow, now_ms + LATER);
	ck_assert(!capacity_yields(&capacity, now_ms, now_ms + LATER));
	ck_assert(capacity_yields(&capacity, now_ms + 1, now_ms + LATER));
	capacity_closed(&capacity, false);
	served_count--;
	now_ms += LATER;
	next = make_one();
	ck_assert(!capacity_is_passed(&capacity, slow.connected));
	(void)answered(&next, now_ms + 1);
	ck_assert(capacity_is_passed(&capacity, slow.connected));
	ck_assert(!capacity_is_passed(&capacity, next.connected));
	(void)answered(&slow, now_ms + 1);
	ck_assert_uint_eq(limit(), MOST);
}
END_TEST

static const unsigned counts[] = {1, 2, 5, 8, 31, 100};

START_TEST(test_found)
{
	processes = counts[_i];
	pass_ms(2000, 2 * processes);
	ck_assert_uint_ge(limit(), processes);
	ck_assert_uint_le(limit(), processes + processes / 4 + 1);
	ck_assert_uint_eq(served_count, processes);
}
END_TEST

/* Nothing waits for long with the application, whatever the number of clients. */
START_TEST(test_in_order)
{
	unsigned long waits = 0;

	processes = 8;
	pass_ms(100, 64);
	for (unsigned i = 0; i < 1000; i++) {
		pass(64);
		if (waiting_count)
			ck_assert_uint_le(now_ms - waiting[0].opened_ms, 4 * CAPACITY_STUCK_MS);
		waits += waiting_count;
	}
	ck_assert_uint_lt(waits, 1000 * processes / 10);
}
END_TEST

START_TEST(test_grows)
{
	processes = 8;
	pass_ms(5000, 200);
	ck_assert_uint_lt(limit(), 12);
	processes = 64;
	pass_ms(CAPACITY_RAISE_MAX_MS + 12 * CAPACITY_RAISE_MS, 200);
	ck_assert_uint_eq(served_count, 64);
	/* Without requests that wait, the limit stays. */
	pass_ms(100, 8);
	ck_assert_uint_ge(limit(), 64);
}
END_TEST

START_TEST(test_shrinks)
{
	processes = 32;
	pass_ms(1000, 64);
	ck_assert_uint_eq(served_count, 32);
	/* It starts again with fewer. */
	while (served_count) {
		capacity_closed(&capacity, served[0].waits);
		served[0] = served[--served_count];
	}
	while (waiting_count)
		capacity_closed(&capacity, waiting[--waiting_count].waits);
	processes = 4;
	pass_ms(1000, 64);
	ck_assert_uint_eq(served_count, 4);
	ck_assert_uint_le(limit(), 6);
}
END_TEST

/* Until it answers for the first time, there is no reason for a limit. */
START_TEST(test_slow_at_first)
{
	processes = 0;
	pass_ms(500, 64);
	ck_assert_uint_eq(limit(), MOST);
	ck_assert_uint_eq(waiting_count, 64);
	processes = 8;
	pass_ms(200, 64);
	ck_assert_uint_eq(served_count, 8);
	ck_assert_uint_ge(limit(), 8);
	ck_assert_uint_le(limit(), 11);
}
END_TEST

/* A process that was just freed is expected to accept what waits: nothing else is closed for it. */
START_TEST(test_busy_system)
{
	struct link two[2] = {make_one(), make_one()}, later;

	for (unsigned i = 0; i < 2; i++)
		(void)answered(&two[i], now_ms);
	capacity_closed(&capacity, false);
	later = make_one();
	stuck(&later, now_ms + LATER);
	ck_assert(!capacity_yields(&capacity, now_ms + 1, now_ms + LATER));
	/* Later it belongs to another server. */
	stuck(&later, now_ms + CAPACITY_TAKEN_MS + 1);
	ck_assert(capacity_yields(&capacity, now_ms + 1, now_ms + CAPACITY_TAKEN_MS + 1));
	ck_assert_uint_eq(limit(), MOST);
	ck_assert(answered(&later, now_ms + CAPACITY_TAKEN_MS + 2));
	ck_assert_uint_eq(limit(), 1);
}
END_TEST

/* What is noticed does not count forever, and what waits for a moment does not count. */
START_TEST(test_stale)
{
	struct link first = make_one(), second;

	(void)answered(&first, now_ms);
	ck_assert(!capacity_yields(&capacity, now_ms, now_ms));
	second = make_one();
	ck_assert(!capacity_yields(&capacity, now_ms, now_ms + 1));
	stuck(&second, now_ms + LATER);
	ck_assert(!capacity_yields(&capacity, now_ms, now_ms + 100));
	/* Nothing waits any more. */
	capacity_closed(&capacity, true);
	stuck(&second, now_ms + 100);
	ck_assert(!capacity_yields(&capacity, now_ms, now_ms + 100));
}
END_TEST

/* Two threads connect at the same time: neither is known to be first. */
START_TEST(test_same_time)
{
	uint64_t one = capacity_number(&capacity), other = capacity_number(&capacity);
	uint64_t other_end = capacity_number(&capacity), one_end = capacity_number(&capacity);

	capacity_opened(&capacity);
	capacity_opened(&capacity);
	(void)capacity_accepted(&capacity, other, now_ms, now_ms);
	ck_assert(!capacity_is_passed(&capacity, one_end));
	(void)capacity_accepted(&capacity, one, now_ms, now_ms);
	ck_assert(!capacity_is_passed(&capacity, other_end));
}
END_TEST

/* The limit is never zero, and never more than the operator permits. */
START_TEST(test_bounds)
{
	processes = 1;
	for (unsigned i = 0; i < 100; i++) {
		pass_ms(50, 100);
		while (served_count) {
			capacity_closed(&capacity, served[0].waits);
			served[0] = served[--served_count];
		}
		ck_assert_uint_ge(limit(), 1);
	}
	processes = 2 * MOST;
	pass_ms(10000, 2 * MOST);
	ck_assert_uint_eq(limit(), MOST);
	ck_assert_uint_eq(served_count, MOST);
	ck_assert(!capacity_raise(&capacity, now_ms + 100000));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_all_served);
	tcase_add_loop_test(tcase, test_found, 0, sizeof(counts) / sizeof(counts[0]));
	tcase_add_test(tcase, test_in_order);
	tcase_add_test(tcase, test_grows);
	tcase_add_test(tcase, test_shrinks);
	tcase_add_test(tcase, test_slow_at_first);
	tcase_add_test(tcase, test_busy_system);
	tcase_add_test(tcase, test_stale);
	tcase_add_test(tcase, test_same_time);
	tcase_add_test(tcase, test_bounds);
}

RUN_SUITE("capacity", fill)
