/* SPDX-License-Identifier: MIT */
/*
 * test-cacheable.c - unit tests of whether a response may be cached: a table of header
 * lines, rules and statuses, and the tags in the lines.  Single-threaded.
 */
#include <stdbool.h>
#include <string.h>

#include "base/slice.h"
#include "http/cachecontrol.h"
#include "program/cacheable.h"
#include "program/cgihead.h"

#include "suite.h"

#define NOW 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define MOST CACHECONTROL_SECONDS_MAX

enum { MARKED, OFF, RESPONSE, TIME }; /* which caches it for 30 seconds */

static const struct cacheable_rule rules[] = {[MARKED] = {CACHEABLE_MARKED, 0},
					      [OFF] = {CACHEABLE_OFF, 0},
					      [RESPONSE] = {CACHEABLE_RESPONSE, 0},
					      [TIME] = {CACHEABLE_TIME, 30}};

static const struct fresh_case {
	const char *lines;
	unsigned marked, off, response, time; /* seconds by each rule */
} fresh_cases[] = {
	{"", 0, 0, 0, 30},
	{"Content-Type: text/plain\n", 0, 0, 0, 30},
	{"Cache-Control: max-age=60\n", 0, 0, 60, 60},
	{"cache-control: MAX-AGE=60\r\n", 0, 0, 60, 60},
	{"Cache-Control: max-age=60, s-maxage=10\n", 0, 0, 10, 10},
	{"Cache-Control: max-age=0\n", 0, 0, 0, 0},
	{"Cache-Control: public\n", 0, 0, 0, 30},
	{"Cache-Control: no-store\n", 0, 0, 0, 0},
	{"Cache-Control: no-cache\n", 0, 0, 0, 0},
	{"Cache-Control: private\n", 0, 0, 0, 0},
	{"Cache-Control: private, max-age=60\n", 0, 0, 0, 0},
	{"Cache-Control: max-age=60\nCache-Control: no-store\n", 0, 0, 0, 0},
	/* this server's own field comes first */
	{"X-NABC-Max-Age: 5\n", 5, 0, 5, 5},
	{"X-NABC-Max-Age: 5\nCache-Control: no-store\n", 5, 0, 5, 5},
	{"X-NABC-Max-Age: 5\nCache-Control: private, max-age=60\n", 5, 0, 5, 5},
	{"X-NABC-Max-Age: 0\nCache-Control: max-age=60\n", 0, 0, 0, 0},
	{"X-NABC-Max-Age: 9999999999\n", MOST, 0, MOST, MOST},
	/* aged in another cache */
	{"Cache-Control: max-age=60\nAge: 20\n", 0, 0, 40, 40},
	{"Cache-Control: max-age=60\nAge: 60\n", 0, 0, 0, 0},
	{"Cache-Control: max-age=60\nAge: 99999999999\n", 0, 0, 0, 0},
	{"Cache-Control: max-age=60\nAge: 2147483647\n", 0, 0, 0, 0},
	{"Cache-Control: max-age=60\nAge: 2147483648\n", 0, 0, 0, 0},
	{"Cache-Control: max-age=60\nAge: 4294967297\n", 0, 0, 0, 0},
	{"Cache-Control: max-age=60\nAge: x\n", 0, 0, 60, 60},
	{"Cache-Control: max-age=60\nAge: -20\n", 0, 0, 60, 60},
	{"Cache-Control: max-age=60\nAge: 20.0\n", 0, 0, 60, 60},
	{"Age: 10\n", 0, 0, 0, 20},
	{"Cache-Control: max-age=60\nAge: 20\nAge: 50\n", 0, 0, 40, 40},
	{"Cache-Control: max-age=60\nAge: 20, 50\n", 0, 0, 40, 40},
	{"Cache-Control: max-age=60\nAge: 0, 70\n", 0, 0, 60, 60},
	{"Cache-Control: max-age=60\nAge: 70, 0\n", 0, 0, 0, 0},
	{"Cache-Control: max-age=60\nAge: 70\nAge: 0\n", 0, 0, 0, 0},
	{"Cache-Control: max-age=60\nAge: x, 50\nAge: 50\n", 0, 0, 60, 60},
	/* or generated long ago */
	{"Cache-Control: max-age=60\nDate: Sun, 06 Nov 1994 08:49:17 GMT\n", 0, 0, 40, 40},
	{"Cache-Control: max-age=60\nDate: Sunday, 06-Nov-94 08:49:17 GMT\n", 0, 0, 40, 40},
	{"Cache-Control: max-age=60\nDate: Sun, 06 Nov 1994 08:49:17 GMT\nAge: 30\n", 0, 0, 30, 30},
	{"Cache-Control: max-age=60\nDate: Sun, 06 Nov 1994 08:49:17 GMT\nAge: 10\n", 0, 0, 40, 40},
	{"Cache-Control: max-age=60\nDate: Sun, 06 Nov 1994 08:48:17 GMT\n", 0, 0, 0, 0},
	{"X-NABC-Max-Age: 60\nDate: Sun, 06 Nov 1994 08:49:17 GMT\n", 40, 0, 40, 40},
	{"Cache-Control: max-age=60\nDate: Sun, 06 Nov 1994 09:49:17 GMT\n", 0, 0, 60, 60},
	{"Cache-Control: max-age=60\nDate: Thu, 01 Jan 1970 00:00:00 GMT\n"
	 "Date: Thu, 01 Jan 1970 00:00:00 GMT\n",
	 0, 0, 60, 60},
	{"Date: Sun, 06 Nov 1994 08:49:27 GMT\nExpires: Sun, 06 Nov 1994 08:50:37 GMT\n", 0, 0, 60,
	 60},
	/* dates */
	{"Expires: Sun, 06 Nov 1994 08:50:37 GMT\n", 0, 0, 60, 60},
	{"Expires: Sun, 06 Nov 1994 08:49:37 GMT\n", 0, 0, 0, 0},
	{"Expires: Sun, 06 Nov 1994 08:48:37 GMT\n", 0, 0, 0, 0},
	{"Expires: 0\n", 0, 0, 0, 0},
	{"Expires: -1\n", 0, 0, 0, 0},
	{"Expires: Sun, 06 Nov 1994 08:50:37 GMT\nExpires: Sun, 06 Nov 1994 08:50:37 GMT\n", 0, 0,
	 0, 0},
	{"Date: Sun, 06 Nov 1994 08:50:07 GMT\nExpires: Sun, 06 Nov 1994 08:50:37 GMT\n", 0, 0, 30,
	 30},
	{"Date: today\nExpires: Sun, 06 Nov 1994 08:50:37 GMT\n", 0, 0, 60, 60},
	{"Expires: Fri, 31 Dec 9999 23:59:59 GMT\n", 0, 0, MOST, MOST},
	{"Cache-Control: max-age=5\nExpires: Sun, 06 Nov 1994 08:50:37 GMT\n", 0, 0, 5, 5},
	{"Cache-Control: max-age=0\nExpires: Sun, 06 Nov 1994 08:50:37 GMT\n", 0, 0, 0, 0},
	{"Cache-Control: no-cache\nExpires: Sun, 06 Nov 1994 08:50:37 GMT\n", 0, 0, 0, 0},
	{"Expires: Sun, 06 Nov 1994 08:50:37 GMT\nAge: 20\n", 0, 0, 40, 40},
	/* an Age counts from Date, also if the clocks differ */
	{"Date: Sun, 06 Nov 1994 08:48:37 GMT\nExpires: Sun, 06 Nov 1994 08:50:37 GMT\nAge: 130\n",
	 0, 0, 0, 0},
	{"Date: Sun, 06 Nov 1994 09:49:37 GMT\nExpires: Sun, 06 Nov 1994 09:50:37 GMT\nAge: 70\n",
	 0, 0, 0, 0},
	{"Date: Sun, 06 Nov 1994 09:50:37 GMT\nExpires: Sun, 06 Nov 1994 09:49:37 GMT\n", 0, 0, 0,
	 0},
	/* no date: stale */
	{"Expires: Sun, 06 Nov 1994 08:50:37 UTC\n", 0, 0, 0, 0},
	/* for one client only */
	{"Set-Cookie: a=b\n", 0, 0, 0, 0},
	{"Set-Cookie: a=b\nCache-Control: public, max-age=60\n", 0, 0, 0, 0},
	{"Set-Cookie: a=b\nX-NABC-Max-Age: 5\n", 5, 0, 5, 5},
	/* which varies */
	{"Vary: Accept\nCache-Control: max-age=60\n", 0, 0, 60, 60},
	{"Vary: *\nCache-Control: max-age=60\n", 0, 0, 0, 0},
	{"Vary: *\nX-NABC-Max-Age: 5\n", 0, 0, 0, 0},
};

