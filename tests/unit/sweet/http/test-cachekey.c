/* SPDX-License-Identifier: MIT */
/*
 * test-cachekey.c - unit tests of the keys of cached responses: of requests, of URLs,
 * and by fields that vary.  Single-threaded.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "http/cachekey.h"
#include "http/request.h"

#include "suite.h"

/* The head must live as long as the request. */
static struct request parse(const char *head)
{
	struct request request;

	ck_assert_msg(request_parse(&request, head, strlen(head)) == 0, "%s", head);
	return request;
}

static void check_key(const char *head, const char *want)
{
	struct request request = parse(head);
	char key[CACHEKEY_URL_MAX];
	size_t length = cachekey_write_url(&request, (struct slice){"192.0.2.1:80", 12}, key);

	ck_assert_msg(length == strlen(want) && memcmp(key, want, length) == 0, "%s: %.*s", head,
		      (int)length, key);
}

START_TEST(test_of_request)
{
	check_key("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "a /");
	check_key("GET /b/%20c?d=e&f HTTP/1.1\r\nHost: Example.ORG:8080\r\n\r\n",
		  "example.org:8080 /b/%20c?d=e&f");
	check_key("GET /A? HTTP/1.1\r\nHost: a\r\n\r\n", "a /A");
	check_key("HEAD / HTTP/1.0\r\n\r\n", "192.0.2.1:80 /");
	check_key("GET http://B/c HTTP/1.1\r\nHost: a\r\n\r\n", "b /c");
	check_key("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "");
}
END_TEST

START_TEST(test_long_ones)
{
	char head[REQUEST_HEAD_MAX], key[CACHEKEY_URL_MAX];
	struct request request;

	snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: %0*d\r\n\r\n", CACHEKEY_HOST_MAX, 1);
	request = parse(head);
	ck_assert_uint_eq(cachekey_write_url(&request, (struct slice){NULL, 0}, key),
			  CACHEKEY_HOST_MAX + 2);
	snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: %0*d\r\n\r\n", CACHEKEY_HOST_MAX + 1,
		 1);
	request = parse(head);
	ck_assert_uint_eq(cachekey_write_url(&request, (struct slice){NULL, 0}, key), 0);
	snprintf(head, sizeof(head), "GET /%0*d HTTP/1.1\r\nHost: a\r\n\r\n",
		 REQUEST_TARGET_MAX - 2, 1);
	request = parse(head);
	ck_assert_uint_eq(cachekey_write_url(&request, (struct slice){NULL, 0}, key),
			  REQUEST_TARGET_MAX + 1);
}
END_TEST

/* Returns the key of a request at a place. */
static struct slice key_at(const char *head, const char *host, struct slice text, char *out)
{
	struct cachekey_place place = {{host, strlen(host)}, text};
	struct request request = parse(head);
	size_t url_length, length = cachekey_write(&request, &place, out, &url_length);

	ck_assert_uint_le(length, CACHEKEY_MAX);
	if (length)
		ck_assert(url_length < length && memcmp(out, "a /", 3) == 0);
	return (struct slice){out, length};
}

START_TEST(test_place)
{
	static const char with[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
			  without[] = "GET / HTTP/1.0\r\n\r\n";
	static char text[CACHEKEY_PLACE_MAX], one[CACHEKEY_MAX], two[CACHEKEY_MAX];
	struct slice first = key_at(with, "b", (struct slice){"x", 1}, one), second;

	ck_assert(first.length == strlen("a /") + 3);
	second = key_at(with, "c", (struct slice){"x", 1}, two);
	ck_assert(first.length == second.length && memcmp(one, two, first.length) == 0);
	second = key_at(with, "b", (struct slice){"y", 1}, two);
	ck_assert(first.length != second.length || memcmp(one, two, first.length) != 0);
	second = key_at(with, "b", (struct slice){NULL, 0}, two);
	ck_assert(second.length && first.length != second.length);
	/* A program sees that the request named no host. */
	second = key_at(without, "a", (struct slice){"x", 1}, two);
	ck_assert(first.length != second.length || memcmp(one, two, first.length) != 0);
	memset(text, 'x', sizeof(text));
	ck_assert(key_at(with, "", (struct slice){text, sizeof(text) - 2}, one).length);
	ck_assert(!key_at(with, "", (struct slice){text, sizeof(text) - 1}, one).length);
}
END_TEST

static const struct {
	const char *url, *key; /* "": none */
	bool prefix;
} urls[] = {
	{"http://example.org/", "example.org /", false},
	{"http://example.org", "example.org /", false},
	{"HTTP://Example.org:81/A?b=C", "example.org:81 /A?b=C", false},
	{"https://a/b", "a /b", false},
	{"http://a/b#c", "a /b", false},
	{"http://a/b?c#d*", "a /b?c", false},
	{"http://a/b?", "a /b", false},
	{"http://a/b??", "a /b??", false},
	{"http://a/b?c?", "a /b?c?", false},
	{"http://a/b*", "a /b", true},
	{"http://a/*", "a /", true},
	{"http://a/b?*", "a /b?", true},
	{"http://a/b**", "a /b*", true},
	{"/", " /", false},
	{"/b?c", " /b?c", false},
	{"/*", " /", true},
	{"", "", false},
	{"*", "", false},
	{"a", "", false},
	{"a/b", "", false},
	{"http://", "", false},
	{"http:///b", "", false},
	{"http://a?b", "", false},
	{"#", "", false},
	{"ftp://a/b", "", false},
};

START_TEST(test_of_url)
{
	char key[CACHEKEY_URL_MAX];
	bool prefix;
	size_t length =
		cachekey_of_url((struct slice){urls[_i].url, strlen(urls[_i].url)}, key, &prefix);

	ck_assert_msg(length == strlen(urls[_i].key) && memcmp(key, urls[_i].key, length) == 0,
		      "%s: %.*s", urls[_i].url, (int)length, key);
	if (length)
		ck_assert_int_eq(prefix, urls[_i].prefix);
}
END_TEST

START_TEST(test_long_urls)
{
	static char url[REQUEST_TARGET_MAX + 64], key[CACHEKEY_URL_MAX];
	bool prefix;

	memset(url, 'a', sizeof(url));
	url[0] = '/';
	ck_assert_uint_eq(cachekey_of_url((struct slice){url, REQUEST_TARGET_MAX}, key, &prefix),
			  REQUEST_TARGET_MAX + 1);
	ck_assert_uint_eq(
		cachekey_of_url((struct slice){url, REQUEST_TARGET_MAX + 1}, key, &prefix), 0);
	memcpy(url, "http://", 7);
	url[7 + CACHEKEY_HOST_MAX] = '/';
	ck_assert_uint_eq(cachekey_of_url((struct slice){url, 8 + CACHEKEY_HOST_MAX}, key, &prefix),
			  CACHEKEY_HOST_MAX + 2);
	url[7 + CACHEKEY_HOST_MAX] = 'a';
	url[8 + CACHEKEY_HOST_MAX] = '/';
	ck_assert_uint_eq(cachekey_of_url((struct slice){url, 9 + CACHEKEY_HOST_MAX}, key, &prefix),
			  0);
}
END_TEST

/* --- fields that vary ------------------------------------------------------------- */

#define HEAD(fields) "GET / HTTP/1.1\r\nHost: a\r\n" fields "\r\n"

static const char names[] = "accept\0x-a"; /* with the last NUL */

static const char *const variants[] = {
	HEAD(""),
	HEAD("Accept: b\r\n"),
	HEAD("Accept: B\r\n"),
	HEAD("Accept: bb\r\n"),
	HEAD("Accept:\r\n"),
	HEAD("X-A: b\r\n"),
	HEAD("Accept: b\r\nX-A: b\r\n"),
	HEAD("Accept: b,c\r\n"),
	HEAD("Accept: b\r\nX-A: b,c\r\n"),
	HEAD("Accept: :b\r\n"),
	HEAD("Accept: b, c\r\n"),
};

START_TEST(test_values)
{
	struct slice all = {names, sizeof(names)};

	for (unsigned i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		struct request one = parse(variants[i]);
		char values[CACHEKEY_VALUES_MAX];

		ck_assert_int_gt(cachekey_values(&one, all, values), 0);
		for (unsigned k = 0; k < sizeof(variants) / sizeof(variants[0]); k++) {
			struct request other = parse(variants[k]);

			ck_assert_msg(cachekey_matches(&other, all, values) == (i == k),
				      "%s and %s", variants[i], variants[k]);
		}
	}
}
END_TEST

START_TEST(test_lines_add_up)
{
	struct slice all = {names, sizeof(names)};
	struct request one = parse(HEAD("Accept: b\r\nX-Y: z\r\naccept: c\r\n"));
	struct request other = parse(HEAD("Y: z\r\nACCEPT:b,c\r\n"));
	char values[CACHEKEY_VALUES_MAX];
	long length = cachekey_values(&one, all, values);

	ck_assert_int_eq(length, 6);
	ck_assert(memcmp(values, ":b,c\0", 6) == 0);
	ck_assert(cachekey_matches(&other, all, values));
	ck_assert_int_eq(cachekey_values(&one, (struct slice){NULL, 0}, values), 0);
	ck_assert(cachekey_matches(&other, (struct slice){NULL, 0}, values));
}
END_TEST

START_TEST(test_long_values)
{
	char head[2 * CACHEKEY_VALUES_MAX], values[CACHEKEY_VALUES_MAX];
	struct slice all = {names, sizeof(names)};
	struct request request;
	long last = -1;

	/* Up to the last byte of the memory. */
	for (int length = CACHEKEY_VALUES_MAX - 10; length < CACHEKEY_VALUES_MAX + 10; length++) {
		long got;

		snprintf(head, sizeof(head), HEAD("Accept: %0*d\r\n"), length, 1);
		request = parse(head);
		got = cachekey_values(&request, all, values);
		if (got >= 0) {
			ck_assert_int_eq(got, length + 3);
			ck_assert(cachekey_matches(&request, all, values));
			last = got;
		}
	}
	ck_assert_int_gt(last, CACHEKEY_VALUES_MAX - 4);
	ck_assert_int_le(last, CACHEKEY_VALUES_MAX);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_of_request);
	tcase_add_test(tcase, test_long_ones);
	tcase_add_test(tcase, test_place);
	tcase_add_loop_test(tcase, test_of_url, 0, sizeof(urls) / sizeof(urls[0]));
	tcase_add_test(tcase, test_long_urls);
	tcase_add_test(tcase, test_values);
	tcase_add_test(tcase, test_lines_add_up);
	tcase_add_test(tcase, test_long_values);
}

RUN_SUITE("cachekey", fill)
