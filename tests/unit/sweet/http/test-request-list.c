/* SPDX-License-Identifier: MIT */
/*
 * test-request-list.c - unit tests of heads that are lists: their entries, and that a request of
 * one is what the same head is as text, or is refused for the same reason.  Input is a heap copy of
 * its exact size, so that memory checkers detect a read beyond.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/request-list.h"
#include "http/request.h"

#include "request-fixture.h"
#include "suite.h"

static char list[64 << 10];
static size_t used;

static void put(const char *name, const char *value)
{
	struct slice first = {name, strlen(name)}, second = {value, strlen(value)};
	char *end = request_list_put(list + used, first, second);

	ck_assert_uint_eq((size_t)(end - list) - used, request_list_size(first, second));
	used = (size_t)(end - list);
}

/* Begins a list. */
static void line(const char *method, const char *target)
{
	used = 0;
	put(method, target);
}

/* Returns as request_parse_list(). */
static int parse_list(void)
{
	char *head = copy(list, used);
	int status;

	memset(&request, 0x5a, sizeof(request));
	status = request_parse_list(&request, head, used);
	if (status == 0) {
		check_request(head, used);
		ck_assert(request.listed);
	}
	free(head);
	return status;
}

static void refused(int status, const char *wrong)
{
	ck_assert_int_eq(parse_list(), status);
	ck_assert_str_eq(request.wrong, wrong);
}

START_TEST(test_entries)
{
	struct slice rest, name, value;

	line("GET", "/a?b");
	put("x", "");
	rest = (struct slice){list, used};
	ck_assert(request_list_next(&rest, &name, &value));
	ck_assert(slice_equals(name, SLICE("GET")) && slice_equals(value, SLICE("/a?b")));
	ck_assert(request_list_next(&rest, &name, &value));
	ck_assert(slice_equals(name, SLICE("x")) && value.length == 0);
	ck_assert(!request_list_next(&rest, &name, &value));
	ck_assert_uint_eq(rest.length, 0);
}
END_TEST

START_TEST(test_request)
{
	struct request *got = &request;

	line("POST", "/a?b");
	put("host", "h:1");
	put("content-length", "5");
	put("x", " \t y z\t ");
	put("expect", "100-continue");
	put("if-match", "");
	ck_assert_int_eq(request_parse_list(got, list, used), 0);
	ck_assert_int_eq(got->method, METHOD_POST);
	ck_assert(slice_equals(got->target, SLICE("/a?b")));
	ck_assert(slice_equals(got->path, SLICE("/a")) && slice_equals(got->query, SLICE("b")));
	ck_assert(slice_equals(got->host, SLICE("h:1")));
	ck_assert_uint_eq(got->minor, 1);
	ck_assert_uint_eq(got->content_length, 5);
	ck_assert_int_eq(got->expect, EXPECT_CONTINUE);
	ck_assert(got->conditional && got->keep_alive && !got->chunked);
	ck_assert_uint_eq(got->header_count, 5);
	ck_assert(slice_equals(got->headers[2].value, SLICE("y z")));
}
END_TEST

/* Whether the byte ends that part of a text, which it cannot in a list. */
static bool ends(unsigned part, int byte)
{
	static const char *const bytes[] = {" \r\n", " \r\n", ":\r\n", "\r\n"};

	return strchr(bytes[part], byte);
}

/* Each byte in method, target, name and value is refused, or not, as in text. */
START_TEST(test_bytes)
{
	const int byte = _i;

	for (unsigned part = 0; part < 4; part++) {
		char parts[4][24] = {"METHODMETHODMETHOD", "/targettargettarget",
				     "namenamenamename", "value value value value"};
		char head[256];
		int length, expected;

		parts[part][14] = (char)byte;
		length = sprintf(head, "%s %s HTTP/1.1\r\n" H "%s: %s\r\n\r\n", parts[0], parts[1],
				 parts[2], parts[3]);
		expected = parse(head, (size_t)length);
		line(parts[0], parts[1]);
		put("Host", "h");
		put(parts[2], parts[3]);
		ck_assert_int_eq(parse_list(), ends(part, byte) ? -400 : expected);
	}
}
END_TEST

