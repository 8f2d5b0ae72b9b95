/* SPDX-License-Identifier: MIT */
/*
 * test-respcache.c - unit tests of cached responses: for how long and for which
 * requests they are used, what ends them, and limits.  One thread requests.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "http/request.h"
#include "program/cacheable.h"
#include "respcache/respcache.h"

#include "respcache-fixture.h"
#include "suite.h"
#include "unit-holds.h"

static bool same(struct slice slice, const char *text)
{
	return slice.length == strlen(text) && memcmp(slice.at, text, slice.length) == 0;
}

START_TEST(test_kept)
{
	const struct respcache_view *view;
	struct NC_range ranges[2];
	struct asker asker;

	open_all(100, 100000);
	ranges[0] = make_unit('x', 5000);
	ranges[0].offset = 10;
	ranges[0].length = 4000;
	ranges[1] = make_unit('x', 60);
	ck_assert_int_eq(look(&asker, GET("/b?c", ""), BEGIN), RESPCACHE_FETCH);
	ck_assert_ptr_null(asker.ask.entry);
	ck_assert(!respcache_flight_authorized(asker.ask.flight));
	ck_assert(answer_with(asker.ask.flight,
			      "Content-Type: text/html\nAge: 3\nX-B: c\r\nContent-Location: /x\n"
			      "content-length: 4060\nETag: \"e\"\n"
			      "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\n"
			      "Cache-Control: max-age=10, stale-while-revalidate=5\n",
			      ranges, 2, false, BEGIN));
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(release_id(NULL, ranges[i].id), 0);

	ck_assert_int_eq(look(&asker, GET("/b?c", "X-Y: z\r\n"), BEGIN + 5 * SECOND),
			 RESPCACHE_HIT);
	ck_assert_ptr_null(asker.ask.flight);
	view = respcache_view(asker.ask.entry);
	ck_assert_int_eq(view->status, 200);
	ck_assert(same(view->head, "Content-Type: text/html\r\nX-B: c\r\nContent-Location: /x\r\n"
				   "ETag: \"e\"\r\n"
				   "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
				   "Cache-Control: max-age=10, stale-while-revalidate=5\r\n"));
	ck_assert(same(view->lean, "X-B: c\r\nContent-Location: /x\r\nETag: \"e\"\r\n"
				   "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
				   "Cache-Control: max-age=10, stale-while-revalidate=5\r\n"));
	ck_assert(same(view->etag, "\"e\""));
	ck_assert_int_eq(view->modified, 784111777);
	ck_assert_uint_eq(view->range_count, 2);
	ck_assert_uint_eq(view->length, 4060);
	ck_assert(memcmp(view->ranges, ranges, sizeof(ranges)) == 0);
	ck_assert(body_is(asker.ask.entry, 'x'));
	ck_assert_uint_eq(respcache_age(asker.ask.entry, BEGIN + 5 * SECOND), 8);
	ck_assert_uint_eq(respcache_age(asker.ask.entry, BEGIN - 5 * SECOND), 3);
	/* A destroyed unit stays usable for its holders only. */
	ck_assert_int_eq(NC_destroy(NULL, ranges[1].id), 0);
	ck_assert(body_is(asker.ask.entry, 'x'));
	release_entry(&asker);
	ck_assert_uint_eq(stat_now().hits, 1);
	ck_assert_int_eq(NC_destroy(NULL, ranges[0].id), 0);
	close_all();
}
END_TEST

/* A hit adds lines of its own to the head, which must fit. */
START_TEST(test_long_head)
{
	static char lines[RESPCACHE_HEAD_MAX + 2];

	open_all(100, 100000);
	for (unsigned more = 0; more < 2; more++) {
		size_t length = RESPCACHE_HEAD_MAX + more;
		struct NC_range range = make_unit('a', 10);
		struct asker asker;

		memset(lines, 'x', length);
		memcpy(lines, KEEP_10 "X:", strlen(KEEP_10 "X:"));
		memcpy(lines + length - 2, "\r\n", 3);
		ck_assert_int_eq(look(&asker, more ? GET("/more", "") : GET("/", ""), BEGIN),
				 RESPCACHE_FETCH);
		ck_assert(answer_with(asker.ask.flight, lines, &range, 1, true, BEGIN) == !more);
		ck_assert_int_eq(release_id(NULL, range.id), 0);
		ck_assert(is_alive(range.id) == !more);
	}
	ck_assert(hits(GET("/", ""), 'a', BEGIN));
	ck_assert(!hits(GET("/more", ""), 'a', BEGIN));
	close_all();
}
END_TEST

