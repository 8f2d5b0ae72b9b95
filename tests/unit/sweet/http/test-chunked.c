/* SPDX-License-Identifier: MIT */
/*
 * test-chunked.c - unit tests of the chunked transfer coding: a table of bodies, each
 * whole, byte by byte and in every division into three pieces, and limits.
 * Single-threaded; pieces are heap copies of their exact size, so that memory checkers
 * detect a read beyond.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/slice.h"
#include "http/chunked.h"

#include "suite.h"

#define END "0\r\n\r\n"
#define REST "GET / HTTP/1.1\r\n" /* text after a body belongs to the next request */

/* clang-format off */
#define GOOD(raw, body) {raw, sizeof(raw) - 1, 0, body}
#define BAD(raw) {raw, sizeof(raw) - 1, -400, NULL}
#define OPEN(raw) {raw, sizeof(raw) - 1, 0, NULL}
/* clang-format on */

static const struct {
	const char *raw;
	size_t length;
	int status;	  /* 0: the content is the result */
	const char *body; /* NULL: the body never ends */
} cases[] = {
	GOOD(END, ""),
	GOOD("3\r\nabc\r\n" END, "abc"),
	GOOD("1\r\na\r\n1\r\nb\r\n2\r\ncd\r\n" END, "abcd"),
	GOOD("A\r\n0123456789\r\n" END, "0123456789"),
	GOOD("a\r\n0123456789\r\n" END, "0123456789"),
	GOOD("0000000000003\r\nabc\r\n" END, "abc"),
	GOOD("000000000000003\r\nabc\r\n000000000000000\r\n\r\n", "abc"),
	GOOD("2\r\n\r\n\r\n" END, "\r\n"),
	GOOD("5\r\n0\r\n\r\n\r\n" END, "0\r\n\r\n"),
	/* extensions */
	GOOD("3;a\r\nabc\r\n" END, "abc"),
	GOOD("3;a=b\r\nabc\r\n0;c=d\r\n\r\n", "abc"),
	GOOD("3;a=b;c;d=e\r\nabc\r\n" END, "abc"),
	GOOD("3 ;a\r\nabc\r\n" END, "abc"),
	GOOD("3\t ; a\t=\tb ; c = d\r\nabc\r\n" END, "abc"),
	GOOD("3;a=\"b\"\r\nabc\r\n" END, "abc"),
	GOOD("3;a=\"\"\r\nabc\r\n" END, "abc"),
	GOOD("3;a=\"b;c=d \\\" \\\\ \xe4\";e\r\nabc\r\n" END, "abc"),
	GOOD("3;a=\"b\" ;c\r\nabc\r\n" END, "abc"),
	/* trailers */
	GOOD("0\r\nA: b\r\n\r\n", ""),
	GOOD("0\r\nA:\r\nB-c: d e\tf\xe4 \r\n\r\n", ""),
	GOOD("3\r\nabc\r\n0\r\nContent-Length: 100\r\n\r\n", "abc"),
	/* sizes */
	BAD("\r\n"),
	BAD("\n"),
	BAD(";a\r\n"),
	BAD(" 3\r\nabc\r\n" END),
	BAD("\t3\r\nabc\r\n" END),
	BAD("3 \r\nabc\r\n" END),
	BAD("3\t\r\nabc\r\n" END),
	BAD("-3\r\nabc\r\n" END),
	BAD("+3\r\nabc\r\n" END),
	BAD("0x3\r\nabc\r\n" END),
	BAD("g\r\n"),
	BAD("3g\r\n"),
	BAD("3.\r\n"),
	BAD("3,\r\n"),
	BAD("3_0\r\n"),
	BAD("\"3\"\r\n"),
	BAD("3\0\r\nabc\r\n" END),
	BAD("0000000000000003\r\nabc\r\n" END),	 /* one digit above the limit */
	BAD("10000000000000003\r\nabc\r\n" END), /* 3, if 64 bits wrap */
	BAD("ffffffffffffffff\r\n"),
	/* ends of lines */
	BAD("3\nabc\r\n" END),
	BAD("3\r\r\nabc\r\n" END),
	BAD("3\rabc\r\n" END),
	BAD("3\r\nabc\n" END),
	BAD("3\r\nabc\r" END),
	BAD("3\r\nabcd\r\n" END),
	BAD("3\r\nabc" END),
	BAD("3\r\nabc\r\r\n" END),
	BAD("3\r\nabc\r\n\r\n"),
	BAD("0\n\n"),
	BAD("0\r\n\n"),
	BAD("0\r\n\rx"),
	BAD("0\r\n\r\r\n"),
	/* extensions */
	BAD("3;\r\nabc\r\n" END),
	BAD("3;;a\r\nabc\r\n" END),
	BAD("3;=b\r\nabc\r\n" END),
	BAD("3;a=\r\nabc\r\n" END),
	BAD("3;a=;b\r\nabc\r\n" END),
	BAD("3;a b\r\nabc\r\n" END),
	BAD("3;a \r\nabc\r\n" END),
	BAD("3;a=b \r\nabc\r\n" END),
	BAD("3;a=b c\r\nabc\r\n" END),
	BAD("3;a=b=c\r\nabc\r\n" END),
	BAD("3;a\nabc\r\n" END),
	BAD("3;a=b\nabc\r\n" END),
	BAD("3;a\0\r\nabc\r\n" END),
	BAD("3;a=\"b\r\nabc\r\n" END),
	BAD("3;a=\"b\n\"\r\nabc\r\n" END),
	BAD("3;a=\"b\\\r\n\"\r\nabc\r\n" END),
	BAD("3;a=\"b\"c\r\nabc\r\n" END),
	BAD("3;a=\"b\" \r\nabc\r\n" END),
	BAD("3;a=b\"c\"\r\nabc\r\n" END),
	BAD("3;\xe4\r\nabc\r\n" END),
	BAD("3 a\r\nabc\r\n" END),
	/* trailers */
	BAD("0\r\nA\r\n\r\n"),
	BAD("0\r\n: b\r\n\r\n"),
	BAD("0\r\nA : b\r\n\r\n"),
	BAD("0\r\n A: b\r\n\r\n"),
	BAD("0\r\nA: b\r\n c\r\n\r\n"),
	BAD("0\r\nA: b\n\r\n"),
	BAD("0\r\nA: b\rB: c\r\n\r\n"),
	BAD("0\r\nA: b\0\r\n\r\n"),
	BAD("0\r\nGET / HTTP/1.1\r\n\r\n"),
	/* not over yet */
	OPEN(""),
	OPEN("3"),
	OPEN("3\r"),
	OPEN("3\r\n"),
	OPEN("3\r\nabc"),
	OPEN("3\r\nabc\r\n"),
	OPEN("3\r\nabc\r\n0\r\n"),
	OPEN("0\r\nA: b\r\n"),
	OPEN("0\r\n\r"),
	OPEN("7ffffffffffffff\r\nabc"),
};

