/* SPDX-License-Identifier: MIT */
/*
 * test-head.c - unit tests of head.c: heads as programs print them, heads that are wrong, and
 * heads that come byte by byte.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "head.h"
#include "suite.h"

#define TYPE "Content-Type: text/plain"

/* A copy of its exact length, so that memory checkers see a read past it. */
static unsigned char *copy(const char *text, size_t length)
{
	return memcpy(must_alloc(length), text, length);
}

static const char *parse(struct fcgi_head *head, const char *text, size_t length)
{
	unsigned char *data = copy(text, length);
	const char *wrong = fcgi_head_parse(head, data, length);

	free(data);
	return wrong;
}

static size_t end_of(const char *text, size_t length, size_t seen)
{
	unsigned char *data = copy(text, length);
	size_t end = fcgi_head_end(data, length, seen);

	free(data);
	return end;
}

static const struct {
	const char *text;
	int status;
	const char *lines;
	bool has_length;
	uint64_t length;
} good[] = {
	{TYPE "\r\n\r\n", 200, TYPE "\r\n", false, 0},
	{TYPE "\n\n", 200, TYPE "\r\n", false, 0},
	{TYPE "\nX: 1\r\n\n", 200, TYPE "\r\nX: 1\r\n", false, 0},
	{"Status: 304\r\n\r\n", 304, "", false, 0},
	{"status:404 Not Found\n" TYPE "\n\n", 404, TYPE "\r\n", false, 0},
	{TYPE "\nStatus: 599\tX \n\n", 599, TYPE "\r\n", false, 0},
	{"HTTP/1.1 201 Created\r\n" TYPE "\r\n\r\n", 201, TYPE "\r\n", false, 0},
	{"Location: /a\n\n", 302, "Location: /a\r\n", false, 0},
	{"Location: /a\nStatus: 200\n\n", 200, "Location: /a\r\n", false, 0},
	{"Content-Length: 17\n\n", 200, "Content-Length: 17\r\n", true, 17},
	{"CONTENT-LENGTH:0 \n\n", 200, "CONTENT-LENGTH:0 \r\n", true, 0},
	{"Statuses: 1\n\n", 200, "Statuses: 1\r\n", false, 0},
	{"X:\n\n", 200, "X:\r\n", false, 0},
};

START_TEST(test_good)
{
	size_t length = strlen(good[_i].text);
	struct fcgi_head head;

	ck_assert_uint_eq(end_of(good[_i].text, length, 0), length);
	ck_assert_ptr_null(parse(&head, good[_i].text, length));
	ck_assert_int_eq(head.status, good[_i].status);
	ck_assert_uint_eq(head.lines_size, strlen(good[_i].lines));
	ck_assert_int_eq(memcmp(head.lines, good[_i].lines, head.lines_size), 0);
	ck_assert_int_eq(head.has_length, good[_i].has_length);
	ck_assert_uint_eq(head.length, good[_i].length);
	free(head.lines);
}
END_TEST

static const char *const bad[] = {
	"\r\n",
	"\n",
	"no colon\n\n",
	": no name\n\n",
	"X: 1\n continued\n\n",
	"Status: 200\nStatus: 200\n\n",
	"Status: 100\n\n",
	"Status: 600\n\n",
	"Status: 2000\n\n",
	"Status: OK\n\n",
	"Status:\n\n",
	"Status: 20\n\n",
	"HTTP/1.1 200\nStatus: 200\n\n",
	"HTTP/1.1 abc\nX: 1\n\n",
	"Content-Length: 1\nContent-Length: 1\n\n",
	"Content-Length: -1\n\n",
	"Content-Length:\n\n",
	"Content-Length: 99999999999999999999\n\n",
};

START_TEST(test_bad)
{
	size_t length = strlen(bad[_i]);
	struct fcgi_head head;

	ck_assert_uint_eq(end_of(bad[_i], length, 0), length);
	ck_assert_ptr_nonnull(parse(&head, bad[_i], length));
	ck_assert_ptr_null(head.lines);
}
END_TEST

/* However its bytes come, the end is found where it is, and what follows is none of it. */
START_TEST(test_byte_by_byte)
{
	static const char text[] = "A: 1\r\nB: 2\n\r\nbody\n\n";
	size_t head = (size_t)(strstr(text, "body") - text), seen = 0;

	for (size_t length = 1; length < sizeof(text); length++) {
		ck_assert_uint_eq(end_of(text, length, seen), length < head ? 0 : head);
		if (length < head)
			seen = length;
	}
}
END_TEST

START_TEST(test_noise)
{
	static const char alphabet[] = "\r\n\n: 0Aa\t:STatus";
	uint64_t state = 47;

	for (unsigned i = 0; i < scaled(100000); i++) {
		struct fcgi_head head;
		char noise[64];
		size_t end;

		for (size_t at = 0; at < sizeof(noise); at++)
			noise[at] = alphabet[random_next(&state) % (sizeof(alphabet) - 1)];
		end = end_of(noise, sizeof(noise), 0);
		expect(end <= sizeof(noise));
		if (!end)
			continue;
		expect(noise[end - 1] == '\n');
		if (parse(&head, noise, end))
			continue;
		expect(head.status >= 200 && head.status <= 599);
		free(head.lines);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_good, 0, sizeof(good) / sizeof(good[0]));
	tcase_add_loop_test(tcase, test_bad, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tcase, test_byte_by_byte);
	tcase_add_test(tcase, test_noise);
}

RUN_SUITE("fcgi-head", fill)
