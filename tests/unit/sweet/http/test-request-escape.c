/* SPDX-License-Identifier: MIT */
/*
 * test-request-escape.c - unit tests of escaped targets.  Single-threaded; input is a heap copy of
 * its exact size, so that memory checkers detect a read beyond.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/request-escape.h"
#include "http/request-list.h"

#include "suite.h"

static void check(const char *head, const char *expected)
{
	size_t length = strlen(head);
	char *copy = must_alloc(length + !length);
	GString *got;

	memcpy(copy, head, length);
	got = request_escape(copy, length);
	free(copy);
	if (expected) {
		ck_assert_ptr_nonnull(got);
		ck_assert_str_eq(got->str, expected);
		g_string_free(got, TRUE);
	} else {
		ck_assert_msg(!got, "%s", head);
	}
}

START_TEST(test_escape)
{
	check("GET /\xc3\xa4%20\xe2\x82\xac?\xf0\x9f\x98\x80 HTTP/1.1\r\nA: \xc3\xa4\r\n\r\n",
	      "GET /%C3%A4%20%E2%82%AC?%F0%9F%98%80 HTTP/1.1\r\nA: \xc3\xa4\r\n\r\n");
	check("\r\nGET /\xc3\xa4 HTTP/1.1\r\n\r\n", "\r\nGET /%C3%A4 HTTP/1.1\r\n\r\n");
	/* The parser refuses what else is wrong with them. */
	check("G\xc3\xa4T /\xc3\xa4 b", "G\xc3\xa4T /%C3%A4 b");
}
END_TEST

START_TEST(test_others)
{
	static const char *const heads[] = {
		"",
		"\r\n",
		"GET",
		"GET ",
		"GET /\xc3\xa4",
		"GET /a HTTP/1.1\r\nA: \xc3\xa4\r\n\r\n",
		"GET /\xc3\xa4\r\n HTTP/1.1\r\n\r\n",
		"GET /\xc3 HTTP/1.1\r\n\r\n",
		"GET /\xc3\xa4\xff HTTP/1.1\r\n\r\n",
		"GET /\xc0\xaf HTTP/1.1\r\n\r\n",     /* not the shortest form of '/' */
		"GET /\xed\xa0\x80 HTTP/1.1\r\n\r\n", /* half of a surrogate pair */
		"GET /\xf5\x80\x80\x80 HTTP/1.1\r\n\r\n",
	};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		check(heads[i], NULL);
}
END_TEST

static struct slice make_list(char *list, const char *target)
{
	struct slice text = {target, strlen(target)};
	char *end = request_list_put(list, SLICE("GET"), text);

	end = request_list_put(end, SLICE("x"), SLICE("\xc3\xa4"));
	return (struct slice){list, (size_t)(end - list)};
}

START_TEST(test_list)
{
	char bytes[64];
	struct slice list = make_list(bytes, "/\xc3\xa4?\xe2\x82\xac");
	GString *got = request_escape_list(list.at, list.length);

	ck_assert_ptr_nonnull(got);
	list = make_list(bytes, "/%C3%A4?%E2%82%AC");
	ck_assert(slice_equals(list, (struct slice){got->str, got->len}));
	g_string_free(got, TRUE);
	ck_assert_ptr_null(request_escape_list(list.at, list.length));
	list = make_list(bytes, "/\xc3");
	ck_assert_ptr_null(request_escape_list(list.at, list.length));
	ck_assert_ptr_null(request_escape_list(list.at, 0));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_escape);
	tcase_add_test(tcase, test_others);
	tcase_add_test(tcase, test_list);
}

RUN_SUITE("request-escape", fill)