/* Up to the last moment of being fresh, and of being stale. */
START_TEST(test_time)
{
	struct asker asker;

	open_all(100, 100000);
	fetch(GET("/", ""), "Cache-Control: max-age=10, stale-while-revalidate=5\n", 'a', BEGIN);
	ck_assert(hits(GET("/", ""), 'a', BEGIN + 10 * SECOND - 1));
	ck_assert_int_eq(look(&asker, GET("/", ""), BEGIN + 10 * SECOND), RESPCACHE_STALE);
	ck_assert_ptr_nonnull(asker.ask.flight);
	ck_assert(body_is(asker.ask.entry, 'a'));
	release_entry(&asker);
	/* One request fetches, the others get the old one. */
	for (unsigned i = 0; i < 3; i++) {
		struct asker other;

		ck_assert_int_eq(look(&other, GET("/", ""), BEGIN + 11 * SECOND), RESPCACHE_STALE);
		ck_assert_ptr_null(other.ask.flight);
		release_entry(&other);
	}
	respcache_give_up(asker.ask.flight, RESPCACHE_LOST, BEGIN + 12 * SECOND);
	/* It failed: the next request retries. */
	ck_assert_int_eq(look(&asker, GET("/", ""), BEGIN + 15 * SECOND - 1), RESPCACHE_STALE);
	ck_assert_ptr_nonnull(asker.ask.flight);
	respcache_give_up(asker.ask.flight, RESPCACHE_LOST, BEGIN + 15 * SECOND - 1);
	release_entry(&asker);
	ck_assert_uint_eq(stat_now().stale, 5);
	ck_assert_int_eq(peek(GET("/", ""), BEGIN + 15 * SECOND), RESPCACHE_FETCH);
	ck_assert_uint_eq(stat_now().entries, 0);
	/* A new response replaces an old one. */
	fetch(GET("/", ""), KEEP_10 "ETag: \"x\"\r\n", 'b', BEGIN + 20 * SECOND);
	ck_assert_int_eq(look(&asker, GET("/", ""), BEGIN + 30 * SECOND), RESPCACHE_FETCH);
	respcache_give_up(asker.ask.flight, RESPCACHE_LOST, BEGIN);
	close_all();
}
END_TEST

START_TEST(test_refreshed)
{
	struct NC_range range;
	struct asker asker, old;
	size_t before;

	open_all(100, 100000);
	before = fetch(GET("/", ""), "Cache-Control: max-age=10, stale-while-revalidate=5\n", 'a',
		       BEGIN);
	ck_assert_int_eq(look(&asker, GET("/", ""), BEGIN + 11 * SECOND), RESPCACHE_STALE);
	release_entry(&asker);
	ck_assert_int_eq(look(&old, GET("/", ""), BEGIN + 11 * SECOND), RESPCACHE_STALE);
	range = make_unit('b', 100);
	ck_assert(answer_with(asker.ask.flight, KEEP_10, &range, 1, true, BEGIN + 12 * SECOND));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	ck_assert(hits(GET("/", ""), 'b', BEGIN + 12 * SECOND));
	ck_assert_uint_eq(stat_now().entries, 1);
	/* The old one is still being sent. */
	ck_assert(!is_alive(before));
	ck_assert(body_is(old.ask.entry, 'a'));
	release_entry(&old);
	/* And a response that must not be cached drops the existing one. */
	ck_assert_int_eq(look(&asker, GET("/", ""), BEGIN + 22 * SECOND), RESPCACHE_FETCH);
	respcache_give_up(asker.ask.flight, RESPCACHE_NOT_KEPT, BEGIN + 22 * SECOND);
	ck_assert_int_eq(peek(GET("/", ""), BEGIN + 12 * SECOND), RESPCACHE_PASS);
	ck_assert_uint_eq(stat_now().entries, 0);
	ck_assert(!is_alive(range.id));
	close_all();
}
END_TEST