/* The text must live as long as the head. */
static void parse(struct cgihead *head, const char *lines, int status)
{
	const char *wrong = NULL;

	*head = (struct cgihead){.max_age = CACHECONTROL_UNSAID};
	cachecontrol_init(&head->control);
	if (*lines)
		wrong = cgihead_parse(head, (struct slice){lines, strlen(lines)});
	ck_assert_msg(!wrong, "%s: %s", lines, wrong);
	head->status = status;
}

static struct cacheable_terms judge(const char *lines, int rule, int status, bool authorized)
{
	struct cacheable said;
	struct cgihead head;

	parse(&head, lines, status);
	cacheable_read(&said, &head);
	return cacheable_judge(&said, rules[rule], authorized, NOW);
}

START_TEST(test_fresh)
{
	const struct fresh_case *c = &fresh_cases[_i];
	const unsigned want[] = {c->marked, c->off, c->response, c->time};

	for (int rule = MARKED; rule <= TIME; rule++) {
		unsigned fresh = judge(c->lines, rule, 200, false).fresh;

		ck_assert_msg(fresh == want[rule], "%s by rule %d: %u", c->lines, rule, fresh);
	}
}
END_TEST

START_TEST(test_status)
{
	static const int lasting[] = {200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501};
	static const int told[] = {302, 307};
	static const int never[] = {201, 202, 206, 299, 303, 304, 400, 401,
				    403, 429, 499, 500, 502, 503, 504, 599};

	for (unsigned i = 0; i < sizeof(lasting) / sizeof(lasting[0]); i++) {
		ck_assert_uint_eq(judge("", TIME, lasting[i], false).fresh, 30);
		ck_assert_uint_eq(judge("X-NABC-Max-Age: 5\n", MARKED, lasting[i], false).fresh, 5);
	}
	for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		ck_assert_uint_eq(judge("", TIME, told[i], false).fresh, 0);
		ck_assert_uint_eq(judge("Cache-Control: max-age=9\n", TIME, told[i], false).fresh,
				  9);
	}
	for (unsigned i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		ck_assert_uint_eq(judge("X-NABC-Max-Age: 5\n", TIME, never[i], false).fresh, 0);
	/* Last-Modified alone states no lifetime, whatever the status. */
	for (unsigned i = 0; i < sizeof(lasting) / sizeof(lasting[0]); i++)
		ck_assert_uint_eq(judge("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\n", RESPONSE,
					lasting[i], false)
					  .fresh,
				  0);
}
END_TEST