/* A body that arrives in pieces; the content decoded so far. */
struct decoding {
	struct chunked chunked;
	char body[512];
	size_t length;
	int status;
	size_t used;
};

static void feed(struct decoding *decoding, const char *data, size_t length)
{
	char *piece = must_alloc(length);
	size_t at = 0;

	memcpy(piece, data, length);
	while (at < length && !decoding->status && !chunked_is_over(&decoding->chunked)) {
		struct slice run;
		ssize_t used = chunked_decode(&decoding->chunked, piece + at, length - at, &run);

		if (used < 0) {
			decoding->status = (int)used;
			break;
		}
		expect(used > 0 && (size_t)used <= length - at);
		expect(run.length == 0 ||
		       (run.at >= piece + at && run.at + run.length <= piece + at + used));
		expect(decoding->length + run.length <= sizeof(decoding->body));
		memcpy(decoding->body + decoding->length, run.at, run.length);
		decoding->length += run.length;
		at += (size_t)used;
	}
	decoding->used += at;
	free(piece);
}

static void judge(const struct decoding *decoding, size_t i, size_t first, size_t second)
{
	const char *body = cases[i].body;

	ck_assert_msg(decoding->status == cases[i].status, "%s cut at %zu, %zu: %d", cases[i].raw,
		      first, second, decoding->status);
	if (decoding->status)
		return;
	ck_assert_msg(chunked_is_over(&decoding->chunked) == (body != NULL), "%s", cases[i].raw);
	if (!body)
		return;
	ck_assert_msg(decoding->used == cases[i].length, "%s: %zu bytes", cases[i].raw,
		      decoding->used);
	ck_assert_msg(decoding->length == strlen(body) &&
			      memcmp(decoding->body, body, decoding->length) == 0,
		      "%s cut at %zu, %zu: %.*s", cases[i].raw, first, second,
		      (int)decoding->length, decoding->body);
}

START_TEST(test_cut_anywhere)
{
	char raw[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* After its end more bytes may follow, which are not touched. */
		size_t length = cases[i].length;
		size_t whole = length + (cases[i].body ? strlen(REST) : 0);

		memcpy(raw, cases[i].raw, length);
		memcpy(raw + length, REST, whole - length);
		for (size_t first = 0; first <= whole; first++) {
			for (size_t second = first; second <= whole; second++) {
				struct decoding decoding = {.length = 0};

				chunked_init(&decoding.chunked);
				feed(&decoding, raw, first);
				feed(&decoding, raw + first, second - first);
				feed(&decoding, raw + second, whole - second);
				judge(&decoding, i, first, second);
			}
		}
	}
}
END_TEST

