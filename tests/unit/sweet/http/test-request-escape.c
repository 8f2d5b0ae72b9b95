/* SPDX-License-Identifier: MIT */
/*
 * test-request-escape.c - unit tests of request_escape().  Single-threaded; input is a heap copy of
 * its exact size, so that memory checkers detect a read beyond.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "http/request-escape.h"

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

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_escape);
	tcase_add_test(tcase, test_others);
}

RUN_SUITE("request-escape", fill)
