/* SPDX-License-Identifier: MIT */
/*
 * test-client-answer.c - unit tests of bench/load/client-answer.c: where responses
 * end, however they are divided, and invalid responses.
 */
#include <client-answer.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "suite.h"

/* What answer_feed() should return for a text; length: of the response in it, 0: all. */
struct example {
	const char *text;
	enum answer_state state;
	unsigned status;
	uint64_t body;
	bool keeps;
	size_t length;
};

static const struct example examples[] = {
	{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", ANSWER_DONE, 200, 5, true, 0},
	{"HTTP/1.1 200 OK\nContent-Length:5\n\nhello", ANSWER_DONE, 200, 5, true, 0},
	{"HTTP/1.1 200 OK\r\nCONTENT-length: \t5 \r\n\r\nhello", ANSWER_DONE, 200, 5, true, 0},
	{"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", ANSWER_DONE, 200, 0, true, 0},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP", ANSWER_DONE, 200, 2, true, 40},
	{"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx", ANSWER_DONE, 404, 1, true, 0},
	{"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", ANSWER_DONE, 304, 0, true, 0},
	{"HTTP/1.1 204 No Content\r\n\r\n", ANSWER_DONE, 204, 0, true, 0},
	{"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", ANSWER_DONE, 200, 1,
	 false, 0},
	{"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", ANSWER_DONE, 200, 1, false, 0},
	{"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\nx", ANSWER_DONE,
	 200, 1, true, 0},
	{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", ANSWER_DONE,
	 200, 1, true, 0},
	{"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
	 "1\r\n\r\n"
	 "x",
	 ANSWER_DONE, 200, 1, true, 0},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n0"
	 "\r\n\r\n",
	 ANSWER_DONE, 200, 13, true, 0},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\nTrailer: 1\r\n\r\n",
	 ANSWER_DONE, 200, 0, true, 0},
	{"HTTP/1.1 200 OK\r\n\r\nuntil the end", ANSWER_CLOSE, 200, 13, false, 0},
	{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", ANSWER_LENGTH, 200, 4, true, 0},
	{"HTTP/1.1 200 OK\r\nContent-Le", ANSWER_FIELDS, 200, 0, true, 0},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", ANSWER_CHUNK, 200, 2, true,
	 0},
	{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", ANSWER_DONE, 200,
	 3, true, 0},
};

static const char *const faults[] = {
	"hello\r\n",
	"\r\n",
	"HTTP/2.0 200 OK\r\n",
	"HTTP/1.1 20 OK\r\n",
	"HTTP/1.1 2000 OK\r\n",
	"HTTP/1.1 700 OK\r\n",
	"HTTP/1.1 101 Switching Protocols\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: \r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1111111111111111\r\n",
};

/* Feeds pieces of one size; returns how many bytes were taken. */
static size_t feed(struct answer *answer, const char *text, size_t piece)
{
	size_t length = strlen(text), at = 0;

	answer_begin(answer);
	while (at < length && answer->state < ANSWER_DONE) {
		size_t part = piece < length - at ? piece : length - at;
		size_t taken = answer_feed(answer, text + at, part);

		ck_assert_uint_le(taken, part);
		ck_assert(taken == part || answer->state >= ANSWER_DONE);
		at += taken;
	}
	return at;
}

START_TEST(test_examples)
{
	const struct example *example = &examples[_i];
	size_t length = example->length ? example->length : strlen(example->text);
	struct answer answer;

	for (size_t piece = 1; piece <= strlen(example->text); piece++) {
		ck_assert_uint_eq(feed(&answer, example->text, piece), length);
		ck_assert_int_eq(answer.state, example->state);
		ck_assert_uint_eq(answer.status, example->status);
		ck_assert_uint_eq(answer.body, example->body);
		ck_assert_int_eq(answer_keeps(&answer), example->keeps);
		ck_assert(answer.begun);
	}
	ck_assert_int_eq(answer_end(&answer),
			 example->state == ANSWER_DONE || example->state == ANSWER_CLOSE);
}
END_TEST

