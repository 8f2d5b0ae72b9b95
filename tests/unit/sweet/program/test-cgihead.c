/* SPDX-License-Identifier: MIT */
/*
 * test-cgihead.c - unit tests of the heads that CGI and FastCGI programs write: a
 * table of heads, the end of each found for every division into three pieces, and
 * hostile ones.  Single-threaded; heads are heap copies of their exact size, so that
 * memory checkers detect a read beyond.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/cachecontrol.h"
#include "program/cgihead.h"
#include "http/response.h"

#include "suite.h"

#define BODY "\nbody: \r\n\r\n" /* text after a head is not a header line */

/* The content of a head, as "status|location|flags|length|unit|max-age,tag|control|vary". */
static char summary[1024];

static const char *summarize(const struct cgihead *head)
{
	char *at = summary;

	at += sprintf(at, "%d|%.*s|", head->status, (int)head->location.length, head->location.at);
	at += sprintf(at, "%s%s%s%s|", head->local_redirect ? "l" : "", head->has_type ? "t" : "",
		      head->has_length ? "n" : "", head->sets_cookie ? "c" : "");
	at += sprintf(at, "%llu|", (unsigned long long)head->length);
	if (head->unit)
		at += sprintf(at, "%zu+%llu", head->unit, (unsigned long long)head->unit_offset);
	if (head->has_unit_length)
		at += sprintf(at, ",%llu", (unsigned long long)head->unit_length);
	at += sprintf(at, "|");
	if (head->max_age != CACHECONTROL_UNSAID)
		at += sprintf(at, "%u", head->max_age);
	at += sprintf(at, ",%.*s|%u|", (int)head->tag.length, head->tag.at,
		      cachecontrol_lifetime(&head->control));
	if (head->vary.anything)
		at += sprintf(at, "*");
	for (size_t i = 0; i < head->vary.length; i += strlen(head->vary.names + i) + 1)
		at += sprintf(at, "%s,", head->vary.names + i);
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
	GOOD("Content-Type: text/html\r\n\r\n", "200||t|0||,|0|"),
	GOOD("Content-Type: text/html\n\n", "200||t|0||,|0|"),
	GOOD("content-type:\n\r\n", "200||t|0||,|0|"),
	GOOD("X-Powered-By: PHP\r\nContent-Type: a/b\n\r\n", "200||t|0||,|0|"),
	GOOD("X: y\n\n", "200|||0||,|0|"),
	/* status */
	GOOD("Status: 404 Not Found\n\n", "404|||0||,|0|"),
	GOOD("Status: 404\n\n", "404|||0||,|0|"),
	GOOD("Status:\t204\tNothing \n\n", "204|||0||,|0|"),
	GOOD("status: 599 \xc3\xa4\n\n", "599|||0||,|0|"),
	GOOD("Status: 200\n\n", "200|||0||,|0|"),
	/* a status line */
	GOOD("HTTP/1.1 404 Not Found\r\nContent-Type: a/b\r\n\r\n", "404||t|0||,|0|"),
	GOOD("HTTP/1.0 201\nX: y\n\n", "201|||0||,|0|"),
	GOOD("HTTP/1.1 200 OK\n\n", "200|||0||,|0|"),
	GOOD("HTTP/1.1 302 \nLocation: /a\n\n", "302|/a||0||,|0|"),
	BAD("HTTP/1.1 200 OK\nStatus: 200\n\n", "two Status"),
	BAD("HTTP/1.1 99 OK\n\n", "invalid Status"),
	BAD("HTTP/1.1 20\n\n", "invalid Status"),
	BAD("HTTP/1.1\n\n", "malformed status line"),
	BAD("HTTP/1.1 \n\n", "invalid Status"),
	BAD("HTTP/1.", "malformed"),
	BAD("HTTP/1.1 200 a\rb\n\n", "malformed status line"),
	BAD("HTTP/2.0 200 OK\n\n", "malformed"),
	BAD("HTTP/1.a 200 OK\n\n", "malformed status line"),
	BAD("HTTP/2 200\n\n", "malformed header line"),
	BAD("X: y\nHTTP/1.1 200 OK\n\n", "malformed header line"),
	BAD("Status: 200\nStatus: 200\n\n", "two Status"),
	BAD("Status:\n\n", "invalid Status"),
	BAD("Status: 20\n\n", "invalid Status"),
	BAD("Status: 0200\n\n", "invalid Status"),
	BAD("Status: 2000\n\n", "invalid Status"),
	BAD("Status: 200OK\n\n", "invalid Status"),
	BAD("Status: OK 200\n\n", "invalid Status"),
	BAD("Status: -20\n\n", "invalid Status"),
	BAD("Status: +20\n\n", "invalid Status"),
	BAD("Status: 2 0\n\n", "invalid Status"),
	BAD("Status: HTTP/1.1 200 OK\n\n", "invalid Status"),
	BAD("Status: 100\n\n", "invalid Status"),
	BAD("Status: 101 Switching Protocols\n\n", "invalid Status"),
	BAD("Status: 199\n\n", "invalid Status"),
	BAD("Status: 600\n\n", "invalid Status"),
	BAD("Status: 999\n\n", "invalid Status"),
	/* location */
	GOOD("Location: /there?x=/y\n\n", "302|/there?x=/y|l|0||,|0|"),
	GOOD("Location: /\r\n\r\n", "302|/|l|0||,|0|"),
	GOOD("Location: /a\nContent-Length: 0\nDate: x\nX-NABC-Foo: y\n\n", "302|/a|ln|0||,|0|"),
	GOOD("Location: http://h/\n\n", "302|http://h/||0||,|0|"),
	GOOD("Location: //h/x\n\n", "302|//h/x||0||,|0|"),
	GOOD("Location: /x#there\n\n", "302|/x#there||0||,|0|"),
	GOOD("Location: there\n\n", "302|there||0||,|0|"),
	GOOD("Location: ?x\n\n", "302|?x||0||,|0|"),
	GOOD("Status: 302 Found\nLocation: /x\n\n", "302|/x||0||,|0|"),
	GOOD("Location: /x\nStatus: 301\n\n", "301|/x||0||,|0|"),
	GOOD("Location: /x\nStatus: 201\nContent-Type: a/b\n\n", "201|/x|t|0||,|0|"),
	GOOD("Location: /x\nSet-Cookie: a=b\n\n", "302|/x|c|0||,|0|"),
	GOOD("Content-Type: a/b\nLocation: /x\n\n", "302|/x|t|0||,|0|"),
	GOOD("Location: /x\nX: y\n\n", "302|/x||0||,|0|"),
	GOOD("Location: /x\nContent-Length: 3\n\n", "302|/x|n|3||,|0|"),
	GOOD("Location: /x\nX-NABC-Cache-Id: 3\n\n", "302|/x||0|3+0|,|0|"),
	GOOD("Location: /\xc3\xa4\n\n", "302|/\xc3\xa4|l|0||,|0|"),
	BAD("Location: /x\nLocation: /x\n\n", "two Location"),
	BAD("Location:\n\n", "invalid Location"),
	BAD("Location: \t \n\n", "invalid Location"),
	BAD("Location: /a b\n\n", "invalid Location"),
	BAD("Location: /a\tb\n\n", "invalid Location"),
	BAD("Location: /x\rSet-Cookie: a=b\n\n", "malformed"),
	BAD("Location: /\x7f\n\n", "malformed"),
	/* length and type */
	GOOD("Content-Length: 12\n\n", "200||n|12||,|0|"),
	GOOD("content-length:0012 \n\n", "200||n|12||,|0|"),
	GOOD("Content-Length: 9223372036854775807\n\n", "200||n|9223372036854775807||,|0|"),
	BAD("Content-Length: 9223372036854775808\n\n", "invalid Content-Length"),
	BAD("Content-Length: 99999999999999999999999\n\n", "invalid Content-Length"),
	BAD("Content-Length:\n\n", "invalid Content-Length"),
	BAD("Content-Length: -1\n\n", "invalid Content-Length"),
	BAD("Content-Length: 1,1\n\n", "invalid Content-Length"),
	BAD("Content-Length: 0x1\n\n", "invalid Content-Length"),
	BAD("Content-Length: 1\nContent-Length: 1\n\n", "two Content-Length"),
	BAD("Content-Type: a/b\nContent-Type: a/b\n\n", "two Content-Type"),
	/* fields for one hop are ignored */
	GOOD("Transfer-Encoding: chunked\nConnection: close\nServer: x\n\n", "200|||0||,|0|"),
	/* units */
	GOOD("X-NABC-Cache-Id: 17\n\n", "200|||0|17+0|,|0|"),
	GOOD("x-nabc-cache-id: 017\nX-NABC-OFFSET: 5\nX-nabc-Length: 0\n\n", "200|||0|17+5,0|,|0|"),
	GOOD("X-NABC-Length: 9\nX-NABC-Cache-Id: 18446744073709551614\n\n",
	     "200|||0|18446744073709551614+0,9|,|0|"),
	GOOD("X-NABC-Something: 17\nX-NABC-: 3\nX-NABC-Cache-Ids: x\n\n", "200|||0||,|0|"),
	BAD("X-NABC-Cache-Id: 0\n\n", "invalid X-NABC-Cache-Id"),
	BAD("X-NABC-Cache-Id:\n\n", "invalid X-NABC-Cache-Id"),
	BAD("X-NABC-Cache-Id: -1\n\n", "invalid X-NABC-Cache-Id"),
	BAD("X-NABC-Cache-Id: 1 2\n\n", "invalid X-NABC-Cache-Id"),
	BAD("X-NABC-Cache-Id: 18446744073709551615\n\n", "invalid X-NABC-Cache-Id"),
	BAD("X-NABC-Cache-Id: 18446744073709551617\n\n", "invalid X-NABC-Cache-Id"),
	BAD("X-NABC-Cache-Id: 1\nX-NABC-Cache-Id: 2\n\n", "two X-NABC-Cache-Id"),
	BAD("X-NABC-Offset: 0\n\n", "without"),
	BAD("X-NABC-Length: 0\n\n", "without"),
	BAD("X-NABC-Cache-Id: 1\nX-NABC-Offset: 9223372036854775808\n\n", "invalid X-NABC-Offset"),
	BAD("X-NABC-Cache-Id: 1\nX-NABC-Offset: x\n\n", "invalid X-NABC-Offset"),
	BAD("X-NABC-Cache-Id: 1\nX-NABC-Offset: 0\nX-NABC-Offset: 0\n\n", "two X-NABC-Offset"),
	BAD("X-NABC-Cache-Id: 1\nX-NABC-Length: 9223372036854775808\n\n", "invalid X-NABC-Length"),
	BAD("X-NABC-Cache-Id: 1\nX-NABC-Length: -1\n\n", "invalid X-NABC-Length"),
	BAD("X-NABC-Cache-Id: 1\nX-NABC-Length: 1\nX-NABC-Length: 1\n\n", "two X-NABC-Length"),
	/* for a cache of responses */
	GOOD("X-NABC-Max-Age: 60\nX-NABC-Tag: a, b \n\n", "200|||0||60,a, b|0|"),
	GOOD("X-NABC-Max-Age: 0\n\n", "200|||0||0,|0|"),
	GOOD("X-NABC-Max-Age: 99999999999999999999999\n\n", "200|||0||2147483648,|0|"),
	GOOD("X-NABC-Max-Age: 2147483649\n\n", "200|||0||2147483648,|0|"),
	BAD("X-NABC-Max-Age: x\n\n", "invalid X-NABC-Max-Age"),
	BAD("X-NABC-Max-Age: 1\nX-NABC-Max-Age: 1\n\n", "two X-NABC-Max-Age"),
	BAD("X-NABC-Tag: a\nX-NABC-Tag: a\n\n", "two X-NABC-Tag"),
	GOOD("Cache-Control: max-age=60\nCache-Control: s-maxage=9\n\n", "200|||0||,|9|"),
	GOOD("Cache-Control: max-age=60\nCache-Control: private\n\n", "200|||0||,|0|"),
	GOOD("Vary: Accept\nVary: Cookie, accept\n\n", "200|||0||,|0|accept,cookie,"),
	GOOD("Vary: Accept\nVary: *\n\n", "200|||0||,|0|*accept,"),
	GOOD("Set-Cookie: a=b\nSet-Cookie: c=d\n\n", "200||c|0||,|0|"),
	/* malformed: test-response.c has all forms of lines */
	BAD("\n", "no header line"),
	BAD("\r\n", "no header line"),
	BAD("A\n\n", "malformed"),
	BAD(": b\n\n", "malformed"),
	BAD("A : b\n\n", "malformed"),
	BAD(" A: b\n\n", "malformed"),
	BAD("A: b\n c\n\n", "malformed"),
	BAD("A: b\rC: d\n\n", "malformed"),
	BAD("A: b\0\n\n", "malformed"),
	BAD("A: b\n\rC: d\n\n", "malformed"),
	BAD("<html>: x\n\n", "malformed"),
	BAD("Content-Type: a/b\n<html>\n\n", "malformed"),
};

