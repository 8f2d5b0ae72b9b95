/* SPDX-License-Identifier: MIT */
/*
 * test-response-head.c - unit tests of the heads that programs write and of workers' header lines,
 * through the public calls.  Texts are heap copies of their exact size, so that memory checkers
 * detect a read beyond.  test-cgihead-library.c compares them with what SWEET does.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "nabc-fixture.h"
#include "suite.h"

#define BODY "\nX: body\r\n\r\n" /* text after a head is not a header line */

static char *copy_of(const char *text, size_t length)
{
	char *copy = malloc(length + !length);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, text, length);
	return copy;
}

static const struct {
	const char *text;
	int status;	     /* 0: the head is wrong */
	const char *headers; /* without the status */
} heads[] = {
	{"A: b\n\n", 200, "A: b\n"},
	{"A: b\r\nC:\td \r\n\r\n", 200, "A: b\r\nC:\td \r\n"},
	{"Status: 404 Not Found\r\nContent-Type: a/b\r\n\r\n", 404, "Content-Type: a/b\r\n"},
	{"A: b\nsTATUS:599\nC: d\n\n", 599, "A: b\nC: d\n"},
	{"Content-Type: a/b\r\nStatus: 204\t\r\n\r\n", 204, "Content-Type: a/b\r\n"},
	{"Status: 200\n\n", 200, ""},
	{"HTTP/1.1 404 Not Found\r\nA: b\r\n\r\n", 404, "A: b\r\n"},
	{"HTTP/1.0 500\n\n", 500, ""},
	/* RFC 3875, sections 6.2.2 to 6.2.4. */
	{"Location: /local\n\n", 302, "Location: /local\n"},
	{"Location: http://x/\nA: b\n\n", 302, "Location: http://x/\nA: b\n"},
	{"Status: 201\nLocation: /new\n\n", 201, "Location: /new\n"},
	{"Location: /new\nStatus: 303 See\n\n", 303, "Location: /new\n"},
	{"X-NABC-Cache-Id: 7\nX-NABC-Offset: 0\n\n", 200, "X-NABC-Cache-Id: 7\nX-NABC-Offset: 0\n"},
	{"Content-Length: 9223372036854775807\n\n", 200, "Content-Length: 9223372036854775807\n"},
	{"\n", 0, NULL},
	{"\r\n", 0, NULL},
	{"no colon\n\n", 0, NULL},
	{" Folded: line\n\n", 0, NULL},
	{"A: b\n c\n\n", 0, NULL},
	{": b\n\n", 0, NULL},
	{"A b: c\n\n", 0, NULL},
	{"A: b\rc\n\n", 0, NULL},
	{"A: b\x7f\n\n", 0, NULL},
	{"Status: 199\n\n", 0, NULL},
	{"Status: 600\n\n", 0, NULL},
	{"Status: 20\n\n", 0, NULL},
	{"Status: 2000\n\n", 0, NULL},
	{"Status: OK\n\n", 0, NULL},
	{"Status:\n\n", 0, NULL},
	{"Status: 200\nStatus: 200\n\n", 0, NULL},
	{"HTTP/1.1 200\nStatus: 200\n\n", 0, NULL},
	{"HTTP/1.1 200\nHTTP/1.1 200\n\n", 0, NULL},
	{"HTTP/2 200\n\n", 0, NULL},
	{"HTTP/1.x 200\n\n", 0, NULL},
	{"HTTP/1.\n\n", 0, NULL},
	{"HTTP/1.1\n\n", 0, NULL},
	{"HTTP/1.1 \n\n", 0, NULL},
	{"Location:\n\n", 0, NULL},
	{"Location: /a b\n\n", 0, NULL},
	{"Location: /a\nLocation: /a\n\n", 0, NULL},
	{"Content-Type: a/b\nContent-Type: a/b\n\n", 0, NULL},
	{"Content-Length: 5\nContent-Length: 5\n\n", 0, NULL},
	{"Content-Length: -5\n\n", 0, NULL},
	{"Content-Length: 9223372036854775808\n\n", 0, NULL},
	{"X-Accel-Redirect: file\n\n", 0, NULL},
	{"X-Sendfile: \n\n", 0, NULL},
	{"X-NABC-Cache-Id: 0\n\n", 0, NULL},
	{"X-NABC-Offset: 1\n\n", 0, NULL},
	{"X-NABC-Length: 1\n\n", 0, NULL},
	{"X-NABC-Max-Age: soon\n\n", 0, NULL},
	{"X-NABC-Tag: a\nX-NABC-Tag: b\n\n", 0, NULL},
	{"Connection: 1,2,3,4,5,6,7,8\nConnection: 9,10,11,12,13,14,15,16,17\n\n", 0, NULL},
};

