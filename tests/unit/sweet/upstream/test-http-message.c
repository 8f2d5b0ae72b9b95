/* SPDX-License-Identifier: MIT */
/*
 * test-http-message.c - unit tests of http-message.c: how a request frames its body.
 * Single-threaded.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"
#include "upstream/http-message.h"
#include "upstream/upstream-link.h"

#include "suite.h"

#define POST "POST / HTTP/1.1\r\n"
#define UNKNOWN HTTP_MESSAGE_UNKNOWN

/* clang-format off */
#define BODY(known, part, rest)                                                                    \
	{.any = true, .length = known, .first = {.id = 7, .length = part}, .more = rest}
/* clang-format on */

static const struct {
	const char *head;
	struct http_message_body body;
	const char *sent; /* NULL: refused */
	bool chunks;
} cases[] = {
	{"GET / HTTP/1.1\r\n", {.length = 0}, "GET / HTTP/1.1\r\n\r\n", false},
	{POST, {.length = 0}, POST "Content-Length: 0\r\n\r\n", false},
	{"PUT / HTTP/1.1\r\n", {.length = 0}, "PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", false},
	{POST, BODY(0, 0, false), POST "Content-Length: 0\r\n\r\n", false},
	{POST, BODY(5, 5, false), POST "Content-Length: 5\r\n\r\n", false},
	{POST, BODY(INT64_MAX, 5, true), POST "Content-Length: 9223372036854775807\r\n\r\n", false},
	{POST, BODY(UNKNOWN, 26, true), POST "Transfer-Encoding: chunked\r\n\r\n1a\r\n", true},
	{POST, BODY(UNKNOWN, 70000, true), POST "Transfer-Encoding: chunked\r\n\r\nfff8\r\n", true},
	/* bodies that do not have the length */
	{POST, BODY(5, 4, false), NULL, false},
	{POST, BODY(5, 6, false), NULL, false},
	{POST, BODY(5, 6, true), NULL, false},
	{POST, BODY(5, 0, true), NULL, false},
	{POST, BODY(UNKNOWN, 0, true), NULL, false},
#undef BODY
};

START_TEST(test_framing)
{
	struct upstream_message message = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slice head = {cases[i].head, strlen(cases[i].head)};
		int error = http_message_make(&message, head, &cases[i].body);

		ck_assert_int_eq(error, cases[i].sent ? 0 : -EINVAL);
		if (error)
			continue;
		ck_assert_uint_eq(message.length, strlen(cases[i].sent));
		ck_assert_mem_eq(message.bytes, cases[i].sent, message.length);
		ck_assert_int_eq(message.framing->header != NULL, cases[i].chunks);
		ck_assert_int_eq(message.more, cases[i].body.more);
	}
	upstream_message_free(&message);
}
END_TEST

START_TEST(test_chunks)
{
	struct upstream_message message = {0};
	const struct http_message_body body = {
		.any = true, .length = UNKNOWN, .first = {.id = 7, .length = 1}, .more = true};
	char out[UPSTREAM_FRAME_MAX];

	ck_assert_int_eq(http_message_make(&message, SLICE(POST), &body), 0);
	ck_assert_uint_eq(message.framing->header(&message, out, 65528), 8);
	ck_assert_mem_eq(out, "\r\nfff8\r\n", 8);
	ck_assert_uint_eq(message.framing->header(&message, out, 0), 7);
	ck_assert_mem_eq(out, "\r\n0\r\n\r\n", 7);
	upstream_message_free(&message);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_framing);
	tcase_add_test(tcase, test_chunks);
}

RUN_SUITE("http-message", fill)
