/* SPDX-License-Identifier: MIT */
/*
 * test-stream-head.c - unit tests of heads of HTTP/2: what requests become, as HTTP/1.1 would write
 * them, and what is refused.  Single-threaded; input is a heap copy of its exact size, so that memory checkers detect
 * a read beyond.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "h2/stream-head.h"
#include "http/request-list.h"
#include "http/request.h"

#include "suite.h"

#define BASE ":method", "GET", ":path", "/a?b", ":scheme", "https", ":authority", "host"
#define FIRST "GET /a?b HTTP/1.1\r\nHost: host\r\n"

static struct stream_head head;

static struct slice copy(const char *text)
{
	struct slice made = {must_alloc(strlen(text)), strlen(text)};

	memcpy((char *)(uintptr_t)made.at, text, made.length);
	return made;
}

/* Adds names and values, until NULL. */
static void add(const char *const *fields)
{
	for (; *fields; fields += 2) {
		struct slice name = copy(fields[0]), value = copy(fields[1]);

		stream_head_add(&head, name, value);
		free((char *)(uintptr_t)name.at);
		free((char *)(uintptr_t)value.at);
	}
}

static void begin(size_t most)
{
	head = (struct stream_head){.most = most};
}

#define FIELDS(...) add((const char *const[]){__VA_ARGS__, NULL})

static size_t print(char *at, const char *format, struct slice name, struct slice value)
{
	return (size_t)sprintf(at, format, (int)name.length, name.at, (int)value.length, value.at);
}

static void check(bool body, const char *text)
{
	struct slice got = stream_head_end(&head, body), name, value;
	const char *format = "%.*s %.*s HTTP/1.1\r\n";
	char written[512];
	size_t used = 0;

	ck_assert_int_eq(head.error, 0);
	while (request_list_next(&got, &name, &value)) {
		used += print(written + used, format, name, value);
		format = "%.*s: %.*s\r\n";
	}
	strcpy(written + used, "\r\n");
	ck_assert_str_eq(written, text);
	ck_assert_uint_eq(got.length, 0);
	stream_head_free(&head);
}

static void refused(int error)
{
	struct slice got = stream_head_end(&head, false);
	struct request request;

	if (!head.error) {
		head.error = request_parse_list(&request, got.at, got.length);
		head.wrong = request.wrong;
	}
	ck_assert_int_eq(head.error, error);
	ck_assert_ptr_nonnull(head.wrong);
	stream_head_free(&head);
}

START_TEST(test_texts)
{
	begin(1000);
	FIELDS(BASE);
	check(false, FIRST "\r\n");
	begin(1000);
	FIELDS(":authority", "host", ":path", "/a?b", ":method", "GET", "x", "y", "z", "");
	check(false, FIRST "x: y\r\nz: \r\n\r\n");
	begin(1000);
	FIELDS(":method", "GET", ":path", "/", "host", "name");
	check(false, "GET / HTTP/1.1\r\nhost: name\r\n\r\n");
	begin(1000);
	FIELDS(":method", "CONNECT", ":authority", "a:1");
	check(false, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n");
}
END_TEST

/* A head after another one, in the same memory. */
START_TEST(test_again)
{
	begin(1000);
	FIELDS(BASE, "cookie", "a", "content-length", "3", "x", "y");
	(void)stream_head_end(&head, true);
	stream_head_reset(&head, 1000);
	FIELDS(BASE);
	check(true, FIRST "transfer-encoding: chunked\r\n\r\n");
	begin(10);
	FIELDS(BASE);
	ck_assert_int_eq(head.error, -431);
	stream_head_reset(&head, 1000);
	FIELDS(BASE);
	check(false, FIRST "\r\n");
}
END_TEST

START_TEST(test_body)
{
	begin(1000);
	FIELDS(BASE);
	check(true, FIRST "transfer-encoding: chunked\r\n\r\n");
	begin(1000);
	FIELDS(BASE, "content-length", "5");
	check(true, FIRST "content-length: 5\r\n\r\n");
}
END_TEST

START_TEST(test_cookies)
{
	begin(1000);
	FIELDS(BASE, "cookie", "a=1", "x", "y", "cookie", "b=2", "cookie", "c=3");
	check(false, FIRST "x: y\r\ncookie: a=1; b=2; c=3\r\n\r\n");
}
END_TEST

START_TEST(test_host_again)
{
	begin(1000);
	FIELDS(BASE, "host", "HOST");
	check(false, FIRST "\r\n");
	begin(1000);
	FIELDS(BASE, "host", "other");
	refused(-400);
	begin(1000);
	FIELDS(BASE, "host", "hos");
	refused(-400);
}
END_TEST

START_TEST(test_refused)
{
	static const char *const values[] = {"a b", "a\rb", "a\nb", "a\tb", "a\x7f"};

	for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++) {
		begin(1000);
		FIELDS(":method", values[i], ":path", "/");
		refused(-400);
		begin(1000);
		FIELDS(":method", "GET", ":path", values[i]);
		refused(-400);
		begin(1000);
		FIELDS(":method", "GET", ":path", "/", ":authority", values[i]);
		refused(-400);
	}
	begin(1000);
	FIELDS(":method", "GET", ":path", "http://other/", ":authority", "host");
	refused(-400);
	begin(1000);
	FIELDS(":method", "GET", ":path", "/", ":scheme", "foo");
	refused(-400);
	begin(1000);
	FIELDS(BASE, "x", "a\r\nb: c");
	refused(-400);
	begin(1000);
	FIELDS(BASE, "x:y", "a");
	refused(-400);
	begin(1000);
	FIELDS(BASE, "x", "y", ":path", "/");
	refused(-400);
}
END_TEST