static void check_parts(const struct NC_response *response, int status, const char *headers)
{
	ck_assert_int_eq(response->status, status);
	ck_assert_uint_eq(response->headers_length, strlen(headers));
	/* Those of none may be NULL. */
	ck_assert(!*headers || !memcmp(response->headers, headers, strlen(headers)));
	ck_assert_uint_eq(response->flags, NC_RESPONSE_KEEP);
	ck_assert_uint_eq(response->body.id, 5);
}

START_TEST(test_heads)
{
	const size_t length = strlen(heads[_i].text), whole = length + strlen(BODY);
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 7, .flags = NC_RESPONSE_KEEP, .body = {.id = 5});
	char text[256], *copy;

	snprintf(text, sizeof(text), "%s%s", heads[_i].text, BODY);
	for (size_t some = 0; some < length; some++) {
		copy = copy_of(text, some);
		FAILS(NC_response_headers_parse(&response, copy, some), EAGAIN);
		free(copy);
	}
	copy = copy_of(text, whole);
	if (heads[_i].status) {
		ck_assert_int_eq(NC_response_headers_parse(&response, copy, whole),
				 (ssize_t)length);
		check_parts(&response, heads[_i].status, heads[_i].headers);
		/* What a program may say, a worker may. */
		ck_assert_int_eq(
			NC_response_headers_check(response.headers, response.headers_length, NULL),
			0);
		ck_assert_mem_eq(copy + length, BODY, strlen(BODY));
	} else {
		FAILS(NC_response_headers_parse(&response, copy, whole), EBADMSG);
		check_parts(&response, 7, "");
		ck_assert_mem_eq(copy, text, whole);
	}
	free(copy);
}
END_TEST

static const struct {
	const char *lines;
	long wrong; /* the offset of the first wrong line; -1: none */
} lines[] = {
	{"", -1},
	{"A: b\r\n", -1},
	{"A: b\nC:d\nC:d\n", -1},
	{"A: \t\xff\n", -1},
	/* A worker's status is no line, and these are not sent. */
	{"Status: unknown\nStatus: 1\nX-Accel-Redirect: x\nX-NABC-Offset: 5\n", -1},
	{"Location: a b\nLocation:\n", -1},
	{"Content-Length: 5\n", -1},
	{"Connection: 1,2,3,4,5,6,7,8,,\"9,10,11\\\",12\",13,14,15,16\nConnection: a,b,c\n", -1},
	{"Connection: 1,2,3,4,5,6,7,8\nConnection: 9,10,11,12,13,14,15,16\nConnection: a\n", 63},
	{"A: b\nContent-Length: 5\nC: d\ncontent-length: 5\nbad", 28},
	{"A: b\nContent-Length: five\n", 5},
	{"A: b", 0},
	{"A: b\r", 0},
	{"A: b\r\nC: d", 6},
	{"A: b\r\n\r\n", 6},
	{"\n", 0},
	{"A: b\r\n B: c\r\n", 6},
	{"A : b\r\n", 0},
	{"A: b\rC: d\r\n", 0},
	{"A: b\r\r\n", 0},
};