/* --- destroyed units ------------------------------------------------------------------------- */

START_TEST(test_destroyed)
{
	struct asker asker, holder;
	struct NC_range ranges[2];

	open_all(100, 100000);
	for (unsigned i = 0; i < 2; i++)
		ranges[i] = make_unit('a', 100);
	ck_assert_int_eq(look(&asker, GET("/", ""), BEGIN), RESPCACHE_FETCH);
	ck_assert(answer_with(asker.ask.flight, KEEP_10, ranges, 2, false, BEGIN));
	ck_assert_int_eq(look(&holder, GET("/", ""), BEGIN), RESPCACHE_HIT);
	ck_assert_int_eq(NC_destroy(NULL, ranges[1].id), 0);
	/* At once, even if it is held. */
	ck_assert_int_eq(peek(GET("/", ""), BEGIN), RESPCACHE_FETCH);
	ck_assert_uint_eq(stat_now().dead, 1);
	ck_assert_uint_eq(stat_now().entries, 0);
	release_entry(&holder);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(release_id(NULL, ranges[i].id), 0);
	/* The cache does not destroy units of the application. */
	ck_assert(is_alive(ranges[0].id));
	ck_assert_int_eq(NC_destroy(NULL, ranges[0].id), 0);
	close_all();
}
END_TEST

/* A stale entry with a dead unit: the request that refreshes it fetches without it. */
START_TEST(test_destroyed_when_stale)
{
	struct asker asker;
	size_t id;

	open_all(100, 100000);
	id = fetch(GET("/", ""), "Cache-Control: max-age=10, stale-while-revalidate=5\n", 'a',
		   BEGIN);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	ck_assert_int_eq(look(&asker, GET("/", ""), BEGIN + 11 * SECOND), RESPCACHE_FETCH);
	ck_assert_ptr_null(asker.ask.entry);
	ck_assert_ptr_nonnull(asker.ask.flight);
	respcache_give_up(asker.ask.flight, RESPCACHE_LOST, BEGIN);
	close_all();
}
END_TEST

START_TEST(test_given)
{
	size_t first, second;

	open_all(100, 100000);
	first = fetch(GET("/", ""), KEEP_10, 'a', BEGIN);
	second = fetch(GET("/c", ""), KEEP_10, 'c', BEGIN);
	ck_assert(is_alive(first));
	fetch(GET("/", ""), KEEP_10, 'b', BEGIN + 11 * SECOND);
	ck_assert(!is_alive(first));
	ck_assert(is_alive(second));
	respcache_close(responses);
	ck_assert(!is_alive(second));
	responses = NULL;
	close_all();
}
END_TEST

START_TEST(test_too_much)
{
	struct NC_range ranges[RESPCACHE_RANGES_MAX + 1];
	char lines[RESPCACHE_TAGS_MAX * 2 + 64] = KEEP_10 "X-NABC-Tag:";
	struct asker asker;
	struct NC_range range;

	open_all(100, 100000);
	range = make_unit('a', 100);
	for (unsigned i = 0; i < RESPCACHE_RANGES_MAX + 1; i++)
		ranges[i] = range;
	ck_assert_int_eq(look(&asker, GET("/", ""), BEGIN), RESPCACHE_FETCH);
	ck_assert(!answer_with(asker.ask.flight, KEEP_10, ranges, RESPCACHE_RANGES_MAX + 1, false,
			       BEGIN));
	ck_assert_int_eq(look(&asker, GET("/", ""), BEGIN), RESPCACHE_FETCH);
	ck_assert(
		answer_with(asker.ask.flight, KEEP_10, ranges, RESPCACHE_RANGES_MAX, false, BEGIN));
	ck_assert(hits(GET("/", ""), 'a', BEGIN));
	for (unsigned i = 0; i < RESPCACHE_TAGS_MAX; i++)
		strcat(lines, " t");
	strcat(lines, "\n");
	ck_assert_int_eq(look(&asker, GET("/b", ""), BEGIN), RESPCACHE_FETCH);
	ck_assert(answer_with(asker.ask.flight, lines, &range, 1, false, BEGIN));
	lines[strlen(lines) - 1] = '\0';
	strcat(lines, " t\n");
	ck_assert_int_eq(look(&asker, GET("/c", ""), BEGIN), RESPCACHE_FETCH);
	ck_assert(!answer_with(asker.ask.flight, lines, &range, 1, true, BEGIN));
	/* The cache owned it, so it is destroyed. */
	ck_assert(!is_alive(range.id));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	close_all();
}
END_TEST

