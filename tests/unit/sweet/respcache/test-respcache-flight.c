/* SPDX-License-Identifier: MIT */
/*
 * test-respcache-flight.c - unit tests of requests that wait for the response of
 * another: on which thread they are called back, with what result; and none is
 * forgotten.
 */
#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "base/slice.h"
#include "event/loop.h"
#include "http/request.h"
#include "respcache/respcache.h"

#include "loop-fixture.h"
#include "respcache-fixture.h"
#include "suite.h"
#include "turn-fixture.h"
#include "unit-holds.h"

#define MANY 100

static struct asker waiters[MANY];

/* All wait, on both loops in turn. */
static void wait_all(const char *head, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct request request = parse(head);

		waiters[i] = (struct asker){
			.ask = {.answered = was_answered,
				.loop = runners[i % LOOPS].loop,
				.place = here,
				.authorized = request_find(&request, "Authorization")}};
		ck_assert_int_eq(
			respcache_look_up(responses, &waiters[i].ask, &request, by_response, BEGIN),
			RESPCACHE_WAIT);
	}
}

static void await_all(unsigned count, enum respcache_verdict verdict)
{
	for (unsigned i = 0; i < count; i++) {
		AWAIT(waiters[i].answered);
		SEEN(waiters[i].answered == 1);
		ck_assert(!waiters[i].elsewhere);
		ck_assert(waiters[i].request_good);
		ck_assert_int_eq(waiters[i].ask.verdict, verdict);
		ck_assert_int_eq(waiters[i].ask.entry != NULL, verdict == RESPCACHE_HIT);
	}
}

START_TEST(test_one_for_all)
{
	struct asker fetcher;
	struct NC_range range;

	open_all(100, 100000);
	ck_assert_int_eq(look(&fetcher, GET("/", ""), BEGIN), RESPCACHE_FETCH);
	wait_all(GET("/", "X-A: b\r\n"), MANY);
	/* No callback yet, and other keys do not wait. */
	for (unsigned i = 0; i < LOOPS; i++)
		settle(&runners[i]);
	SEEN(waiters[0].answered == 0);
	ck_assert_int_eq(peek(GET("/b", ""), BEGIN), RESPCACHE_FETCH);
	range = make_unit('a', 100);
	ck_assert(answer_with(fetcher.ask.flight, KEEP_10, &range, 1, true, BEGIN));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	await_all(MANY, RESPCACHE_HIT);
	/* Each waiter has holds of its own. */
	ck_assert_int_eq(NC_destroy(NULL, range.id), 0);
	for (unsigned i = 0; i < MANY; i++) {
		ck_assert(body_is(waiters[i].ask.entry, 'a'));
		release_entry(&waiters[i]);
	}
	ck_assert_uint_eq(stat_now().collapsed, MANY);
	ck_assert_uint_eq(stat_now().misses, 2);
	close_all();
}
END_TEST

START_TEST(test_nothing_came)
{
	static const enum respcache_failure failures[] = {RESPCACHE_LOST, RESPCACHE_ABANDONED,
							  RESPCACHE_NOT_KEPT};
	struct asker fetcher;

	open_all(100, 100000);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(look(&fetcher, GET("/", ""), BEGIN), RESPCACHE_FETCH);
		wait_all(GET("/", ""), 10);
		respcache_give_up(fetcher.ask.flight, failures[i], BEGIN);
		await_all(10,
			  failures[i] == RESPCACHE_ABANDONED ? RESPCACHE_AGAIN : RESPCACHE_PASS);
	}
	close_all();
}
END_TEST

/* The response is for others: the waiters look up again, those of one variant together. */
START_TEST(test_other_variant)
{
	static const char german[] = GET("/", "Accept-Language: de\r\n");
	static const char lines[] = KEEP_10 "Vary: Accept-Language\r\n";
	struct asker fetcher, german_fetcher;
	struct NC_range range;

	open_all(100, 100000);
	ck_assert_int_eq(look(&fetcher, GET("/", ""), BEGIN), RESPCACHE_FETCH);
	wait_all(german, 2);
	range = make_unit('a', 100);
	ck_assert(answer_with(fetcher.ask.flight, lines, &range, 1, true, BEGIN));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	await_all(2, RESPCACHE_AGAIN);
	/* From now on the URL is known to vary: each variant has a flight of its own. */
	ck_assert_int_eq(look(&german_fetcher, german, BEGIN), RESPCACHE_FETCH);
	wait_all(german, 1);
	ck_assert_int_eq(look(&fetcher, GET("/", "Accept-Language: en\r\n"), BEGIN),
			 RESPCACHE_FETCH);
	respcache_give_up(fetcher.ask.flight, RESPCACHE_LOST, BEGIN);
	range = make_unit('d', 100);
	ck_assert(answer_with(german_fetcher.ask.flight, lines, &range, 1, true, BEGIN));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	await_all(1, RESPCACHE_HIT);
	ck_assert(body_is(waiters[0].ask.entry, 'd'));
	release_entry(&waiters[0]);
	close_all();
}
END_TEST