static const char *parse(struct cgihead *head, const char *text, size_t length)
{
	char *bytes = must_alloc(length);
	const char *wrong;
	struct response_facts facts;
	char out[512];

	memcpy(bytes, text, length);
	wrong = cgihead_parse(head, (struct slice){bytes, length});
	if (!wrong) {
		/* Slices point into it. */
		summarize(head);
		expect(head->lines.at >= bytes &&
		       head->lines.at + head->lines.length <= bytes + length);
		/* An accepted head can be sent. */
		expect(response_filter_headers(head->lines, out, sizeof(out), &facts) >= 0);
		expect(facts.has_type == head->has_type);
	}
	free(bytes);
	return wrong;
}

START_TEST(test_heads)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cgihead head;
		const char *wrong = parse(&head, cases[i].text, cases[i].length);

		if (!cases[i].says) {
			ck_assert_msg(wrong && strstr(wrong, cases[i].wrong), "%s: %s",
				      cases[i].text, wrong ? wrong : "good");
			continue;
		}
		ck_assert_msg(!wrong, "%s: %s", cases[i].text, wrong);
		ck_assert_msg(strcmp(summary, cases[i].says) == 0, "%s: %s", cases[i].text,
			      summary);
	}
}
END_TEST

/* The lines alone, without the final empty line, mean the same. */
START_TEST(test_lines)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t length = cases[i].length - 1;
		struct cgihead head;

		length -= length && cases[i].text[length - 1] == '\r';
		/* A first line as HTTP has it is not one of the lines. */
		if (!cases[i].says || strncmp(cases[i].text, "HTTP/", 5) == 0)
			continue;
		ck_assert_ptr_null(parse(&head, cases[i].text, length));
		ck_assert_str_eq(summary, cases[i].says);
		ck_assert_uint_eq(head.lines.length, length);
	}
}
END_TEST