START_TEST(test_faults)
{
	struct answer answer;

	for (size_t piece = 1; piece <= strlen(faults[_i]); piece++) {
		feed(&answer, faults[_i], piece);
		ck_assert_int_eq(answer.state, ANSWER_BAD);
		ck_assert(!answer_end(&answer));
		ck_assert_uint_eq(answer_feed(&answer, "x", 1), 0);
	}
}
END_TEST

/* Bodies that the client does not check. */
START_TEST(test_drop)
{
	struct answer answer;

	feed(&answer, "HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n", 100);
	ck_assert_uint_eq(answer_droppable(&answer), 5000000000);
	answer_drop(&answer, 4999999999);
	ck_assert_int_eq(answer.state, ANSWER_LENGTH);
	answer_drop(&answer, 1);
	ck_assert_int_eq(answer.state, ANSWER_DONE);
	ck_assert_uint_eq(answer.body, 5000000000);
	ck_assert_uint_eq(answer_droppable(&answer), 0);

	feed(&answer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n", 100);
	ck_assert_uint_eq(answer_droppable(&answer), 16);
	answer_drop(&answer, 16);
	ck_assert_int_eq(answer.state, ANSWER_BREAK);
	ck_assert_uint_eq(answer_feed(&answer, "\r\n0\r\n\r\n", 7), 7);
	ck_assert_int_eq(answer.state, ANSWER_DONE);
	ck_assert_uint_eq(answer.body, 16);

	feed(&answer, "HTTP/1.1 200 OK\r\n\r\n", 100);
	ck_assert_uint_eq(answer_droppable(&answer), UINT64_MAX);
	answer_drop(&answer, UINT64_C(1) << 40);
	ck_assert(answer_end(&answer));
	ck_assert_uint_eq(answer.body, UINT64_C(1) << 40);
}
END_TEST

/* Lines and heads without an end. */
START_TEST(test_long)
{
	static char text[ANSWER_HEAD_MAX + 64];
	struct answer answer;

	for (size_t piece = 1; piece < 5000; piece = piece * 7 + 1) {
		/* A long field is skipped. */
		int head = sprintf(text, "HTTP/1.1 200 OK\r\nX: ");

		memset(text + head, 'x', 20000);
		strcpy(text + head + 20000, "\r\nContent-Length: 1\r\n\r\ny");
		feed(&answer, text, piece);
		ck_assert_int_eq(answer.state, ANSWER_DONE);
		ck_assert_uint_eq(answer.body, 1);
		/* A relevant field whose value is too far away is an error. */
		head = sprintf(text, "HTTP/1.1 200 OK\r\nContent-Length:");
		memset(text + head, ' ', 200);
		strcpy(text + head + 200, "1\r\n\r\ny");
		feed(&answer, text, piece);
		ck_assert_int_eq(answer.state, ANSWER_BAD);
		memset(text, 'x', sizeof(text) - 1);
		memcpy(text, "HTTP/1.1 200 OK\r\n", 17);
		feed(&answer, text, piece);
		ck_assert_int_eq(answer.state, ANSWER_BAD);
	}
}
END_TEST

/* Any input ends the response or continues it, and at most the given bytes are taken. */
START_TEST(test_anything)
{
	static const char alphabet[] =
		"HTTP/1.1 200 OK\r\n\r\nContent-Length:3; 0aTransfer-Encoding: "
		"chunked\r\n\r\n";
	uint64_t state = 1;
	char text[256];

	for (unsigned i = 0; i < scaled(100000); i++) {
		size_t start = random_next(&state) % 2 ? 17 : 0, piece;
		struct answer answer;

		memcpy(text, "HTTP/1.1 200 OK\r\n", 17);
		for (size_t at = start; at < sizeof(text) - 1; at++)
			text[at] = alphabet[random_next(&state) % (sizeof(alphabet) - 1)];
		text[sizeof(text) - 1] = '\0';
		piece = random_next(&state) % 50 + 1;
		feed(&answer, text, piece);
		answer_end(&answer);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_examples, 0, sizeof(examples) / sizeof(examples[0]));
	tcase_add_loop_test(tcase, test_faults, 0, sizeof(faults) / sizeof(faults[0]));
	tcase_add_test(tcase, test_drop);
	tcase_add_test(tcase, test_long);
	tcase_add_test(tcase, test_anything);
}

RUN_SUITE("client-answer", fill)