START_TEST(test_byte_by_byte)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct decoding decoding = {.length = 0};

		chunked_init(&decoding.chunked);
		for (size_t at = 0; at < cases[i].length; at++)
			feed(&decoding, cases[i].raw + at, 1);
		judge(&decoding, i, 1, 1);
	}
}
END_TEST

/* Returns how often text can be repeated after start until it is refused; and the status. */
static size_t repeated(const char *start, const char *text, size_t most, int *status)
{
	struct decoding decoding = {.length = 0};
	size_t count = 0;

	chunked_init(&decoding.chunked);
	feed(&decoding, start, strlen(start));
	while (count < most && !decoding.status) {
		decoding.length = 0;
		feed(&decoding, text, strlen(text));
		count += !decoding.status;
	}
	*status = decoding.status;
	return count;
}

START_TEST(test_bounds)
{
	int status;

	ck_assert_uint_eq(repeated("", "0", 100, &status), CHUNKED_DIGITS_MAX);
	ck_assert_int_eq(status, -400);
	/* The semicolon itself does not count. */
	ck_assert_uint_eq(repeated("1;", "a", 100000, &status), CHUNKED_EXTENSIONS_MAX);
	ck_assert_int_eq(status, -431);
	ck_assert_uint_eq(repeated("1;a=\"", "\\x", 100000, &status),
			  (CHUNKED_EXTENSIONS_MAX - 3) / 2);
	ck_assert_int_eq(status, -431);
	ck_assert_uint_eq(repeated("1", " ", 100000, &status), CHUNKED_EXTENSIONS_MAX + 1);
	ck_assert_int_eq(status, -431);
	/* The limit is for all chunks together: a few bytes in each add up. */
	ck_assert_uint_eq(repeated("", "1;abc\r\nx\r\n", 100000, &status),
			  CHUNKED_EXTENSIONS_MAX / 4);
	ck_assert_int_eq(status, -431);
	ck_assert_uint_eq(repeated("0\r\nA: ", "x", 100000, &status), CHUNKED_TRAILERS_MAX - 3);
	ck_assert_int_eq(status, -431);
	ck_assert_uint_eq(repeated("0\r\n", "A: b\r\n", 100000, &status), CHUNKED_TRAILERS_MAX / 6);
	ck_assert_int_eq(status, -431);
	/* The number of chunks has no limit. */
	ck_assert_uint_eq(repeated("", "1\r\nx\r\n", 100000, &status), 100000);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(test_largest)
{
	struct chunked chunked;
	struct slice run;
	char data[64];

	chunked_init(&chunked);
	ck_assert_uint_eq(chunked_due(&chunked), 0);
	ck_assert_int_eq(chunked_decode(&chunked, "fffffffffffffff\r", 16, &run), 16);
	ck_assert_uint_eq(chunked_due(&chunked), 0);
	ck_assert_int_eq(chunked_decode(&chunked, "\n", 1, &run), 1);
	ck_assert_uint_eq(chunked_due(&chunked), 0xfffffffffffffff);
	for (int i = 0; i < 100; i++) {
		memset(data, i, sizeof(data));
		ck_assert_int_eq(chunked_decode(&chunked, data, sizeof(data), &run), sizeof(data));
		ck_assert_uint_eq(run.length, sizeof(data));
	}
	ck_assert_uint_eq(chunked_due(&chunked), 0xfffffffffffffff - 6400);
}
END_TEST

/* Any input is consumed, refused or the end. */
START_TEST(test_noise)
{
	static const char alphabet[] = "0123456789abf\r\n\r\n\r\n;=\" :x\0";
	uint64_t state = 7;

	for (unsigned i = 0; i < scaled(20000); i++) {
		struct decoding decoding = {.length = 0};
		char noise[64];

		for (size_t at = 0; at < sizeof(noise); at++)
			noise[at] = alphabet[random_next(&state) % (sizeof(alphabet) - 1)];
		chunked_init(&decoding.chunked);
		feed(&decoding, noise, sizeof(noise));
		expect(decoding.status || chunked_is_over(&decoding.chunked) ||
		       decoding.used == sizeof(noise));
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_cut_anywhere);
	tcase_add_test(tcase, test_byte_by_byte);
	tcase_add_test(tcase, test_bounds);
	tcase_add_test(tcase, test_largest);
	tcase_add_test(tcase, test_noise);
}

RUN_SUITE("chunked", fill)
