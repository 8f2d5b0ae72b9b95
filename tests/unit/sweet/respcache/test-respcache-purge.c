/* SPDX-License-Identifier: MIT */
/*
 * test-respcache-purge.c - unit tests of purging cached responses by URL and by tag,
 * including those that are being fetched at that moment.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <nabc.h>

#include "base/slice.h"
#include "http/cachekey.h"
#include "respcache/respcache.h"

#include "loop-fixture.h"
#include "respcache-fixture.h"
#include "suite.h"
#include "unit-holds.h"

static long purge(const char *what)
{
	return respcache_purge(responses, (struct slice){what, strlen(what)}, false);
}

static const char *const heads[] = {
	GET("/", ""),
	GET("/a", ""),
	GET("/a?b", ""),
	GET("/ab", ""),
	GET("/a/b", ""),
	"GET /a HTTP/1.1\r\nHost: c\r\n\r\n",
	GET("/a", "X-A: b\r\n"),
	"GET /a HTTP/1.1\r\nHost: aa\r\n\r\n",
};

static const struct {
	const char *what;
	unsigned gone; /* a bit for each */
} cases[] = {
	{"http://a/", 1 << 0},
	{"http://a", 1 << 0},
	{"http://A/a", 1 << 1 | 1 << 6},
	{"https://a/a#x", 1 << 1 | 1 << 6},
	{"http://a/a?b", 1 << 2},
	{"http://a/a*", 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 6},
	{"http://a/a?*", 1 << 2},
	{"http://c/*", 1 << 5},
	{"/a", 1 << 1 | 1 << 5 | 1 << 6 | 1 << 7},
	{"/a/*", 1 << 4},
	{"/*", 0xff},
	{"http://d/", 0},
	{"/b", 0},
	{"tag", 0xff},
	{"even", 0x55},
	{"tagg", 0},
	{"ta", 0},
};