START_TEST(test_refused)
{
	used = 0;
	refused(-400, "no method and no target");
	line("", "/");
	refused(-400, "a malformed request line");
	line("GET", "");
	refused(-400, "a malformed request line");
	line("GET", "/ /");
	refused(-400, "a malformed request line");
	line("GET", "/\xc3\xa4");
	refused(-400, "a target with bytes that are not ASCII");
	line("GET", "*");
	refused(-400, "the target * with a method other than OPTIONS");
	line("CONNECT", "a:1");
	refused(-501, "CONNECT");
	line("GET", "/");
	refused(-400, "no Host field");
	put("host", "h");
	put("host", "h");
	refused(-400, "a malformed Host field, or two of them");
	line("GET", "/");
	put("host", "h");
	put("a", "b\r\nc: d");
	refused(-400, "a malformed header field");
	line("GET", "/");
	put("host", "h");
	put("", "b");
	refused(-400, "a malformed header field");
	line("GET", "/");
	put("host", "h");
	put("a:b", "c");
	refused(-400, "a malformed header field");
	line("GET", "/");
	put("host", "h");
	put("content-length", "1");
	put("transfer-encoding", "chunked");
	refused(-400, "a Transfer-Encoding that does not define the end of the body");
}
END_TEST

START_TEST(test_limits)
{
	static char target[REQUEST_TARGET_MAX + 2];

	memset(target, '/', REQUEST_TARGET_MAX);
	line("GET", target);
	put("host", "h");
	for (unsigned i = 1; i < REQUEST_HEADERS_MAX; i++)
		put("a", "b");
	ck_assert_int_eq(parse_list(), 0);
	ck_assert_uint_eq(request.header_count, REQUEST_HEADERS_MAX);
	put("a b", "c");
	refused(-431, REQUEST_TOO_MANY);
	target[REQUEST_TARGET_MAX] = '/';
	line("GET", target);
	refused(-414, "a target that is too long");
}
END_TEST

/* A part of a list is no list. */
START_TEST(test_parts)
{
	size_t whole, first;

	line("GET", "/");
	first = used;
	put("host", "h");
	whole = used;
	for (used = 0; used < whole; used++)
		if (used != first)
			refused(-400, used < first ? "no method and no target"
						   : "a malformed end of the head");
	ck_assert_int_eq(parse_list(), 0);
	for (size_t i = 0; i < REQUEST_LIST_LENGTHS; i++) {
		list[first + i] ^= (char)0xff;
		refused(-400, "a malformed end of the head");
		list[first + i] ^= (char)0xff;
	}
}
END_TEST

START_TEST(test_is_head)
{
	line("HEAD", "");
	ck_assert(request_list_is_head(list, used));
	ck_assert(!request_list_is_head(list, used - 1));
	line("GET", "HEAD");
	ck_assert(!request_list_is_head(list, used));
	line("head", "/");
	ck_assert(!request_list_is_head(list, used));
}
END_TEST

START_TEST(test_either)
{
	line("GET", "/");
	put("host", "h");
	ck_assert_int_eq(request_parse_head(&request, list, used, true), 0);
	ck_assert_int_eq(request_parse_head(&request, list, used, false), -400);
	ck_assert_int_eq(request_parse_head(&request, L H E, strlen(L H E), false), 0);
	ck_assert_int_eq(request_parse_head(&request, L H E, strlen(L H E), true), -400);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_entries);
	tcase_add_test(tcase, test_request);
	tcase_add_loop_test(tcase, test_bytes, 1, 256);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_parts);
	tcase_add_test(tcase, test_is_head);
	tcase_add_test(tcase, test_either);
}

RUN_SUITE("request-list", fill)
