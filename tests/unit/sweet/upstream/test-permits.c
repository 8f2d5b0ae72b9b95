/* SPDX-License-Identifier: MIT */
/*
 * test-permits.c - unit tests of permits.c: which user gets a permit, which one is
 * asked to return one, and that none is lost or duplicated.  The test sets the clock;
 * in all tests but the last one the loops do not run, and the test runs their tasks.
 */
#include "event/loop.h"
#include "upstream/permits.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "suite.h"

#define USERS 3u
#define TOTAL 3u
#define LATER (PERMIT_STALL_MS + 1)

static struct permits permits;
static struct loop *loops[USERS];
static unsigned notified[USERS];

static void count_news(struct loop_task *task)
{
	const struct permit_user *user =
		(struct permit_user *)((char *)task - offsetof(struct permit_user, news));

	notified[user->number]++;
	loop_stop(user->loop);
}

static void set_up(void)
{
	char why[128];

	permits_init(&permits, USERS, 1, TOTAL);
	memset(notified, 0, sizeof(notified));
	for (unsigned i = 0; i < USERS; i++) {
		loops[i] = loop_open(LOOP_EPOLL, LOOP_FEW, why, sizeof(why));
		ck_assert_ptr_nonnull(loops[i]);
		permits.users[i].loop = loops[i];
		permits.users[i].news.run = count_news;
	}
}

static unsigned sum(void)
{
	unsigned all = (unsigned)permits.places[0].free;

	for (unsigned i = 0; i < USERS; i++)
		all += permits.users[i].parts[0].held;
	return all;
}

static void tear_down(void)
{
	ck_assert_uint_eq(sum(), TOTAL);
	permits_clear(&permits);
	for (unsigned i = 0; i < USERS; i++)
		loop_close(loops[i]);
}

static struct permit_user *user(unsigned number)
{
	return &permits.users[number];
}

static bool has_news(unsigned number)
{
	return permits.users[number].posted;
}

static void take(unsigned number)
{
	ck_assert(permit_take(user(number), 0));
}

/* One user takes all. */
static void take_all(unsigned number)
{
	for (unsigned i = 0; i < TOTAL; i++)
		take(number);
	ck_assert(!permit_take(user(number), 0));
}

START_TEST(test_free)
{
	take_all(0);
	ck_assert(!permit_take(user(1), 0));
	permit_give(user(0), 0, false);
	take(1);
	ck_assert(!permit_take(user(1), 0));
	ck_assert(!has_news(0) && !has_news(1));
}
END_TEST

/* Each gets one, in the order in which they began to wait. */
START_TEST(test_first_come)
{
	take_all(0);
	permit_wait(user(2), 0);
	permit_wait(user(1), 0);
	permit_wait(user(2), 5);
	permit_give(user(0), 0, false);
	ck_assert(has_news(2) && !has_news(1));
	/* No other user can take it before the callback. */
	ck_assert(!permit_take(user(0), 0) && !permit_take(user(1), 0));
	permit_news_begin(user(2));
	take(2);
	permit_wait(user(2), 6);
	permit_news_end(user(2));
	permit_give(user(0), 0, false);
	ck_assert(has_news(1) && !has_news(2));
	take(1);
	permit_give(user(0), 0, false);
	ck_assert(has_news(2));
	take(2);
	ck_assert_uint_eq(atomic_load(&permits.waiting), 0);
}
END_TEST

/* A user below its share gets an idle one at once; others wait for a while. */
START_TEST(test_idle)
{
	take(0);
	take(1);
	take(1);
	permit_idles(user(1));
	permit_wait(user(0), 0);
	ck_assert(!has_news(1));
	ck_assert(!permit_is_wanted(user(1), 0, false, 100));
	permit_urge(user(0));
	ck_assert(has_news(1));
	ck_assert(permit_is_wanted(user(1), 0, false, 0));
	ck_assert(!permit_is_wanted(user(0), 0, false, 0));
	permit_news_begin(user(1));
	/* It was used meanwhile: the waiting user is remembered until it is idle again. */
	permit_idles_no_more(user(1));
	permit_news_end(user(1));
	ck_assert(permit_is_wanted(user(1), 0, false, 0));
	permit_wait_no_more(user(0));
	ck_assert(!permit_is_wanted(user(1), 0, false, 100));
	permit_idles(user(1));
	permit_wait(user(2), 100);
	ck_assert(has_news(1) && permit_is_wanted(user(1), 0, false, 100));
	permit_idles_no_more(user(1));
	permit_give(user(1), 0, true);
	ck_assert(has_news(2));
}
END_TEST