/* An expired entry still shows by which fields its URL varies. */
START_TEST(test_variant_is_remembered)
{
	static const char lines[] = KEEP_10 "Vary: Accept-Language\r\n";
	uint64_t later = BEGIN + 20 * SECOND;
	struct asker one, other;

	open_all(100, 100000);
	fetch(GET("/", "Accept-Language: en\r\n"), lines, 'e', BEGIN);
	ck_assert_int_eq(look(&one, GET("/", "Accept-Language: en\r\n"), later), RESPCACHE_FETCH);
	ck_assert_int_eq(look(&other, GET("/", "Accept-Language: de\r\n"), later), RESPCACHE_FETCH);
	respcache_give_up(one.ask.flight, RESPCACHE_LOST, later);
	respcache_give_up(other.ask.flight, RESPCACHE_LOST, later);
	close_all();
}
END_TEST

/* A request that fails repeatedly is passed on by itself in the end. */
START_TEST(test_unlucky)
{
	struct request request = parse(GET("/", "X-A: 1\r\n"));
	unsigned waited = 0;

	open_all(100, 100000);
	waiters[0] = (struct asker){
		.ask = {.answered = was_answered, .loop = runners[0].loop, .place = here}};
	for (;;) {
		enum respcache_verdict verdict;
		struct asker fetcher;
		struct NC_range range;

		ck_assert_int_eq(look(&fetcher, GET("/", "X-A: 2\r\n"), BEGIN), RESPCACHE_FETCH);
		verdict =
			respcache_look_up(responses, &waiters[0].ask, &request, by_response, BEGIN);
		if (verdict == RESPCACHE_PASS) {
			respcache_give_up(fetcher.ask.flight, RESPCACHE_LOST, BEGIN);
			break;
		}
		ck_assert_int_eq(verdict, RESPCACHE_WAIT);
		range = make_unit('a', 10);
		ck_assert(answer_with(fetcher.ask.flight, KEEP_10 "Vary: X-A\r\n", &range, 1, true,
				      BEGIN));
		ck_assert_int_eq(release_id(NULL, range.id), 0);
		waited++;
		AWAIT(waiters[0].answered == waited);
		ck_assert_int_eq(waiters[0].ask.verdict, RESPCACHE_AGAIN);
		ck_assert_int_ge(respcache_purge(responses, (struct slice){"/*", 2}, false), 1);
	}
	ck_assert_uint_gt(waited, 1);
	ck_assert_uint_lt(waited, 10);
	close_all();
}
END_TEST

/* A request with a password does not wait for one without. */
START_TEST(test_authorized)
{
	static const char with[] = GET("/", "Authorization: Basic x\r\n");
	struct asker fetcher, other;
	struct NC_range range;

	open_all(100, 100000);
	ck_assert_int_eq(look(&fetcher, GET("/", ""), BEGIN), RESPCACHE_FETCH);
	ck_assert_int_eq(look(&other, with, BEGIN), RESPCACHE_FETCH);
	ck_assert(respcache_flight_authorized(other.ask.flight));
	wait_all(with, 1);
	respcache_give_up(fetcher.ask.flight, RESPCACHE_LOST, BEGIN);
	range = make_unit('a', 10);
	ck_assert(answer_with(other.ask.flight, "X-NABC-Max-Age: 5\n", &range, 1, true, BEGIN));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	await_all(1, RESPCACHE_HIT);
	release_entry(&waiters[0]);
	close_all();
}
END_TEST

/* A miss joins a request that already fetches a new one. */
START_TEST(test_refresh_is_joined)
{
	struct asker fetcher;
	struct NC_range range;
	size_t id;

	open_all(100, 100000);
	id = fetch(GET("/", ""), "Cache-Control: max-age=10, stale-while-revalidate=5\n", 'a',
		   BEGIN - 11 * SECOND);
	ck_assert_int_eq(look(&fetcher, GET("/", ""), BEGIN), RESPCACHE_STALE);
	release_entry(&fetcher);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	wait_all(GET("/", ""), 3);
	range = make_unit('b', 10);
	ck_assert(answer_with(fetcher.ask.flight, KEEP_10, &range, 1, true, BEGIN));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	await_all(3, RESPCACHE_HIT);
	for (unsigned i = 0; i < 3; i++)
		release_entry(&waiters[i]);
	close_all();
}
END_TEST

#define CROWD (5 * LOOP_QUEUED_MAX)

static struct asker crowd[CROWD];
static struct turn turns[LOOPS];
static unsigned crowd_disorder;
/* How it goes; the first one that is answered may purge the page. */
static enum { CROWD_FAILS, CROWD_HITS, CROWD_PURGES, CROWD_CASES } how;

static void one_answered(struct respcache_ask *ask)
{
	unsigned loop = ask->loop != runners[0].loop;

	EVENT(crowd_disorder += &crowd[turns[loop].all * LOOPS + loop].ask != ask);
	if (how == CROWD_PURGES && ask == &crowd[0].ask)
		ck_assert_int_eq(respcache_purge(responses, (struct slice){"/*", 2}, false), 1);
	turn_count(&turns[loop]);
}

