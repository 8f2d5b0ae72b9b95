/* SPDX-License-Identifier: MIT */
/*
 * test-cgihead-library.c - the library's NC_response_headers_parse() and _check() give the verdicts
 * of this server: on heads of programs those of cgihead.c, on lines of workers those of
 * http/response.c.  Good, bad and mutated texts, put together at random.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/slice.h"
#include "http/fields.h"
#include "http/response.h"
#include "program/cgihead.h"

#include "suite.h"

#define TEXT_MAX 512u

static const char *const pieces[] = {
	"Status: 404 Not Found",
	"Status: 200",
	"Status: 600",
	"status:  303\t",
	"HTTP/1.1 200 OK",
	"HTTP/1.0 500",
	"HTTP/1.1  404",
	"Content-Type: text/html; charset=utf-8",
	"Content-Length: 5",
	"Content-Length: 99999999999999999999",
	"Location: /here#there",
	"Location: http://other/",
	"Location: a b",
	"X-Accel-Redirect: /file",
	"X-Sendfile: file",
	"X-NABC-Cache-Id: 18446744073709551615",
	"X-NABC-Cache-Id: 18446744073709551614",
	"X-NABC-Offset: 9223372036854775807",
	"X-NABC-Length: 9223372036854775808",
	"X-NABC-Max-Age: 60",
	"X-NABC-Tag: a, b",
	"X-NABC-Purge: a",
	"X-Other:\t \x80\xff \"quoted\\",
	"Connection: close, X-Other, \"a,b\\\",c\", d",
	"connection: 1,2,3,4,5,6,7,8,9,10,11,12,13",
	"Date: Thu, 01 Jan 1970 00:00:00 GMT",
	"Set-Cookie: a=b",
	"no colon",
	" X-Folded: line",
	": no name",
	"",
};
static const char mutations[] = "\r\n\n\t :,\"\\\0\x7f/\x80"
				"0195aZ-";
static const char *const ends[] = {"\r\n", "\r\n", "\n", "\r\n", "\n", "\r", "\n\r\n", ""};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static size_t put(char *text, size_t length, const char *piece)
{
	memcpy(text + length, piece, strlen(piece));
	return length + strlen(piece);
}

/* Up to seven lines, of which most are good; one text in two is mutated. */
static size_t make(char *text, uint64_t *state)
{
	unsigned count = (unsigned)(random_next(state) % 8);
	bool plain = random_next(state) % 4;
	size_t length = 0;

	for (unsigned i = 0; i < count; i++) {
		length = put(text, length, pieces[random_next(state) % COUNT(pieces)]);
		length = put(text, length, ends[random_next(state) % (plain ? 5 : COUNT(ends))]);
	}
	for (unsigned left = (unsigned)(random_next(state) % 4); length && left > 1; left--)
		text[random_next(state) % length] =
			mutations[random_next(state) % (sizeof(mutations) - 1)];
	return length;
}

static char *copy_of(const char *text, size_t length)
{
	char *copy = malloc(length + !length);

	expect(copy);
	memcpy(copy, text, length);
	return copy;
}

/* Returns true if both accept the lines of a worker. */
static bool compare_lines(const char *text, size_t length)
{
	char *copy = copy_of(text, length), out[2 * TEXT_MAX];
	struct response_facts facts;
	bool sent = response_filter_headers((struct slice){copy, length}, out, sizeof(out),
					    &facts) >= 0;
	size_t wrong = SIZE_MAX;
	int got = NC_response_headers_check(copy, length, &wrong);

	expect((got == 0) == sent);
	expect(got == 0 || errno == EBADMSG);
	/* Up to the wrong line, the lines are good. */
	expect(got == 0 || wrong < length);
	expect(got == 0 ||
	       response_filter_headers((struct slice){copy, wrong}, out, sizeof(out), &facts) >= 0);
	free(copy);
	return sent;
}

static void compare_parts(const struct NC_response *response, const struct cgihead *head)
{
	char lines[TEXT_MAX];
	size_t length = field_filter(head->lines, FIELD_BIT(FIELD_STATUS), false, lines);

	expect(response->status == head->status);
	expect(response->headers_length == length);
	expect(memcmp(response->headers, lines, length) == 0);
}

/* Returns true if both accept the head. */
static bool compare_heads(const char *text, size_t length)
{
	char *copy = copy_of(text, length), *other = copy_of(text, length);
	struct NC_response response = NC_RESPONSE_INIT();
	size_t whole = cgihead_length(copy, length, 0);
	ssize_t got = NC_response_headers_parse(&response, other, length);
	struct cgihead head;
	bool good = whole && !cgihead_parse(&head, (struct slice){copy, whole});

	expect(got == (good ? (ssize_t)whole : -1));
	if (good)
		compare_parts(&response, &head);
	else
		expect(errno == (whole ? EBADMSG : EAGAIN));
	/* A worker may send what a program may. */
	expect(!good || compare_lines(response.headers, response.headers_length));
	free(other);
	free(copy);
	return good;
}

START_TEST(test_heads)
{
	unsigned good = 0, rounds = scaled(100000);
	uint64_t state = 47;
	char text[TEXT_MAX];

	for (unsigned i = 0; i < rounds; i++) {
		size_t length = make(text, &state);

		if (random_next(&state) % 8)
			length = put(text, length, "\r\n");
		good += compare_heads(text, length);
	}
	ck_assert_uint_gt(good, rounds / 50);
	ck_assert_uint_lt(good, rounds / 2);
}
END_TEST

START_TEST(test_lines)
{
	unsigned good = 0, rounds = scaled(100000);
	uint64_t state = 48;
	char text[TEXT_MAX];

	for (unsigned i = 0; i < rounds; i++)
		good += compare_lines(text, make(text, &state));
	ck_assert_uint_gt(good, rounds / 50);
	ck_assert_uint_lt(good, rounds / 2);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_heads);
	tcase_add_test(tcase, test_lines);
}

RUN_SUITE("cgihead-library", fill)