START_TEST(test_authorized)
{
	static const struct {
		const char *lines;
		unsigned fresh;
		bool shared;
	} cases[] = {
		{"Cache-Control: max-age=60\n", 0, false},
		{"", 0, false},
		{"Cache-Control: max-age=60, must-revalidate\n", 0, false},
		{"Cache-Control: max-age=60, public\n", 60, true},
		{"Cache-Control: s-maxage=60\n", 60, true},
		{"X-NABC-Max-Age: 60\n", 60, true},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cacheable_terms terms = judge(cases[i].lines, TIME, 200, true);

		ck_assert_uint_eq(terms.fresh, cases[i].fresh);
		ck_assert_int_eq(terms.shared, cases[i].shared);
		terms = judge(cases[i].lines, TIME, 200, false);
		ck_assert_uint_ne(terms.fresh, 0);
		ck_assert_int_eq(terms.shared, cases[i].shared);
	}
}
END_TEST

START_TEST(test_stale)
{
	struct cacheable_terms terms = judge(
		"Cache-Control: max-age=60, stale-while-revalidate=20\n", RESPONSE, 200, false);

	ck_assert_uint_eq(terms.fresh, 60);
	ck_assert_uint_eq(terms.stale, 20);
	terms = judge("Cache-Control: stale-while-revalidate=20\nX-NABC-Max-Age: 1\n", MARKED, 200,
		      false);
	ck_assert_uint_eq(terms.fresh, 1);
	ck_assert_uint_eq(terms.stale, 20);
	terms = judge("Cache-Control: max-age=60, must-revalidate, stale-while-revalidate=20\n",
		      RESPONSE, 200, false);
	ck_assert_uint_eq(terms.stale, 0);
	terms = judge("Cache-Control: s-maxage=60, stale-while-revalidate=20\n", RESPONSE, 200,
		      false);
	ck_assert_uint_eq(terms.fresh, 60);
	ck_assert_uint_eq(terms.stale, 0);
}
END_TEST

