/* SPDX-License-Identifier: MIT */
/*
 * test-upstream-head.c - unit tests of the heads that HTTP servers behind this one send: a table of
 * heads, and noise.  Single-threaded; heads are heap copies of their exact size, so that memory
 * checkers detect a read beyond.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "program/cgihead.h"
#include "program/upstream-head.h"

#include "suite.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define END "\r\n"

/* The content of a head, as "status|flags|length|tag|location". */
static char summary[512];

static const char *summarize(const struct upstream_head *head)
{
	const struct cgihead *fields = &head->fields;

	sprintf(summary, "%d|%s%s%s%s|%llu|%.*s", head->status, head->chunked ? "c" : "",
		head->keep_alive ? "k" : "", fields->has_length ? "n" : "",
		fields->has_type ? "t" : "", (unsigned long long)fields->length,
		(int)fields->tag.length, fields->tag.at ? fields->tag.at : "");
	return summary;
}

/* clang-format off */
#define GOOD(text, says) {text, sizeof(text) - 1, says, NULL}
#define BAD(text, wrong) {text, sizeof(text) - 1, NULL, wrong}
/* clang-format on */

static const struct {
	const char *text;
	size_t length;
	const char *says;  /* NULL: it is wrong */
	const char *wrong; /* a part of the error message */
} cases[] = {
	GOOD(OK END, "200|k|0|"),
	GOOD(OK "Content-Length: 5\r\n" END, "200|kn|5|"),
	GOOD(OK "content-length:5\r\nContent-Type: a/b\r\n" END, "200|knt|5|"),
	GOOD(OK "Transfer-Encoding: chunked\r\n" END, "200|ck|0|"),
	GOOD(OK "transfer-encoding: CHUNKED \r\n" END, "200|ck|0|"),
	GOOD("HTTP/1.1 404 \r\n" END, "404|k|0|"),
	GOOD("HTTP/1.1 404\r\n" END, "404|k|0|"),
	GOOD("HTTP/1.1 599 \xc3\xa4 b\r\n" END, "599|k|0|"),
	GOOD("HTTP/1.1 100 Continue\r\n" END, "100|k|0|"),
	GOOD("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n" END, "103|k|0|"),
	GOOD("HTTP/1.1 304 x\r\nContent-Length: 7\r\n" END, "304|kn|7|"),
	/* connections */
	GOOD("HTTP/1.0 200 OK\r\n" END, "200||0|"),
	GOOD("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n" END, "200|k|0|"),
	GOOD("HTTP/1.2 200 OK\r\n" END, "200|k|0|"),
	GOOD("HTTP/1.9 200 OK\r\nConnection: close\r\n" END, "200||0|"),
	GOOD(OK "Connection: close\r\n" END, "200||0|"),
	GOOD(OK "Connection: x, Close\r\n" END, "200||0|"),
	GOOD(OK "Connection: keep-alive\r\nConnection: close\r\n" END, "200||0|"),
	/* what only programs of gateways can say */
	GOOD(OK "Status: 404\r\nStatus: x\r\n" END, "200|k|0|"),
	GOOD(OK "Location: /a\r\nLocation: /b\r\n" END, "200|k|0|"),
	GOOD(OK "X-NABC-Cache-Id: 7\r\nX-NABC-Offset: 1\r\n" END, "200|k|0|"),
	GOOD(OK "X-NABC-Max-Age: x\r\nX-NABC-Tag: a b\r\n" END, "200|k|0|a b"),
	/* status lines */
	BAD("\r\n", "not speak HTTP"),
	BAD("<html>\r\n" END, "not speak HTTP"),
	BAD("HTTP/2.0 200 OK\r\n" END, "not speak HTTP"),
	BAD("HTTP/1.a 200 OK\r\n" END, "not speak HTTP"),
	BAD("HTTP/1.10 200 OK\r\n" END, "malformed status line"),
	BAD("http/1.1 200 OK\r\n" END, "not speak HTTP"),
	BAD("HTTP/1.1  200 OK\r\n" END, "malformed status line"),
	BAD("HTTP/1.1\t200 OK\r\n" END, "malformed status line"),
	BAD("HTTP/1.1200 OK\r\n" END, "malformed status line"),
	BAD("HTTP/1.1 20\r\n" END, "malformed status line"),
	BAD("HTTP/1.1 2000\r\n" END, "malformed status line"),
	BAD("HTTP/1.1 2x0 OK\r\n" END, "malformed status line"),
	BAD("HTTP/1.1 +20 OK\r\n" END, "malformed status line"),
	BAD("HTTP/1.1 200 OK\n" END, "malformed status line"),
	BAD("HTTP/1.1 200 O\rK\r\n" END, "control character"),
	BAD("HTTP/1.1 200 O\0K\r\n" END, "control character"),
	BAD("HTTP/1.1 099 OK\r\n" END, "not from 100"),
	BAD("HTTP/1.1 600 OK\r\n" END, "not from 100"),
	/* lines */
	BAD(OK "A: b\n" END, "without CR"),
	BAD(OK "A: b\r\n\n", "without CR"),
	BAD(OK "A: b\rC: d\r\n" END, "malformed header line"),
	BAD(OK "A: b\0\r\n" END, "malformed header line"),
	BAD(OK "A : b\r\n" END, "malformed header line"),
	BAD(OK ": b\r\n" END, "malformed header line"),
	BAD(OK "A\r\n" END, "malformed header line"),
	BAD(OK " A: b\r\n" END, "folded"),
	BAD(OK "A: b\r\n\tc\r\n" END, "folded"),
	BAD(OK "A: b\r\n", "without CR"),
	/* two ends */
	BAD(OK "Content-Length: 5\r\nContent-Length: 6\r\n" END, "two Content-Length"),
	BAD(OK "Content-Length: 5\r\nContent-Length: 5\r\n" END, "two Content-Length"),
	BAD(OK "Content-Length: 5, 5\r\n" END, "invalid Content-Length"),
	BAD(OK "Content-Length: +5\r\n" END, "invalid Content-Length"),
	BAD(OK "Content-Length: 0x5\r\n" END, "invalid Content-Length"),
	BAD(OK "Content-Length: -1\r\n" END, "invalid Content-Length"),
	BAD(OK "Content-Length:\r\n" END, "invalid Content-Length"),
	BAD(OK "Content-Length: 9223372036854775808\r\n" END, "invalid Content-Length"),
	BAD(OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" END, "both"),
	BAD(OK "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n" END, "both"),
	BAD(OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END, "two Transfer"),
	BAD(OK "Transfer-Encoding: gzip, chunked\r\n" END, "other than chunked"),
	BAD(OK "Transfer-Encoding: identity\r\n" END, "other than chunked"),
	BAD(OK "Transfer-Encoding: chunked;a=b\r\n" END, "other than chunked"),
	BAD(OK "Transfer-Encoding: \vchunked\r\n" END, "malformed header line"),
	BAD(OK "Transfer-Encoding:\r\n" END, "other than chunked"),
	BAD("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n" END, "HTTP/1.0"),
	BAD("HTTP/1.1 100 x\r\nTransfer-Encoding: chunked\r\n" END, "interim"),
	BAD("HTTP/1.1 100 x\r\nContent-Length: 1\r\n" END, "interim"),
	BAD(OK "Content-Type: a/b\r\nContent-Type: a/c\r\n" END, "two Content-Type"),
#undef GOOD
#undef BAD
};

static const char *parse(struct upstream_head *head, const char *text, size_t length, char **copy)
{
	*copy = must_alloc(length);
	memcpy(*copy, text, length);
	return upstream_head_parse(head, (struct slice){*copy, length});
}

START_TEST(test_heads)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct upstream_head head;
		char *copy;
		const char *wrong = parse(&head, cases[i].text, cases[i].length, &copy);

		if (cases[i].says) {
			ck_assert_msg(!wrong, "%s: %s", cases[i].text, wrong);
			ck_assert_str_eq(summarize(&head), cases[i].says);
		} else {
			ck_assert_msg(wrong && strstr(wrong, cases[i].wrong), "%s: %s",
				      cases[i].text, wrong ? wrong : "accepted");
		}
		free(copy);
	}
}
END_TEST

