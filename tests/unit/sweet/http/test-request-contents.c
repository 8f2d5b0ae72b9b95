/* SPDX-License-Identifier: MIT */
/*
 * test-request-contents.c - unit tests of the request head: its fields and
 * body, its limits, and every byte in some places.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/request.h"

#include "request-fixture.h"
#include "suite.h"

/* The fields of accepted requests. */
static const struct {
	const char *head;
	enum request_method method;
	const char *path;
	const char *query;
	const char *host;
	unsigned minor;
	bool keep_alive;
	uint64_t content_length;
	unsigned header_count;
} contents[] = {
	{L H E, METHOD_GET, "/", "", "h", 1, true, 0, 1},
	{E L H E, METHOD_GET, "/", "", "h", 1, true, 0, 1},
	{"HEAD /a?b HTTP/1.1\r\n" H E, METHOD_HEAD, "/a", "b", "h", 1, true, 0, 1},
	{"POST /a? HTTP/1.1\r\n" H E, METHOD_POST, "/a", "", "h", 1, true, 0, 1},
	{"PUT /a?b?c HTTP/1.1\r\n" H E, METHOD_PUT, "/a", "b?c", "h", 1, true, 0, 1},
	{"DELETE /?b HTTP/1.1\r\n" H E, METHOD_DELETE, "/", "b", "h", 1, true, 0, 1},
	{"TRACE /%3f HTTP/1.1\r\n" H E, METHOD_TRACE, "/%3f", "", "h", 1, true, 0, 1},
	{"PATCH /../x HTTP/1.1\r\n" H E, METHOD_PATCH, "/../x", "", "h", 1, true, 0, 1},
	{"OPTIONS * HTTP/1.1\r\n" H E, METHOD_OPTIONS, "*", "", "h", 1, true, 0, 1},
	{"OPTIONS /a HTTP/1.1\r\n" H E, METHOD_OPTIONS, "/a", "", "h", 1, true, 0, 1},
	{"get / HTTP/1.1\r\n" H E, METHOD_OTHER, "/", "", "h", 1, true, 0, 1},
	{"GETX / HTTP/1.1\r\n" H E, METHOD_OTHER, "/", "", "h", 1, true, 0, 1},
	{"GE / HTTP/1.1\r\n" H E, METHOD_OTHER, "/", "", "h", 1, true, 0, 1},
	{"BREW / HTTP/1.1\r\n" H E, METHOD_OTHER, "/", "", "h", 1, true, 0, 1},
	{"GET http://x:1/a?b HTTP/1.1\r\n" H E, METHOD_GET, "/a", "b", "x:1", 1, true, 0, 1},
	{"GET HTTPS://x HTTP/1.1\r\n" H E, METHOD_GET, "/", "", "x", 1, true, 0, 1},
	{"GET hTTp://x?q/r HTTP/1.1\r\n" H E, METHOD_GET, "/", "q/r", "x", 1, true, 0, 1},
	{"GET http://x/?q HTTP/1.0\r\n" E, METHOD_GET, "/", "q", "x", 0, false, 0, 0},
	{"GET http://[::1]:8/a HTTP/1.1\r\n" H E, METHOD_GET, "/a", "", "[::1]:8", 1, true, 0, 1},
	{"GET /http://x/ HTTP/1.1\r\n" H E, METHOD_GET, "/http://x/", "", "h", 1, true, 0, 1},
	{L "hOST:  a.b:80  \r\n" E, METHOD_GET, "/", "", "a.b:80", 1, true, 0, 1},
	{L "Host:\r\n" E, METHOD_GET, "/", "", "", 1, true, 0, 1},
	{"GET / HTTP/1.0\r\n" E, METHOD_GET, "/", "", "", 0, false, 0, 0},
	{"GET / HTTP/1.0\r\n" H E, METHOD_GET, "/", "", "h", 0, false, 0, 1},
	{"GET / HTTP/1.2\r\n" H E, METHOD_GET, "/", "", "h", 1, true, 0, 1},
	{L H "Content-Length: 42\r\n" E, METHOD_GET, "/", "", "h", 1, true, 42, 2},
	{L H "Content-Length: 007\r\n" E, METHOD_GET, "/", "", "h", 1, true, 7, 2},
	{L H "Content-Length: 9223372036854775807\r\n" E, METHOD_GET, "/", "", "h", 1, true,
	 INT64_MAX, 2},
	{L H "Connection: close\r\n" E, METHOD_GET, "/", "", "h", 1, false, 0, 2},
	{L H "CONNECTION: CLOSE\r\n" E, METHOD_GET, "/", "", "h", 1, false, 0, 2},
	{L H "Connection: upgrade , close\r\n" E, METHOD_GET, "/", "", "h", 1, false, 0, 2},
	{L H "Connection: ,,close,,\r\n" E, METHOD_GET, "/", "", "h", 1, false, 0, 2},
	{L H "Connection: keep-alive, close\r\n" E, METHOD_GET, "/", "", "h", 1, false, 0, 2},
	{L H "Connection: a\r\nConnection: close\r\n" E, METHOD_GET, "/", "", "h", 1, false, 0, 3},
	{L H "Connection: closed\r\n" E, METHOD_GET, "/", "", "h", 1, true, 0, 2},
	{L H "Connection: not-close\r\n" E, METHOD_GET, "/", "", "h", 1, true, 0, 2},
	{L H "Connection:\r\n" E, METHOD_GET, "/", "", "h", 1, true, 0, 2},
	{L H "Connection: keep-alive\r\n" E, METHOD_GET, "/", "", "h", 1, true, 0, 2},
	{L H "Xonnection: close\r\n" E, METHOD_GET, "/", "", "h", 1, true, 0, 2},
	{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n" E, METHOD_GET, "/", "", "", 0, true, 0, 1},
	{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n" E, METHOD_GET, "/", "", "", 0, true, 0, 1},
	{"GET / HTTP/1.0\r\nConnection: x,keep-alive\r\n" E, METHOD_GET, "/", "", "", 0, true, 0,
	 1},
	{"GET / HTTP/1.0\r\nConnection: close,keep-alive\r\n" E, METHOD_GET, "/", "", "", 0, false,
	 0, 1},
	{"GET / HTTP/1.0\r\nKeep-Alive: 5\r\n" E, METHOD_GET, "/", "", "", 0, false, 0, 1},
};

static bool equal(struct slice slice, const char *text)
{
	return slice.length == strlen(text) && memcmp(slice.at, text, slice.length) == 0;
}

START_TEST(test_contents)
{
	size_t i;

	for (i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		size_t length = strlen(contents[i].head);
		char *head = copy(contents[i].head, length);

		memset(&request, 0x5a, sizeof(request));
		ck_assert_uint_eq(request_head_length(head, length, 0), length);
		ck_assert_msg(request_parse(&request, head, length) == 0, "%s", contents[i].head);
		check_request(head, length);
#define SAME(condition) ck_assert_msg(condition, "%zu: %s: %s", i, #condition, contents[i].head)
		SAME(request.method == contents[i].method);
		SAME(equal(request.path, contents[i].path));
		SAME(equal(request.query, contents[i].query));
		SAME(equal(request.host, contents[i].host));
		SAME(request.minor == contents[i].minor);
		SAME(request.keep_alive == contents[i].keep_alive);
		SAME(request.content_length == contents[i].content_length);
		SAME(request.header_count == contents[i].header_count);
#undef SAME
		free(head);
	}
}
END_TEST

/* The framing of the body, and whether the client waits for 100 Continue. */
static const struct {
	const char *head;
	bool chunked;
	enum request_expect expect;
} bodies[] = {
	{L H E, false, EXPECT_NOTHING},
	{L H "Content-Length: 5\r\n" E, false, EXPECT_NOTHING},
	{L H "Transfer-Encoding: CHUNKED\r\n" E, true, EXPECT_NOTHING},
	{L H "Expect: 100-continue\r\n" E, false, EXPECT_CONTINUE},
	{L H "EXPECT:  100-Continue \r\nTransfer-Encoding: chunked\r\n" E, true, EXPECT_CONTINUE},
	{L H "Expect: 100-continue\r\nExpect: 100-continue\r\n" E, false, EXPECT_CONTINUE},
	{L H "Expect:\r\n" E, false, EXPECT_NOTHING},
	{L H "Expect: 100-continu\r\n" E, false, EXPECT_OTHER},
	{L H "Expect: 100-continue, x\r\n" E, false, EXPECT_OTHER},
	{L H "Expect: 200-ok\r\n" E, false, EXPECT_OTHER},
	{L H "Expect: x\r\nExpect: 100-continue\r\n" E, false, EXPECT_OTHER},
	{L H "Expect: 100-continue\r\nExpect: x\r\n" E, false, EXPECT_OTHER},
	{"GET / HTTP/1.0\r\nExpect: 100-continue\r\n" E, false, EXPECT_NOTHING},
	{"GET / HTTP/1.0\r\nExpect: x\r\n" E, false, EXPECT_NOTHING},
};

START_TEST(test_bodies)
{
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		int got = parse(bodies[i].head, strlen(bodies[i].head));

		ck_assert_msg(got == 0, "%s: %d", bodies[i].head, got);
		ck_assert_msg(request.chunked == bodies[i].chunked, "%s", bodies[i].head);
		ck_assert_msg(request.expect == bodies[i].expect, "%s: %d", bodies[i].head,
			      request.expect);
	}
}
END_TEST

START_TEST(test_find)
{
	static const char head[] = L H "A: 1\r\nAB:\r\na: 2\r\nX-Long-Name: \t a b\t \r\n" E;

	ck_assert_int_eq(request_parse(&request, head, sizeof(head) - 1), 0);
	ck_assert(equal(request.method_name, "GET"));
	ck_assert(equal(request.target, "/"));
	ck_assert(equal(*request_find(&request, "host"), "h"));
	ck_assert(equal(*request_find(&request, "a"), "1"));
	ck_assert(equal(*request_find(&request, "ab"), ""));
	ck_assert(equal(*request_find(&request, "x-LONG-name"), "a b"));
	ck_assert_ptr_eq(request_find(&request, "A"), &request.headers[1].value);
	ck_assert_ptr_null(request_find(&request, "b"));
	ck_assert_ptr_null(request_find(&request, ""));
	ck_assert_ptr_null(request_find(&request, "x-long-nam"));
	ck_assert_ptr_null(request_find(&request, "x-long-names"));
}
END_TEST

/* The limits themselves are accepted, one more is not. */
START_TEST(test_limits)
{
	static char head[REQUEST_HEAD_MAX * 2];
	size_t at;
	int extra, i;

	for (extra = 0; extra <= 1; extra++) {
		at = (size_t)sprintf(head, L H);
		for (i = 1; i < REQUEST_HEADERS_MAX + extra; i++)
			at += (size_t)sprintf(head + at, "N%d: v\r\n", i);
		at += (size_t)sprintf(head + at, E);
		ck_assert_int_eq(parse(head, at), extra ? -431 : 0);

		at = (size_t)sprintf(head, "GET ");
		memset(head + at, '/', REQUEST_TARGET_MAX + 1);
		at += (size_t)(REQUEST_TARGET_MAX + extra);
		at += (size_t)sprintf(head + at, " HTTP/1.1\r\n" H E);
		ck_assert_int_eq(parse(head, at), extra ? -414 : 0);
	}
}
END_TEST

/* Each byte in a method, target, name and value, at several distances from the end. */
START_TEST(test_bytes)
{
	static const char token_marks[] = "!#$%&'*+-.^_`|~";
	int byte, i;

	for (byte = 0; byte < 256; byte++) {
		bool alnum = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
			     (byte >= 'a' && byte <= 'z');
		bool token = alnum || (byte && strchr(token_marks, byte));
		bool target = byte > 0x20 && byte < 0x7f && byte != '#';
		bool value = byte == '\t' || (byte >= 0x20 && byte != 0x7f);
		bool host = alnum || (byte && strchr("-._~", byte));
		char head[128];
		size_t length;
		int got;

#define SEND(format, ...)                                                                          \
	(length = (size_t)sprintf(head, format, __VA_ARGS__), got = parse(head, length))
		SEND("GE%cT / HTTP/1.1\r\n" H E, byte);
		/* A blank ends the method early, the target is "T" then. */
		ck_assert_msg(got == (token ? 0 : -400), "method %#x: %d", byte, got);
		SEND("GET /a%cb HTTP/1.1\r\n" H E, byte);
		ck_assert_msg(got == (target ? 0 : -400), "target %#x: %d", byte, got);
		SEND(L H "N%cm: v\r\n" E, byte);
		ck_assert_msg(got == (token || byte == ':' ? 0 : -400), "name %#x: %d", byte, got);
		SEND(L "Host: a%cb\r\n" E, byte);
		ck_assert_msg(got == (host ? 0 : -400), "host %#x: %d", byte, got);
		for (i = 0; i < 20; i++) {
			SEND(L H "N: %.*s%cvvvvvvvv\r\n" E, i, "vvvvvvvvvvvvvvvvvvvv", byte);
			ck_assert_msg(got == (value ? 0 : -400), "value %#x: %d", byte, got);
		}
#undef SEND
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_contents);
	tcase_add_test(tcase, test_bodies);
	tcase_add_test(tcase, test_find);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_bytes);
}

RUN_SUITE("request-contents", fill)