static bool crowd_is_good(unsigned i)
{
	enum respcache_verdict verdict = crowd[i].ask.verdict;

	if (how == CROWD_FAILS)
		return verdict == RESPCACHE_PASS;
	/* Those of the other loop may be faster than the purge. */
	if (how == CROWD_PURGES && i > 0)
		return verdict == RESPCACHE_AGAIN || (verdict == RESPCACHE_HIT && i % LOOPS);
	return verdict == RESPCACHE_HIT;
}

/* Many that wait are answered in several turns of their loops, in their order. */
START_TEST(test_crowd)
{
	struct asker fetcher;
	struct NC_range range;

	how = (unsigned)_i;
	open_all(100, 100000);
	for (unsigned i = 0; i < LOOPS; i++)
		turn_watch(&turns[i], &runners[i]);
	ck_assert_int_eq(look(&fetcher, GET("/", ""), BEGIN), RESPCACHE_FETCH);
	for (unsigned i = 0; i < CROWD; i++) {
		struct request request = parse(GET("/", ""));

		crowd[i].ask = (struct respcache_ask){
			.answered = one_answered, .loop = runners[i % LOOPS].loop, .place = here};
		ck_assert_int_eq(
			respcache_look_up(responses, &crowd[i].ask, &request, by_response, BEGIN),
			RESPCACHE_WAIT);
	}
	range = make_unit('a', 100);
	if (how != CROWD_FAILS)
		ck_assert(answer_with(fetcher.ask.flight, KEEP_10, &range, 1, true, BEGIN));
	else
		respcache_give_up(fetcher.ask.flight, RESPCACHE_LOST, BEGIN);
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	AWAIT(turns[0].all + turns[1].all == CROWD);
	SEEN(turns[0].most <= LOOP_QUEUED_MAX && turns[1].most <= LOOP_QUEUED_MAX);
	SEEN(crowd_disorder == 0);
	for (unsigned i = 0; i < CROWD; i++) {
		ck_assert(crowd_is_good(i));
		if (crowd[i].ask.verdict == RESPCACHE_HIT)
			release_entry(&crowd[i]);
	}
	close_all();
}
END_TEST

/* A unit that is destroyed before the callbacks: the waiters look up again. */
START_TEST(test_dead_at_once)
{
	struct asker fetcher;
	struct NC_range range;

	open_all(100, 100000);
	ck_assert_int_eq(look(&fetcher, GET("/", ""), BEGIN), RESPCACHE_FETCH);
	wait_all(GET("/", ""), 3);
	range = make_unit('a', 10);
	ck_assert_int_eq(NC_destroy(NULL, range.id), 0);
	(void)answer_with(fetcher.ask.flight, KEEP_10, &range, 1, false, BEGIN);
	await_all(3, RESPCACHE_AGAIN);
	ck_assert_int_eq(peek(GET("/", ""), BEGIN), RESPCACHE_FETCH);
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	close_all();
}
END_TEST

/* The loops end before the callbacks; and before there is a result. */
START_TEST(test_end)
{
	struct asker fetcher, other;

	open_all(100, 100000);
	ck_assert_int_eq(look(&fetcher, GET("/", ""), BEGIN), RESPCACHE_FETCH);
	ck_assert_int_eq(look(&other, GET("/b", ""), BEGIN), RESPCACHE_FETCH);
	wait_all(GET("/", ""), 4);
	ck_assert_int_eq(look(&waiters[4], GET("/b", ""), BEGIN), RESPCACHE_WAIT);
	for (unsigned i = 0; i < LOOPS; i++)
		call(&runners[i], runner_end, &runners[i]);
	for (unsigned i = 0; i < LOOPS; i++)
		pthread_join(runners[i].thread, NULL);
	respcache_give_up(fetcher.ask.flight, RESPCACHE_LOST, BEGIN);
	SEEN(waiters[0].answered == 0);
	respcache_end(responses);
	for (unsigned i = 0; i < 4; i++)
		SEEN(waiters[i].answered == 1);
	SEEN(waiters[4].answered == 0);
	respcache_give_up(other.ask.flight, RESPCACHE_LOST, BEGIN);
	SEEN(waiters[4].answered == 1);
	for (unsigned i = 0; i < LOOPS; i++) {
		loop_close(runners[i].loop);
		close(runners[i].ends[1]);
	}
	respcache_close(responses);
	ck_assert_int_eq(NC_cache_close(units), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_one_for_all);
	tcase_add_test(tcase, test_nothing_came);
	tcase_add_test(tcase, test_other_variant);
	tcase_add_test(tcase, test_variant_is_remembered);
	tcase_add_test(tcase, test_unlucky);
	tcase_add_test(tcase, test_authorized);
	tcase_add_test(tcase, test_refresh_is_joined);
	tcase_add_loop_test(tcase, test_crowd, 0, CROWD_CASES);
	tcase_add_test(tcase, test_dead_at_once);
	tcase_add_test(tcase, test_end);
}

RUN_SUITE("respcache-flight", fill)