START_TEST(test_phrases)
{
	static const struct {
		const char *line, *phrase;
	} phrases[] = {
		{"HTTP/1.1 200 OK", "OK"},
		{"HTTP/1.1 404 Not here, \tnot \xe4", "Not here, \tnot \xe4"},
		{"HTTP/1.1 404  two blanks ", "two blanks"},
		{"HTTP/1.1 404 ", ""},
		{"HTTP/1.1 404", ""},
	};

	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++) {
		struct upstream_head head;
		char text[128], *copy;
		size_t length = (size_t)sprintf(text, "%s\r\nA: b\r\n" END, phrases[i].line);

		ck_assert_ptr_null(parse(&head, text, length, &copy));
		ck_assert_uint_eq(head.fields.phrase.length, strlen(phrases[i].phrase));
		ck_assert(slice_same(head.fields.phrase,
				     (struct slice){phrases[i].phrase, strlen(phrases[i].phrase)}));
		free(copy);
	}
}
END_TEST

START_TEST(test_many_fields)
{
	char text[4096];

	for (unsigned count = 254; count < 259; count++) {
		struct upstream_head head;
		size_t length = (size_t)sprintf(text, OK);
		const char *wrong;
		char *copy;

		for (unsigned i = 0; i < count; i++)
			length += (size_t)sprintf(text + length, "A: b\r\n");
		length += (size_t)sprintf(text + length, END);
		wrong = parse(&head, text, length, &copy);
		ck_assert_int_eq(!wrong, count <= UPSTREAM_FIELDS_MAX);
		free(copy);
	}
}
END_TEST

START_TEST(test_begin)
{
	static const char text[] = "HTTP/1.1 200";

	for (size_t length = 0; length < sizeof(text); length++)
		ck_assert_ptr_null(upstream_head_check((struct slice){text, length}));
	ck_assert_ptr_nonnull(upstream_head_check(SLICE("H3")));
	ck_assert_ptr_nonnull(upstream_head_check(SLICE("HTTP/1.x")));
	ck_assert_ptr_nonnull(upstream_head_check(SLICE("\r\n")));
}
END_TEST

/* For any input, a head parses within its bounds or is refused. */
START_TEST(test_noise)
{
	static const char alphabet[] = "Content-Length:/ 12 ,;\r\n\r\n\r\n:\0\x7f\xe4";
	uint64_t state = 5;

	for (unsigned i = 0; i < scaled(40000); i++) {
		struct upstream_head head;
		char noise[96], *copy;
		size_t length = sizeof(OK) - 1;

		memcpy(noise, OK, length);
		for (size_t at = length; at < sizeof(noise); at++)
			noise[at] = alphabet[random_next(&state) % (sizeof(alphabet) - 1)];
		length += random_next(&state) % (sizeof(noise) - length);
		if (!parse(&head, noise, length, &copy))
			expect(!(head.chunked && head.fields.has_length));
		free(copy);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_heads);
	tcase_add_test(tcase, test_phrases);
	tcase_add_test(tcase, test_many_fields);
	tcase_add_test(tcase, test_begin);
	tcase_add_test(tcase, test_noise);
}

RUN_SUITE("upstream-head", fill)