/* --- which requests ------------------------------------------------------------------------- */

START_TEST(test_methods)
{
	struct asker asker;

	open_all(100, 100000);
	ck_assert_int_eq(peek("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", BEGIN), RESPCACHE_PASS);
	fetch(GET("/", ""), "Cache-Control: max-age=10, stale-while-revalidate=5\n", 'a', BEGIN);
	ck_assert_int_eq(peek("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", BEGIN), RESPCACHE_HIT);
	ck_assert_int_eq(look(&asker, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", BEGIN + 11 * SECOND),
			 RESPCACHE_STALE);
	ck_assert_ptr_null(asker.ask.flight);
	release_entry(&asker);
	ck_assert_int_eq(peek("POST / HTTP/1.1\r\nHost: a\r\n\r\n", BEGIN), RESPCACHE_PASS);
	ck_assert_int_eq(peek("OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n", BEGIN), RESPCACHE_PASS);
	ck_assert_int_eq(peek(GET("/", "Content-Length: 1\r\n"), BEGIN), RESPCACHE_PASS);
	ck_assert_int_eq(peek(GET("/", "Transfer-Encoding: chunked\r\n"), BEGIN), RESPCACHE_PASS);
	/* A range of an uncached response is not fetched; of a cached one it is served. */
	ck_assert_int_eq(peek(GET("/", "Range: bytes=0-1\r\n"), BEGIN), RESPCACHE_HIT);
	ck_assert_int_eq(peek(GET("/b", "Range: bytes=0-1\r\n"), BEGIN), RESPCACHE_PASS);
	/* A conditional request fetches if the URL is known to be cached. */
	ck_assert_int_eq(peek(GET("/b", "If-None-Match: \"x\"\r\n"), BEGIN), RESPCACHE_PASS);
	ck_assert_int_eq(peek(GET("/", "If-None-Match: \"x\"\r\n"), BEGIN + 20 * SECOND),
			 RESPCACHE_FETCH);
	close_all();
}
END_TEST

START_TEST(test_keys)
{
	static const char *const others[] = {GET("/b", ""),
					     GET("/?", "X-A: b\r\n"),
					     GET("/?b", ""),
					     GET("//", ""),
					     "GET / HTTP/1.1\r\nHost: b\r\n\r\n",
					     "GET / HTTP/1.1\r\nHost: a:80\r\n\r\n"};

	open_all(100, 100000);
	fetch(GET("/", ""), KEEP_10, 'a', BEGIN);
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ck_assert_msg(hits(others[i], 'a', BEGIN) == (i == 1), "%s", others[i]);
	ck_assert(hits("GET / HTTP/1.1\r\nHost: A\r\n\r\n", 'a', BEGIN));
	ck_assert(hits("GET http://A/ HTTP/1.1\r\nHost: b\r\n\r\n", 'a', BEGIN));
	close_all();
}
END_TEST

START_TEST(test_vary)
{
	static const char lines[] = KEEP_10 "Vary: Accept-Language, X-A\r\n";

	open_all(100, 100000);
	fetch(GET("/", ""), lines, '0', BEGIN);
	fetch(GET("/", "Accept-Language: de\r\n"), lines, 'd', BEGIN);
	fetch(GET("/", "Accept-Language: en\r\n"), lines, 'e', BEGIN);
	fetch(GET("/", "Accept-Language: en\r\nX-A: b\r\n"), lines, 'b', BEGIN);
	ck_assert(hits(GET("/", "Accept: x\r\n"), '0', BEGIN));
	ck_assert(hits(GET("/", "accept-language: de\r\nX-B: c\r\n"), 'd', BEGIN));
	ck_assert(hits(GET("/", "Accept-Language: en\r\n"), 'e', BEGIN));
	ck_assert(hits(GET("/", "X-A: b\r\nAccept-Language: en\r\n"), 'b', BEGIN));
	ck_assert_int_eq(peek(GET("/", "Accept-Language: fr\r\n"), BEGIN), RESPCACHE_FETCH);
	ck_assert_uint_eq(stat_now().entries, 4);
	/* Each variant is replaced only by the same variant. */
	fetch(GET("/", "Accept-Language: de\r\n"), lines, 'D', BEGIN + 10 * SECOND);
	ck_assert_uint_eq(stat_now().entries, 4);
	ck_assert(hits(GET("/", "Accept-Language: de\r\n"), 'D', BEGIN + 10 * SECOND));
	/* It varies by other fields now. */
	fetch(GET("/", "Accept-Language: en\r\n"), KEEP_10, 'x', BEGIN + 10 * SECOND);
	ck_assert(hits(GET("/", "Accept-Language: fr\r\n"), 'x', BEGIN + 10 * SECOND));
	close_all();
}
END_TEST

START_TEST(test_authorized)
{
	static const char with[] = GET("/", "Authorization: Basic x\r\n");

	open_all(100, 100000);
	fetch(GET("/", ""), KEEP_10, 'a', BEGIN);
	/* A request with a password may have another response. */
	ck_assert_int_eq(peek(with, BEGIN), RESPCACHE_FETCH);
	ck_assert(hits(GET("/", ""), 'a', BEGIN));
	fetch(with, "Cache-Control: public, max-age=10\n", 'b', BEGIN);
	ck_assert(hits(with, 'b', BEGIN));
	ck_assert(hits(GET("/", ""), 'b', BEGIN));
	close_all();
}
END_TEST

/* --- limits ---------------------------------------------------------------------------------- */

static const char *numbered(unsigned number)
{
	static char head[64];

	snprintf(head, sizeof(head), "GET /%u HTTP/1.1\r\nHost: a\r\n\r\n", number);
	return head;
}

START_TEST(test_entries)
{
	open_all(4, 1 << 20);
	for (unsigned i = 0; i < 4; i++)
		fetch(numbered(i), KEEP_10, 'a', BEGIN);
	ck_assert(hits(numbered(0), 'a', BEGIN));
	ck_assert(hits(numbered(2), 'a', BEGIN));
	/* The oldest of the unused ones is evicted. */
	fetch(numbered(4), KEEP_10, 'a', BEGIN);
	fetch(numbered(5), KEEP_10, 'a', BEGIN);
	ck_assert_uint_eq(stat_now().entries, 4);
	ck_assert_uint_eq(stat_now().dropped, 2);
	ck_assert(hits(numbered(0), 'a', BEGIN));
	ck_assert(hits(numbered(2), 'a', BEGIN));
	ck_assert(!hits(numbered(1), 'a', BEGIN));
	ck_assert(!hits(numbered(3), 'a', BEGIN));
	for (unsigned i = 10; i < 500; i++)
		fetch(numbered(i), KEEP_10, 'a', BEGIN);
	ck_assert_uint_eq(stat_now().entries, 4);
	ck_assert(hits(numbered(499), 'a', BEGIN));
	close_all();
}
END_TEST

START_TEST(test_bytes)
{
	struct respcache_stat stat;

	open_all(100, 10000);
	for (unsigned i = 0; i < 200; i++) {
		fetch(numbered(i), KEEP_10, 'a', BEGIN);
		stat = stat_now();
		ck_assert_uint_le(stat.bytes, 10000);
	}
	ck_assert_uint_gt(stat.entries, 10);
	ck_assert_uint_lt(stat.entries, 100);
	ck_assert_uint_eq(stat.stored, 200);
	ck_assert_uint_eq(stat.dropped, 200 - stat.entries);
	close_all();
}
END_TEST

/* Many, in all shards. */
START_TEST(test_many)
{
	open_all(4096, 16 << 20);
	for (unsigned i = 0; i < 2000; i++)
		fetch(numbered(i), KEEP_10, (char)('a' + i % 26), BEGIN);
	for (unsigned i = 0; i < 2000; i++)
		ck_assert(hits(numbered(i), (char)('a' + i % 26), BEGIN));
	ck_assert_uint_eq(stat_now().entries, 2000);
	ck_assert_uint_eq(stat_now().hits, 2000);
	close_all();
}
END_TEST

/* --- marks -------------------------------------------------------------------------------------- */

START_TEST(test_marked)
{
	static const struct cacheable_rule marked = {CACHEABLE_MARKED, 0}, off = {CACHEABLE_OFF, 0};
	struct asker asker;
	struct NC_range range;

	open_all(100, 100000);
	/* Until a response was marked, no request waits for another. */
	ck_assert_int_eq(look_by(&asker, GET("/", ""), marked, BEGIN), RESPCACHE_PASS);
	respcache_note(responses, asker.ask.mark, BEGIN);
	ck_assert_int_eq(look_by(&asker, GET("/b", ""), marked, BEGIN), RESPCACHE_PASS);
	ck_assert_int_eq(look_by(&asker, GET("/", ""), marked, BEGIN), RESPCACHE_FETCH);
	range = make_unit('a', 100);
	ck_assert(answer_with(asker.ask.flight, "X-NABC-Max-Age: 10\n", &range, 1, true, BEGIN));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	ck_assert_int_eq(look_by(&asker, GET("/", ""), marked, BEGIN), RESPCACHE_HIT);
	release_entry(&asker);
	ck_assert_int_eq(look_by(&asker, GET("/", ""), off, BEGIN), RESPCACHE_PASS);
	/* A request without a key has no effect. */
	ck_assert_int_eq(look_by(&asker, "POST / HTTP/1.1\r\nHost: a\r\n\r\n", marked, BEGIN),
			 RESPCACHE_PASS);
	respcache_note(responses, asker.ask.mark, BEGIN);
	close_all();
}
END_TEST

START_TEST(test_not_kept)
{
	struct asker asker;

	open_all(100, 100000);
	ck_assert_int_eq(look(&asker, GET("/", ""), BEGIN), RESPCACHE_FETCH);
	respcache_give_up(asker.ask.flight, RESPCACHE_NOT_KEPT, BEGIN);
	ck_assert_int_eq(peek(GET("/", ""), BEGIN + 4 * SECOND), RESPCACHE_PASS);
	/* A request with a password is different. */
	ck_assert_int_eq(peek(GET("/", "Authorization: x\r\n"), BEGIN), RESPCACHE_FETCH);
	/* It is fetched again from time to time. */
	ck_assert_int_eq(peek(GET("/", ""), BEGIN + 6 * SECOND), RESPCACHE_FETCH);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_kept);
	tcase_add_test(tcase, test_long_head);
	tcase_add_test(tcase, test_time);
	tcase_add_test(tcase, test_refreshed);
	tcase_add_test(tcase, test_destroyed);
	tcase_add_test(tcase, test_destroyed_when_stale);
	tcase_add_test(tcase, test_given);
	tcase_add_test(tcase, test_too_much);
	tcase_add_test(tcase, test_methods);
	tcase_add_test(tcase, test_keys);
	tcase_add_test(tcase, test_vary);
	tcase_add_test(tcase, test_authorized);
	tcase_add_test(tcase, test_entries);
	tcase_add_test(tcase, test_bytes);
	tcase_add_test(tcase, test_many);
	tcase_add_test(tcase, test_marked);
	tcase_add_test(tcase, test_not_kept);
}

RUN_SUITE("respcache", fill)