/* The next user is asked when the first one could not return any. */
START_TEST(test_asked_in_turn)
{
	take(1);
	take(2);
	take(2);
	permit_idles(user(1));
	permit_idles(user(2));
	permit_wait(user(0), 0);
	ck_assert(has_news(1) && !has_news(2));
	permit_news_begin(user(1));
	permit_idles_no_more(user(1));
	permit_news_end(user(1));
	ck_assert(!has_news(1) && has_news(2));
	permit_news_begin(user(2));
	ck_assert(permit_is_wanted(user(2), 0, false, 0));
	permit_idles_no_more(user(2));
	permit_give(user(2), 0, true);
	permit_news_end(user(2));
	ck_assert(has_news(0) && !has_news(1) && !has_news(2));
}
END_TEST

/* A busy user keeps its permits, except for users that wait behind a long request. */
START_TEST(test_busy)
{
	take(0);
	take(1);
	take(1);
	permit_wait(user(1), 0);
	permit_wait(user(0), 0);
	permit_urge(user(0));
	ck_assert(!permit_is_wanted(user(1), 0, true, LATER - 1));
	ck_assert(permit_is_wanted(user(1), 0, true, LATER));
	permit_started(user(0), 5);
	ck_assert(!permit_is_wanted(user(1), 0, true, LATER));
	/* Its clock is ahead. */
	permit_started(user(0), 500);
	ck_assert(!permit_is_wanted(user(1), 0, true, LATER));
	permit_started(user(0), 0);
	/* It is for the other user, though this one has waited for longer. */
	permit_give(user(1), 0, true);
	ck_assert(has_news(0) && !has_news(1));
	/*
	 * The returned permit comes back to the only waiting user: the other one has continued
	 * meanwhile.
	 */
	permit_give(user(1), 0, true);
	ck_assert(has_news(1));
}
END_TEST

/* A permit that is no longer needed is passed on, or is free. */
START_TEST(test_not_needed)
{
	take_all(0);
	permit_wait(user(1), 0);
	permit_wait(user(2), 0);
	permit_give(user(0), 0, false);
	permit_news_begin(user(1));
	permit_news_end(user(1));
	ck_assert(has_news(2));
	permit_news_begin(user(2));
	permit_news_end(user(2));
	ck_assert_uint_eq(permits.places[0].free, 1);
	/* A permit that is returned before its user is in the list is not missed. */
	permit_wait(user(1), 0);
	ck_assert(has_news(1) && !atomic_load(&user(1)->waits));
	take(1);
}
END_TEST

/* A loop that has ended keeps no permits from others, and gets no callback. */
START_TEST(test_gone)
{
	take_all(0);
	permit_idles(user(0));
	permit_wait(user(1), 0);
	ck_assert(has_news(0));
	permit_give(user(0), 0, false);
	permit_wait(user(2), 0);
	permit_user_gone(user(1));
	ck_assert(has_news(2));
	take(2);
	permit_wait(user(2), 0);
	permit_user_gone(user(0));
	permit_idles_no_more(user(0));
	permit_give(user(0), 0, false);
	take(2);
	ck_assert_uint_eq(atomic_load(&permits.waiting), 0);
}
END_TEST

START_TEST(test_closed)
{
	take_all(0);
	permit_wait(user(1), 0);
	permits_close(&permits);
	permit_give(user(0), 0, false);
	permit_wait(user(2), 0);
	ck_assert(!has_news(1) && !has_news(2));
	ck_assert_uint_eq(permits.places[0].free, 1);
}
END_TEST