static void run(unsigned shards)
{
	open_all(shards == 1 ? 100 : 4096, 1 << 20);
	for (unsigned i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		fetch(heads[i],
		      i % 2 ? KEEP_10 "X-NABC-Tag: tag\r\nVary: X-A\r\n"
			    : KEEP_10 "X-NABC-Tag: even, tag even\r\nVary: X-A\r\n",
		      (char)('a' + i), BEGIN);
}

static void check_case(unsigned number, unsigned shards)
{
	run(shards);
	ck_assert_msg(purge(cases[number].what) == __builtin_popcount(cases[number].gone), "%s",
		      cases[number].what);
	for (unsigned i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		ck_assert_msg(hits(heads[i], (char)('a' + i), BEGIN) ==
				      !(cases[number].gone & 1u << i),
			      "%s: %s", cases[number].what, heads[i]);
	ck_assert_uint_eq(stat_now().purged, (unsigned)__builtin_popcount(cases[number].gone));
	ck_assert_int_eq(purge(cases[number].what), 0);
	close_all();
}

START_TEST(test_purge)
{
	check_case((unsigned)_i, 1);
	check_case((unsigned)_i, 16);
}
END_TEST

static long purge_softly(const char *what)
{
	return respcache_purge(responses, (struct slice){what, strlen(what)}, true);
}

/* Made stale, not dropped: each answers, and the first request fetches another. */
static void check_soft_case(unsigned number, unsigned shards)
{
	run(shards);
	ck_assert_msg(purge_softly(cases[number].what) == __builtin_popcount(cases[number].gone),
		      "%s", cases[number].what);
	ck_assert_uint_eq(stat_now().purged, (unsigned)__builtin_popcount(cases[number].gone));
	ck_assert_int_eq(purge_softly(cases[number].what), 0);
	ck_assert_uint_eq(stat_now().entries, sizeof(heads) / sizeof(heads[0]));
	for (unsigned i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		ck_assert_msg(
			peek(heads[i], BEGIN) ==
				(cases[number].gone & 1u << i ? RESPCACHE_STALE : RESPCACHE_HIT),
			"%s: %s", cases[number].what, heads[i]);
	/* A purge that is not soft drops them. */
	ck_assert_msg(purge(cases[number].what) == __builtin_popcount(cases[number].gone), "%s",
		      cases[number].what);
	close_all();
}

START_TEST(test_soft)
{
	check_soft_case((unsigned)_i, 1);
	check_soft_case((unsigned)_i, 16);
}
END_TEST

/* Until a new response has come, and at most until the entry would have expired. */
START_TEST(test_soft_until)
{
	static const char head[] = GET("/a", "");
	struct asker first, second;
	struct NC_range range;

	open_all(100, 100000);
	fetch(head, KEEP_10 "Surrogate-Key: k\r\n", 'a', BEGIN);
	respcache_purge_tags(responses, (struct slice){"x k", 3}, true);
	ck_assert_int_eq(look(&first, head, BEGIN), RESPCACHE_STALE);
	ck_assert_ptr_nonnull(first.ask.flight);
	release_entry(&first);
	/* One request at a time fetches. */
	ck_assert_int_eq(look(&second, head, BEGIN), RESPCACHE_STALE);
	ck_assert_ptr_null(second.ask.flight);
	release_entry(&second);
	/* The fetch that began before another purge does not count. */
	ck_assert_int_eq(purge_softly("/a"), 0);
	range = make_unit('b', 10);
	ck_assert(!answer_with(first.ask.flight, KEEP_10, &range, 1, true, BEGIN));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	ck_assert_int_eq(look(&second, head, BEGIN), RESPCACHE_STALE);
	ck_assert_ptr_nonnull(second.ask.flight);
	release_entry(&second);
	range = make_unit('c', 10);
	ck_assert(answer_with(second.ask.flight, KEEP_10, &range, 1, true, BEGIN));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	ck_assert(hits(head, 'c', BEGIN));
	ck_assert_int_eq(purge_softly("http://a/a"), 1);
	ck_assert_int_eq(peek(head, BEGIN + 9 * SECOND), RESPCACHE_STALE);
	ck_assert_int_ne(peek(head, BEGIN + 11 * SECOND), RESPCACHE_STALE);
	close_all();
}
END_TEST

START_TEST(test_neither)
{
	char long_one[2000];

	open_all(100, 100000);
	ck_assert_int_eq(purge(""), -EINVAL);
	ck_assert_int_eq(purge("*"), 0); /* "*" is an ordinary tag */
	ck_assert_int_eq(purge("a b"), -EINVAL);
	ck_assert_int_eq(purge(" a"), -EINVAL);
	ck_assert_int_eq(purge("a,"), -EINVAL);
	ck_assert_int_eq(purge("http://"), -EINVAL);
	memset(long_one, 'a', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = '\0';
	ck_assert_int_eq(purge(long_one), -EINVAL);
	close_all();
}
END_TEST

START_TEST(test_lists_and_requests)
{
	run(1);
	respcache_invalidate(responses, (struct slice){"a /a", 4});
	ck_assert_uint_eq(stat_now().purged, 2);
	ck_assert(!hits(heads[1], 'b', BEGIN) && !hits(heads[6], 'g', BEGIN));
	respcache_purge_tags(responses, (struct slice){" x, even,y", 10}, false);
	ck_assert_uint_eq(stat_now().purged, 5);
	ck_assert(hits(heads[3], 'd', BEGIN));
	close_all();
}
END_TEST

/* One URL at two places has two responses; a purge of the URL drops both. */
START_TEST(test_places)
{
	static const char *const whats[] = {"http://a/a", "http://a/*", "/a", "/*", NULL};
	static const char head[] = GET("/a", "");
	const struct cachekey_place first = here;
	const struct cachekey_place there = {first.host, {"there", 5}};
	struct asker fetcher;

	open_all(100, 100000);
	for (unsigned i = 0; i < sizeof(whats) / sizeof(whats[0]); i++) {
		here = first;
		fetch(head, KEEP_10, 'a', BEGIN);
		here = there;
		fetch(head, KEEP_10, 'b', BEGIN);
		ck_assert(hits(head, 'b', BEGIN));
		here = first;
		ck_assert(hits(head, 'a', BEGIN));
		if (whats[i])
			ck_assert_int_eq(purge(whats[i]), 2);
		else
			respcache_invalidate(responses, (struct slice){"a /a", 4});
		ck_assert(!hits(head, 'a', BEGIN));
		here = there;
		ck_assert(!hits(head, 'b', BEGIN));
	}
	/* A flight at one place is not joined at another. */
	ck_assert_int_eq(look(&fetcher, head, BEGIN), RESPCACHE_FETCH);
	here = first;
	ck_assert_int_eq(peek(head, BEGIN), RESPCACHE_FETCH);
	respcache_give_up(fetcher.ask.flight, RESPCACHE_NOT_KEPT, BEGIN);
	/* And its result does not count here. */
	ck_assert_int_eq(peek(head, BEGIN), RESPCACHE_FETCH);
	here = there;
	ck_assert_int_eq(peek(head, BEGIN), RESPCACHE_PASS);
	here = first;
	/* A purge finds a response without a host by its address. */
	fetch("GET /a HTTP/1.0\r\n\r\n", KEEP_10, 'c', BEGIN);
	ck_assert_int_eq(purge("http://192.0.2.1:80/a"), 1);
	close_all();
}
END_TEST

/* --- in flight -------------------------------------------------------------------------- */

/* Returns whether a response is cached that was in flight during the purge. */
static bool survives(const char *what, const char *lines)
{
	struct asker fetcher, waiter, other;
	struct NC_range range;
	bool kept;

	open_all(100, 100000);
	(void)purge("early");
	ck_assert_int_eq(look(&fetcher, GET("/a", ""), BEGIN), RESPCACHE_FETCH);
	ck_assert_int_eq(look(&waiter, GET("/a", ""), BEGIN), RESPCACHE_WAIT);
	ck_assert_int_eq(purge(what), 0);
	range = make_unit('a', 10);
	kept = answer_with(fetcher.ask.flight, lines, &range, 1, true, BEGIN);
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	AWAIT(waiter.answered);
	ck_assert_int_eq(waiter.ask.verdict, kept ? RESPCACHE_HIT : RESPCACHE_AGAIN);
	if (waiter.ask.entry)
		release_entry(&waiter);
	ck_assert(is_alive(range.id) == kept);
	ck_assert_int_eq(look(&other, GET("/a", ""), BEGIN),
			 kept ? RESPCACHE_HIT : RESPCACHE_FETCH);
	if (kept)
		release_entry(&other);
	else
		respcache_give_up(other.ask.flight, RESPCACHE_LOST, BEGIN);
	close_all();
	return kept;
}

START_TEST(test_on_its_way)
{
	static const char lines[] = KEEP_10 "X-NABC-Tag: one, early two\n";

	ck_assert(!survives("http://a/a", lines));
	ck_assert(!survives("/a", lines));
	ck_assert(!survives("/*", lines));
	ck_assert(!survives("one", lines));
	ck_assert(!survives("two", lines));
	ck_assert(!survives("early", lines));
	ck_assert(survives("http://a/b", lines));
	ck_assert(survives("/b*", lines));
	ck_assert(survives("three", lines));
	ck_assert(survives("one", KEEP_10));
}
END_TEST

/* No request joins a flight whose response is too old. */
START_TEST(test_not_joined)
{
	struct asker first, second, waiter;
	struct NC_range range;

	open_all(100, 100000);
	ck_assert_int_eq(look(&first, GET("/a", ""), BEGIN), RESPCACHE_FETCH);
	ck_assert_int_eq(purge("/a"), 0);
	ck_assert_int_eq(look(&second, GET("/a", ""), BEGIN), RESPCACHE_FETCH);
	ck_assert_int_eq(look(&waiter, GET("/a", ""), BEGIN), RESPCACHE_WAIT);
	range = make_unit('b', 10);
	ck_assert(answer_with(second.ask.flight, KEEP_10, &range, 1, true, BEGIN));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	AWAIT(waiter.answered);
	ck_assert_int_eq(waiter.ask.verdict, RESPCACHE_HIT);
	release_entry(&waiter);
	/* Late and old: the existing entry stays. */
	range = make_unit('a', 10);
	ck_assert(!answer_with(first.ask.flight, KEEP_10, &range, 1, true, BEGIN));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	ck_assert(hits(GET("/a", ""), 'b', BEGIN));
	close_all();
}
END_TEST

/* More purges than are recorded: a response with tags is not cached, to be safe. */
START_TEST(test_many_purges)
{
	struct asker tagged, plain;
	struct NC_range range;

	open_all(100, 100000);
	for (unsigned count = 1024; count <= 1025; count++) {
		char tag[16];

		ck_assert_int_eq(look(&tagged, GET("/t", ""), BEGIN), RESPCACHE_FETCH);
		ck_assert_int_eq(look(&plain, GET("/p", ""), BEGIN), RESPCACHE_FETCH);
		for (unsigned i = 0; i < count; i++) {
			snprintf(tag, sizeof(tag), "x%u", i);
			ck_assert_int_eq(purge(tag), 0);
		}
		range = make_unit('a', 10);
		ck_assert(answer_with(tagged.ask.flight, KEEP_10 "X-NABC-Tag: t\n", &range, 1, true,
				      BEGIN) == (count == 1024));
		ck_assert_int_eq(release_id(NULL, range.id), 0);
		range = make_unit('b', 10);
		ck_assert(answer_with(plain.ask.flight, KEEP_10, &range, 1, true, BEGIN));
		ck_assert_int_eq(release_id(NULL, range.id), 0);
		(void)purge("/*");
	}
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_purge, 0, sizeof(cases) / sizeof(cases[0]));
	tcase_add_loop_test(tcase, test_soft, 0, sizeof(cases) / sizeof(cases[0]));
	tcase_add_test(tcase, test_soft_until);
	tcase_add_test(tcase, test_neither);
	tcase_add_test(tcase, test_lists_and_requests);
	tcase_add_test(tcase, test_places);
	tcase_add_test(tcase, test_on_its_way);
	tcase_add_test(tcase, test_not_joined);
	tcase_add_test(tcase, test_many_purges);
}

RUN_SUITE("respcache-purge", fill)