START_TEST(test_phrases)
{
	static const struct {
		const char *text, *phrase;
	} phrases[] = {
		{"Status: 404 Not here\n\n", "Not here"},
		{"Status: 404\t \xe4 \r\n\n", "\xe4"},
		{"Status: 404\n\n", ""},
		{"A: b\n\n", ""},
		{"HTTP/1.1 201 Made it\n\n", "Made it"},
	};

	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++) {
		struct cgihead head;

		ck_assert_ptr_null(cgihead_parse(
			&head, (struct slice){phrases[i].text, strlen(phrases[i].text)}));
		ck_assert_uint_eq(head.phrase.length, strlen(phrases[i].phrase));
		if (head.phrase.length)
			ck_assert_mem_eq(head.phrase.at, phrases[i].phrase, head.phrase.length);
	}
}
END_TEST

/* An incomplete line is not a line. */
START_TEST(test_half)
{
	static const char text[] = "Content-Type: text/html\r\nX: y\r\n";

	for (size_t length = 0; length < sizeof(text) - 1; length++) {
		struct cgihead head;
		bool whole = length && text[length - 1] == '\n';

		ck_assert_int_eq(!parse(&head, text, length), whole);
	}
}
END_TEST

/* Returns the length of the head in data that arrives in three pieces. */
static size_t find(const char *data, size_t first, size_t second, size_t length)
{
	const size_t ends[] = {first, second, length};
	size_t seen = 0, found = 0;

	for (int i = 0; i < 3 && !found; i++) {
		char *bytes = must_alloc(ends[i]);

		memcpy(bytes, data, ends[i]);
		found = cgihead_length(bytes, ends[i], seen);
		seen = ends[i];
		free(bytes);
	}
	return found;
}