START_TEST(test_lines)
{
	const size_t length = strlen(lines[_i].lines);
	char *copy = copy_of(lines[_i].lines, length);
	size_t wrong = 12345;

	if (lines[_i].wrong < 0) {
		ck_assert_int_eq(NC_response_headers_check(copy, length, &wrong), 0);
		ck_assert_uint_eq(wrong, 12345);
	} else {
		FAILS(NC_response_headers_check(copy, length, NULL), EBADMSG);
		FAILS(NC_response_headers_check(copy, length, &wrong), EBADMSG);
		ck_assert_int_eq((long)wrong, lines[_i].wrong);
	}
	free(copy);
}
END_TEST

/* Every byte in a name and in a value. */
START_TEST(test_bytes)
{
	for (int byte = 0; byte < 256; byte++) {
		bool token = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
			     (byte >= '0' && byte <= '9') ||
			     (byte && strchr("!#$%&'*+-.^_`|~", byte));
		char text[] = "A: b\n";

		text[3] = (char)byte;
		/* The end of a line, and then another one. */
		expect(!NC_response_headers_check(text, 5, NULL) ==
		       (byte == '\t' || byte == '\r' || (byte >= 0x20 && byte != 0x7f)));
		text[3] = 'b';
		text[0] = (char)byte;
		expect(!NC_response_headers_check(text, 5, NULL) == token);
	}
}
END_TEST

START_TEST(test_sizes)
{
	struct NC_response response = NC_RESPONSE_INIT();
	char *text = malloc(NC_BLOCK_MAX + 2);

	ck_assert_ptr_nonnull(text);
	memset(text, 'a', NC_BLOCK_MAX + 2);
	memcpy(text, "A:", 2);
	/* A head of the most bytes, cut; and one byte more. */
	memcpy(text + NC_BLOCK_MAX - 2, "\n\n", 2);
	FAILS(NC_response_headers_parse(&response, text, NC_BLOCK_MAX - 1), EAGAIN);
	ck_assert_int_eq(NC_response_headers_parse(&response, text, NC_BLOCK_MAX + 2),
			 (ssize_t)NC_BLOCK_MAX);
	memcpy(text + NC_BLOCK_MAX - 2, "a\n\n", 3);
	FAILS(NC_response_headers_parse(&response, text, NC_BLOCK_MAX), EMSGSIZE);
	FAILS(NC_response_headers_parse(&response, text, NC_BLOCK_MAX + 1), EMSGSIZE);
	ck_assert_int_eq(NC_response_headers_check(text, NC_BLOCK_MAX, NULL), 0);
	FAILS(NC_response_headers_check(text, NC_BLOCK_MAX + 1, NULL), EMSGSIZE);
	free(text);
}
END_TEST

START_TEST(test_arguments)
{
	struct NC_response response = NC_RESPONSE_INIT(.status = 7);
	char text[] = "Status: 404\n\n";

	FAILS(NC_response_headers_parse(NULL, text, 13), EINVAL);
	FAILS(NC_response_headers_parse(&response, NULL, 13), EINVAL);
	FAILS(NC_response_headers_parse(&response, NULL, 0), EAGAIN);
	response.size--;
	FAILS(NC_response_headers_parse(&response, text, 13), EINVAL);
	ck_assert_int_eq(response.status, 7);
	FAILS(NC_response_headers_check(NULL, 1, NULL), EINVAL);
	ck_assert_int_eq(NC_response_headers_check(NULL, 0, NULL), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_heads, 0, sizeof(heads) / sizeof(heads[0]));
	tcase_add_loop_test(tcase, test_lines, 0, sizeof(lines) / sizeof(lines[0]));
	tcase_add_test(tcase, test_bytes);
	tcase_add_test(tcase, test_sizes);
	tcase_add_test(tcase, test_arguments);
}

RUN_SUITE("response-head", fill)