/* Nobody gets a permit of an address that is not used, not even one that was granted before. */
START_TEST(test_shut)
{
	take(0);
	take(0);
	take(1);
	permit_wait(user(2), 0);
	permit_give(user(1), 0, false);
	ck_assert(has_news(2));
	permit_place_shut(&permits, 0);
	permit_place_shut(&permits, 0);
	permit_news_begin(user(2));
	ck_assert(!permit_take(user(2), 0));
	permit_wait(user(2), 0);
	permit_news_end(user(2));
	ck_assert_uint_eq(atomic_load(&permits.waiting), 1);
	permit_give(user(0), 0, false);
	ck_assert(!has_news(2));
	/* An idle connection is not wanted either. */
	permit_idles(user(0));
	permit_urge(user(2));
	ck_assert(!permit_is_wanted(user(0), 0, false, LATER));
	permit_idles_no_more(user(0));
	permit_news_begin(user(0));
	permit_news_end(user(0));
	permit_place_open(&permits, 0);
	permit_place_open(&permits, 0);
	ck_assert(has_news(2));
	permit_news_begin(user(2));
	take(2);
	permit_news_end(user(2));
	take(1);
	ck_assert(!permit_take(user(1), 0));
	ck_assert_uint_eq(sum(), TOTAL);
}
END_TEST

static void set_limit(unsigned number)
{
	const _Atomic unsigned limit = number;

	permits_limit(&permits, 0, &limit);
}

/* A limit that is learned while the place is not used counts when it is used again. */
START_TEST(test_limit_while_shut)
{
	for (unsigned i = 0; i < TOTAL; i++)
		take(0);
	permit_wait(user(2), 0);
	permit_place_shut(&permits, 0);
	set_limit(TOTAL + 2);
	ck_assert(!permit_take(user(1), 0) && !has_news(2));
	permit_place_open(&permits, 0);
	ck_assert(has_news(2));
	permit_news_begin(user(2));
	take(2);
	permit_news_end(user(2));
	take(1);
	ck_assert(!permit_take(user(1), 0));
	set_limit(TOTAL);
}
END_TEST

/* A lower limit takes nothing away, but what is returned expires; a higher one is used at once. */
START_TEST(test_limit)
{
	take_all(0);
	set_limit(1);
	permit_wait(user(1), 0);
	permit_wait(user(2), 0);
	permit_give(user(0), 0, false);
	permit_give(user(0), 0, false);
	ck_assert(!has_news(1) && !has_news(2));
	/* Each loop may have one at once. */
	ck_assert_uint_eq(user(2)->parts[0].share, 1);
	permit_give(user(0), 0, false);
	ck_assert(has_news(1) && !has_news(2));
	take(1);
	ck_assert(!permit_take(user(0), 0));
	set_limit(2);
	ck_assert(has_news(2));
	take(2);
	ck_assert(!permit_take(user(0), 0));
	set_limit(2 * USERS);
	ck_assert_uint_eq(user(2)->parts[0].share, 2);
	for (unsigned i = 0; i < 2 * USERS - 2; i++)
		take(0);
	ck_assert(!permit_take(user(0), 0));
	set_limit(TOTAL);
	ck_assert_int_eq(permits.places[0].free, (int)TOTAL - 2 * (int)USERS);
}
END_TEST

/* All loops with idle connections are called. */
START_TEST(test_call_idle)
{
	permits_call_idle(&permits);
	ck_assert(!has_news(0) && !has_news(1) && !has_news(2));
	permit_idles(user(0));
	permit_idles(user(2));
	permits_call_idle(&permits);
	ck_assert(has_news(0) && !has_news(1) && has_news(2));
}
END_TEST

/* Callbacks run on the loop, one for all news. */
START_TEST(test_notified)
{
	take_all(0);
	permit_idles(user(0));
	permit_wait(user(1), 0);
	permit_urge(user(1));
	permit_give(user(0), 0, true);
	loop_run(loops[0]);
	loop_run(loops[1]);
	ck_assert_uint_eq(notified[0], 1);
	ck_assert_uint_eq(notified[1], 1);
	ck_assert_uint_eq(notified[2], 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_free);
	tcase_add_test(tcase, test_first_come);
	tcase_add_test(tcase, test_idle);
	tcase_add_test(tcase, test_asked_in_turn);
	tcase_add_test(tcase, test_busy);
	tcase_add_test(tcase, test_not_needed);
	tcase_add_test(tcase, test_gone);
	tcase_add_test(tcase, test_closed);
	tcase_add_test(tcase, test_shut);
	tcase_add_test(tcase, test_limit);
	tcase_add_test(tcase, test_limit_while_shut);
	tcase_add_test(tcase, test_call_idle);
	tcase_add_test(tcase, test_notified);
}

RUN_SUITE("permits", fill)