START_TEST(test_cut_anywhere)
{
	static const char *const heads[] = {"A: b\n\n",	  "A: b\r\n\r\n",     "A: b\n\r\n",
					    "A: b\r\n\n", "A: b\nC: d\r\n\n", "\n",
					    "\r\n",	  "A: b\r\r\nC\n\n",  "A: b\n\r\rC: d\n\n",
					    "\rA\r\n\r\n"};
	char data[64];

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		size_t head = strlen(heads[i]), whole = head + strlen(BODY);

		memcpy(data, heads[i], head);
		memcpy(data + head, BODY, whole - head);
		for (size_t first = 0; first <= whole; first++) {
			for (size_t second = first; second <= whole; second++)
				ck_assert_msg(find(data, first, second, whole) == head,
					      "%s cut at %zu, %zu", heads[i], first, second);
		}
		for (size_t length = 0; length < head; length++)
			ck_assert_uint_eq(cgihead_length(data, length, 0), 0);
	}
}
END_TEST

/* For any input, a head that is found parses within its bounds or is refused. */
START_TEST(test_noise)
{
	static const char alphabet[] = "Location:/Status12 ,;\"\r\n\n\n:\0\x7f\xe4";
	static const char *const names[] = {"",
					    "Status: 200\n",
					    "Location: /",
					    "Content-Length: 1",
					    "X-NABC-Cache-Id: 2",
					    "X-NABC-Tag:",
					    "Cache-Control: max-age=",
					    "Vary: "};
	uint64_t state = 5;

	for (unsigned i = 0; i < scaled(40000); i++) {
		struct cgihead head;
		char noise[96];
		size_t length;

		for (size_t at = 0; at < sizeof(noise); at++)
			noise[at] = alphabet[random_next(&state) % (sizeof(alphabet) - 1)];
		length = strlen(names[i % 8]);
		memcpy(noise, names[i % 8], length);
		length = cgihead_length(noise, sizeof(noise), 0);
		expect(length <= sizeof(noise));
		if (!length)
			continue;
		expect(length < 2 || noise[length - 1] == '\n');
		if (!parse(&head, noise, length))
			expect(head.status >= 200 && head.status <= 599);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_heads);
	tcase_add_test(tcase, test_lines);
	tcase_add_test(tcase, test_phrases);
	tcase_add_test(tcase, test_half);
	tcase_add_test(tcase, test_cut_anywhere);
	tcase_add_test(tcase, test_noise);
}

RUN_SUITE("cgihead", fill)