START_TEST(test_limits)
{
	static char path[REQUEST_TARGET_MAX + 2];

	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	begin(16384);
	FIELDS(":method", "GET", ":path", path);
	refused(-414);
	begin(100);
	for (unsigned i = 0; i < 1000; i++)
		FIELDS("name", "value");
	ck_assert_uint_le(head.used, 200);
	refused(-431);
	begin(100);
	FIELDS(BASE);
	for (unsigned i = 0; i < 1000; i++)
		FIELDS("cookie", "value");
	ck_assert_uint_le(head.cookies_used, 200);
	refused(-431);
}
END_TEST

/* All fields count, also those behind an error, and those without a byte. */
START_TEST(test_endless)
{
	const size_t most = 1000, limit = 4 * most + STREAM_HEAD_MORE;
	size_t fields = 0;

	begin(most);
	FIELDS(BASE, "a b", "c\n");
	for (; !stream_head_is_endless(&head); fields++) {
		ck_assert_uint_le(fields * 32, limit);
		FIELDS("", "");
	}
	ck_assert_uint_gt((fields + 10) * 32, limit);
	stream_head_reset(&head, most);
	ck_assert(!stream_head_is_endless(&head));
	stream_head_free(&head);
}
END_TEST

/* The memory of a long head is not kept, that of others is; both can be followed by another head. */
START_TEST(test_shrink)
{
	static char value[8001];

	memset(value, 'v', sizeof(value) - 1);
	begin(16384);
	FIELDS(BASE);
	(void)stream_head_end(&head, false);
	stream_head_shrink(&head);
	ck_assert_ptr_nonnull(head.memory);
	stream_head_reset(&head, 16384);
	FIELDS(BASE, _i ? "cookie" : "name", value);
	ck_assert_uint_gt(stream_head_end(&head, false).length, sizeof(value) - 1);
	stream_head_shrink(&head);
	ck_assert_ptr_null(head.memory);
	ck_assert_ptr_null(head.cookies);
	stream_head_reset(&head, 16384);
	FIELDS(BASE);
	ck_assert_uint_gt(stream_head_end(&head, false).length, 0);
	stream_head_free(&head);
}
END_TEST

/* Nothing, or nothing but an error. */
START_TEST(test_empty)
{
	begin(1000);
	(void)stream_head_end(&head, false);
	stream_head_free(&head);
	begin(0);
	FIELDS(BASE);
	refused(-431);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_texts);
	tcase_add_test(tcase, test_again);
	tcase_add_test(tcase, test_body);
	tcase_add_test(tcase, test_cookies);
	tcase_add_test(tcase, test_host_again);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_endless);
	tcase_add_loop_test(tcase, test_shrink, 0, 2);
	tcase_add_test(tcase, test_empty);
}

RUN_SUITE("stream-head", fill)