static bool is(struct slice slice, const char *text)
{
	return slice.length == strlen(text) && memcmp(slice.at, text, slice.length) == 0;
}

START_TEST(test_tags)
{
	struct cacheable said;
	struct cgihead head;
	struct slice rest, tag;

	parse(&head,
	      "ETag: \"x\"\nX-NABC-Tag:  a, b\tc,,d \nX-NABC-Purge: e\nLast-Modified: y\n"
	      "x-nabc-purge: f\n",
	      200);
	cacheable_read(&said, &head);
	ck_assert(is(said.etag, "\"x\"") && is(said.modified, "y"));
	ck_assert_uint_eq(said.purge_count, 2);
	/*
	 * Clients cannot make a request conditional on fields that they do not see; all others
	 * apply.
	 */
	parse(&head,
	      "Connection: etag, last-modified, Age, X-NABC-Purge\nETag: \"x\"\nAge: 3\n"
	      "X-NABC-Tag:  a, b\tc,,d \nX-NABC-Purge: e\nLast-Modified: y\nx-nabc-purge: f\n",
	      200);
	cacheable_read(&said, &head);
	ck_assert(!said.etag.length && !said.modified.length && said.age == 3);
	ck_assert_uint_eq(said.purge_count, 2);
	ck_assert(is(said.purges[0], "e") && is(said.purges[1], "f"));
	rest = head.tag;
	for (const char *want = "abcd"; *want; want++) {
		ck_assert(cacheable_tag(&rest, &tag));
		ck_assert(tag.length == 1 && *tag.at == *want);
	}
	ck_assert(!cacheable_tag(&rest, &tag));
	ck_assert(!cacheable_tag(&rest, &tag));
}
END_TEST

START_TEST(test_many_purges)
{
	char lines[512] = "";
	struct cacheable said;
	struct cgihead head;

	for (unsigned i = 0; i < 2 * CACHEABLE_PURGES_MAX; i++)
		strcat(lines, "X-NABC-Purge: a\n");
	parse(&head, lines, 200);
	cacheable_read(&said, &head);
	ck_assert_uint_eq(said.purge_count, CACHEABLE_PURGES_MAX);
}
END_TEST

/* Tags of all three names; with too many lines, a purge could not find the response. */
START_TEST(test_tag_lines)
{
	const struct cacheable_rule rule = {.mode = CACHEABLE_RESPONSE};
	char lines[512] = "Cache-Control: max-age=9\nSurrogate-Key: a b\nX-NABC-Tag: c\n"
			  "cache-tag: d,e\nX-NABC-Soft-Purge: f\nX-NABC-Purge: g\n";
	struct cacheable said;
	struct cgihead head;

	parse(&head, lines, 200);
	cacheable_read(&said, &head);
	ck_assert_uint_eq(said.tag_count, 3);
	ck_assert(is(said.tags[0], "a b") && is(said.tags[1], "c") && is(said.tags[2], "d,e"));
	ck_assert_uint_eq(said.purge_count, 2);
	ck_assert(is(said.purges[0], "f") && said.soft[0]);
	ck_assert(is(said.purges[1], "g") && !said.soft[1]);
	for (unsigned i = 3; i <= CACHEABLE_TAGS_MAX; i++) {
		ck_assert_uint_eq(cacheable_judge(&said, rule, false, 0).fresh, 9);
		strcat(lines, "Cache-Tag: x\n");
		parse(&head, lines, 200);
		cacheable_read(&said, &head);
	}
	ck_assert_uint_eq(cacheable_judge(&said, rule, false, 0).fresh, 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_fresh, 0, sizeof(fresh_cases) / sizeof(fresh_cases[0]));
	tcase_add_test(tcase, test_status);
	tcase_add_test(tcase, test_authorized);
	tcase_add_test(tcase, test_stale);
	tcase_add_test(tcase, test_tags);
	tcase_add_test(tcase, test_many_purges);
	tcase_add_test(tcase, test_tag_lines);
}

RUN_SUITE("cacheable", fill)
