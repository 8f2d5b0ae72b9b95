/* SPDX-License-Identifier: MIT */
/*
 * test-response.c - unit tests of status lines, error pages and the filter for the
 * header lines of a gateway.  Single-threaded; filter input is a heap copy of its
 * exact size, so that memory checkers detect a read beyond.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/response.h"

#include "suite.h"

#define OUT_SIZE 1024
#define GUARD 0x5a

/* clang-format off */
#define GOOD(in, out) {{in, sizeof(in) - 1}, out, false}
#define TYPED(in, out) {{in, sizeof(in) - 1}, out, true}
#define BAD(in) {{in, sizeof(in) - 1}, NULL, false}
/* clang-format on */

static const struct filter_case {
	struct slice in;
	const char *out; /* NULL: malformed */
	bool has_type;
} cases[] = {
	GOOD("", ""),
	GOOD("A: b\r\n", "A: b\r\n"),
	GOOD("A: b\n", "A: b\r\n"),
	GOOD("A: b\nC: d\r\nE: f\n", "A: b\r\nC: d\r\nE: f\r\n"),
	GOOD("A:\r\n", "A:\r\n"),
	GOOD("A:b\r\n", "A:b\r\n"),
	GOOD("A: \t b \t\r\n", "A: \t b \t\r\n"),
	GOOD("A: b:c, \"d\" <e>\r\n", "A: b:c, \"d\" <e>\r\n"),
	GOOD("A: \xc3\xa4\xff\r\n", "A: \xc3\xa4\xff\r\n"),
	GOOD("!#$%&'*+-.^_`|~09azAZ: x\r\n", "!#$%&'*+-.^_`|~09azAZ: x\r\n"),
	GOOD("Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n", "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n"),
	GOOD("Location: /x\r\n", "Location: /x\r\n"),
	TYPED("Content-Type: text/html\r\n", "Content-Type: text/html\r\n"),
	TYPED("content-TYPE:text/html\n", "content-TYPE:text/html\r\n"),
	TYPED("A: b\nContent-Type: a/b\nC: d\n", "A: b\r\nContent-Type: a/b\r\nC: d\r\n"),
	GOOD("Content-Typ: a/b\r\n", "Content-Typ: a/b\r\n"),
	GOOD("Content-Type2: a/b\r\n", "Content-Type2: a/b\r\n"),
	GOOD("X-Content-Type: a/b\r\n", "X-Content-Type: a/b\r\n"),
	/* withheld */
	GOOD("Connection: close\r\n", ""),
	GOOD("Keep-Alive: timeout=5\r\n", ""),
	GOOD("Proxy-Authenticate: x\r\n", ""),
	GOOD("Proxy-Connection: x\r\n", ""),
	GOOD("Proxy-: x\r\n", ""),
	GOOD("TE: trailers\r\n", ""),
	GOOD("Trailer: X\r\n", ""),
	GOOD("Transfer-Encoding: chunked\r\n", ""),
	GOOD("Upgrade: h2c\r\n", ""),
	GOOD("Content-Length: 5\r\n", ""),
	GOOD("Date: now\r\n", ""),
	GOOD("Server: mine\r\n", ""),
	GOOD("Status: 200 OK\r\n", ""),
	GOOD("Surrogate-Key: a b\r\ncache-tag: c\r\n", ""),
	GOOD("X-NABC-Id: 5\r\n", ""),
	GOOD("x-nabc-anything:5\n", ""),
	GOOD("cOnTeNt-LeNgTh: 5\r\n", ""),
	GOOD("TRANSFER-ENCODING:chunked\n", ""),
	GOOD("status: 404\n", ""),
	GOOD("A: 1\r\nContent-Length: 5\r\nB: 2\r\n", "A: 1\r\nB: 2\r\n"),
	GOOD("Connection: x\nUpgrade: y\nDate: z\n", ""),
	/* similar, but not withheld */
	GOOD("Proxy: x\r\n", "Proxy: x\r\n"),
	GOOD("X-NABC: x\r\n", "X-NABC: x\r\n"),
	GOOD("Date2: x\r\n", "Date2: x\r\n"),
	GOOD("T: x\r\n", "T: x\r\n"),
	GOOD("Expires: x\r\n", "Expires: x\r\n"),
	/* malformed */
	BAD("A: b"),
	BAD("A: b\r"),
	BAD("A"),
	BAD("A\r\n"),
	BAD("A:"),
	BAD("\r\n"),
	BAD("\n"),
	BAD(":\r\n"),
	BAD(": b\r\n"),
	BAD("A : b\r\n"),
	BAD("A\t: b\r\n"),
	BAD(" A: b\r\n"),
	BAD("A b: c\r\n"),
	BAD("A: b\r\n c\r\n"),
	BAD("A: b\r\n\tc\r\n"),
	BAD("A: b\r\n\r\n"),
	BAD("A: b\r\n\r\nC: d\r\n"),
	BAD("A: b\n\n"),
	BAD("A: b\rC: d\r\n"),
	BAD("A: b\rxC: d\r\n"),
	BAD("A: b\x01"
	    "C: d\r\n"),
	BAD("A: b\0C: d\r\n"),
	BAD("A: b\r\r\n"),
	BAD("A: b\0c\r\n"),
	BAD("A\0: b\r\n"),
	BAD("A: b\x01\r\n"),
	BAD("A: \x1b[0m\r\n"),
	BAD("A: b\x7f\r\n"),
	BAD("A: b\x0b\r\n"),
	BAD("\xc3\xa4: b\r\n"),
	BAD("A(: b\r\n"),
	BAD("A/B: c\r\n"),
	BAD("A@: c\r\n"),
	BAD("\"A\": c\r\n"),
	BAD("HTTP/1.1 200 OK\r\n"),
	BAD("<html>: x\r\n"),
	BAD("A: b\r\nC"),
	BAD("A: b\r\nC: d"),
	BAD("Connection: close"),
	BAD("Connection : close\r\n"),
	BAD("Date: a\0b\r\n"),
	BAD("Status: 200\rX: y\r\n"),
#undef GOOD
#undef TYPED
#undef BAD
};

/* ck_assert() reports even success to the parent process: too slow for loops. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg("%s", #condition);                                            \
	} while (0)

static long filter(struct slice in, char *out, size_t out_size, struct response_facts *facts)
{
	char *bytes = malloc(in.length + !in.length);
	long got;

	REQUIRE(bytes);
	memcpy(bytes, in.at, in.length);
	got = response_filter_headers((struct slice){bytes, in.length}, out, out_size, facts);
	free(bytes);
	return got;
}

START_TEST(test_filter)
{
	char out[OUT_SIZE];
	struct response_facts facts;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct filter_case *c = &cases[i];
		long got;

		memset(&facts, c->has_type ? 0 : 0xff, sizeof(facts));
		got = filter(c->in, out, sizeof(out), &facts);
		if (!c->out) {
			ck_assert_msg(got == -1, "%zu: %s: %ld", i, c->in.at, got);
			continue;
		}
		ck_assert_msg(got == (long)strlen(c->out), "%zu: %s: %ld", i, c->in.at, got);
		ck_assert_msg(memcmp(out, c->out, (size_t)got) == 0, "%zu: %s", i, c->in.at);
		ck_assert_msg(facts.has_type == c->has_type, "%zu: %s", i, c->in.at);
	}
}
END_TEST

/* Fields that Connection names are for one hop only, at any place. */
START_TEST(test_filter_connection)
{
	static const struct {
		const char *in, *out; /* NULL: malformed */
	} hops[] = {
		{"Connection: X-A, close\nX-A: b\nX-B: c\n", "X-B: c\r\n"},
		{"X-A: b\nx-a: c\nX-AB: d\nCONNECTION:x-a\n", "X-AB: d\r\n"},
		{"Connection: X-A\nX-A: 1\nX-B: 2\nX-C: 3\nConnection: ,,X-C\n", "X-B: 2\r\n"},
		{"Connection: Content-Type\nContent-Type: a/b\n", ""},
		{"Connection: \nX-A: b\n", "X-A: b\r\n"},
		{"Connection: X-A\nX-A: b\x01\n", NULL},
		{"Connection: a,b,c,d,e,f,g,h\nConnection: i,j,k,l,m,n,o,p\np: 1\nq: 2\n",
		 "q: 2\r\n"},
		{"Connection: a,b,c,d,e,f,g,h\nConnection: i,j,k,l,m,n,o,p,q\n", NULL},
	};
	struct response_facts facts;
	char out[OUT_SIZE];

	for (size_t i = 0; i < sizeof(hops) / sizeof(hops[0]); i++) {
		const char *in = hops[i].in, *want = hops[i].out;
		long got = filter((struct slice){in, strlen(in)}, out, sizeof(out), &facts);

		ck_assert_msg(got == (want ? (long)strlen(want) : -1), "%s: %ld", in, got);
		ck_assert_msg(!want || memcmp(out, want, (size_t)got) == 0, "%s", in);
		ck_assert(!facts.has_type);
	}
	/* Removed lines need no memory. */
	ck_assert_int_eq(filter(SLICE("X-A: long\nConnection: X-A\nB: c\n"), out, 6, &facts), 6);
}
END_TEST

START_TEST(test_filter_date)
{
	static const char in[] = "A: b\nDate:  x y \n", twice[] = "Date: x\nA: b\ndate: z\n";
	struct response_facts facts;
	char out[OUT_SIZE];

	ck_assert_int_eq(response_filter_headers(SLICE("A: b\n"), out, sizeof(out), &facts), 6);
	ck_assert_uint_eq(facts.dates, 0);
	ck_assert_int_eq(response_filter_headers(SLICE(in), out, sizeof(out), &facts), 6);
	ck_assert(facts.dates == 1 && slice_is(facts.date, "x y"));
	ck_assert_int_eq(response_filter_headers(SLICE(twice), out, sizeof(out), &facts), 6);
	ck_assert_uint_eq(facts.dates, 2);
}
END_TEST

/* The length is not sent, but two readers must not read two. */
START_TEST(test_filter_length)
{
	static const struct {
		const char *in;
		long length; /* -1: refused; -2: none */
	} lengths[] = {
		{"A: b\n", -2},
		{"Content-Length: 5\n", 5},
		{"A: b\ncontent-length:\t0 \n", 0},
		{"Content-Length: 9223372036854775807\n", INT64_MAX},
		{"Content-Length: 9223372036854775808\n", -1},
		{"Content-Length: 5\nContent-Length: 5\n", -1},
		{"Content-Length: 5, 5\n", -1},
		{"Content-Length:\n", -1},
		/* A hop's own length is one as well. */
		{"Connection: Content-Length\nContent-Length: 5\n", 5},
		{"Connection: Content-Length\nContent-Length: -5\n", -1},
	};
	struct response_facts facts;
	char out[OUT_SIZE];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const char *in = lengths[i].in;
		long got = filter((struct slice){in, strlen(in)}, out, sizeof(out), &facts);

		ck_assert_msg((got >= 0) == (lengths[i].length != -1), "%s: %ld", in, got);
		ck_assert_msg(got < 0 || facts.has_length == (lengths[i].length >= 0), "%s", in);
		ck_assert_msg(lengths[i].length < 0 || facts.length == (uint64_t)lengths[i].length,
			      "%s", in);
	}
}
END_TEST

/* Each control character, in the name and in the value. */
START_TEST(test_filter_controls)
{
	char out[OUT_SIZE];
	struct response_facts facts;
	int byte;

	for (byte = 0; byte < 256; byte++) {
		char in[] = "Abc: def\r\n";
		bool plain = byte == '\t' || (byte >= 0x20 && byte != 0x7f);
		long got;

		in[6] = (char)byte;
		got = filter((struct slice){in, sizeof(in) - 1}, out, sizeof(out), &facts);
		ck_assert_msg((got == sizeof(in) - 1) == plain, "value %#x: %ld", byte, got);
		ck_assert(plain || got == -1);

		memcpy(in, "Abc: def\r\n", sizeof(in));
		in[1] = (char)byte;
		got = filter((struct slice){in, sizeof(in) - 1}, out, sizeof(out), &facts);
		if (byte <= 0x20 || byte >= 0x7f)
			ck_assert_msg(got == -1, "name %#x: %ld", byte, got);
	}
}
END_TEST

START_TEST(test_filter_sizes)
{
	static const char in[] = "Abc: def\nDate: x\nGhi: jkl\n";
	static const char expected[] = "Abc: def\r\nGhi: jkl\r\n";
	const size_t needed = sizeof(expected) - 1;
	unsigned char out[sizeof(expected) + 16];
	struct response_facts facts;
	size_t size, i;

	for (size = 0; size <= needed; size++) {
		long got;

		memset(out, GUARD, sizeof(out));
		got = filter((struct slice){in, sizeof(in) - 1}, (char *)out, size, &facts);
		ck_assert_int_eq(got, size < needed ? -1 : (long)needed);
		for (i = size; i < sizeof(out); i++)
			ck_assert_uint_eq(out[i], GUARD);
	}
	ck_assert_mem_eq(out, expected, needed);
}
END_TEST

/* Any output consists of whole, valid lines, none of them withheld. */
START_TEST(test_filter_random)
{
	static const char alphabet[] = "AbZ09-::: \t\r\r\n\n\n\0\x7f\xe4";
	uint32_t state = 42;
	unsigned accepted = 0;
	int round;

	for (round = 0; round < 200000; round++) {
		char in[16], out[64];
		struct slice slice = {in, (size_t)(round % 16) + 1};
		struct response_facts facts;
		long got, j;
		size_t i;

		for (i = 0; i < slice.length; i++) {
			state = state * 1664525 + 1013904223;
			in[i] = alphabet[(state >> 16) % (sizeof(alphabet) - 1)];
		}
		got = filter(slice, out, sizeof(out), &facts);
		if (got < 0)
			continue;
		accepted++;
		REQUIRE(got >= 4);
		for (j = 0; j < got; j++) {
			if (out[j] == '\r')
				REQUIRE(j + 1 < got && out[j + 1] == '\n');
			else if (out[j] == '\n')
				REQUIRE(j > 0 && out[j - 1] == '\r');
			else
				REQUIRE(out[j] == '\t' ||
					((unsigned char)out[j] >= 0x20 && out[j] != 0x7f));
		}
		REQUIRE(out[got - 1] == '\n');
		REQUIRE(!memmem(out, (size_t)got, "\r\n\r\n", 4));
	}
	ck_assert_uint_gt(accepted, 100);
}
END_TEST

/* A status that a client could not parse is sent as another one. */
START_TEST(test_digits)
{
	static const struct {
		int status;
		const char *digits;
	} cases[] = {{200, "200"}, {100, "100"},  {999, "999"}, {404, "404"},
		     {99, "500"},  {1000, "500"}, {-1, "500"},	{0, "500"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char digits[RESPONSE_STATUS_DIGITS + 1] = "xxxx";

		response_status_digits(cases[i].status, digits);
		ck_assert_mem_eq(digits, cases[i].digits, RESPONSE_STATUS_DIGITS);
	}
}
END_TEST

START_TEST(test_reasons)
{
	static const struct {
		int status;
		const char *reason;
	} known[] = {
		{100, "Continue"},
		{200, "OK"},
		{206, "Partial Content"},
		{301, "Moved Permanently"},
		{302, "Found"},
		{304, "Not Modified"},
		{400, "Bad Request"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{408, "Request Timeout"},
		{412, "Precondition Failed"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{416, "Range Not Satisfiable"},
		{417, "Expectation Failed"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
		{511, "Network Authentication Required"},
		{299, "Unknown"},
		{599, "Unknown"},
		{0, "Unknown"},
		{-1, "Unknown"},
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		ck_assert_str_eq(response_reason(known[i].status), known[i].reason);
}
END_TEST

START_TEST(test_status_line)
{
	char out[RESPONSE_STATUS_MAX + 1], expected[128];
	int status;

	for (status = -10; status < 1200; status++) {
		int shown = status < 100 || status > 999 ? 500 : status;
		size_t length;

		memset(out, GUARD, sizeof(out));
		length = response_status_line(status, NULL, out);
		snprintf(expected, sizeof(expected), "HTTP/1.1 %d %s\r\n", shown,
			 response_reason(shown));
		ck_assert_uint_eq(length, strlen(expected));
		ck_assert_mem_eq(out, expected, length);
		ck_assert_int_eq(out[length], GUARD);
	}
}
END_TEST

START_TEST(test_phrase)
{
	char phrase[RESPONSE_PHRASE_MAX + 1], out[RESPONSE_STATUS_MAX + 1];
	size_t length = response_status_line(404, "No \xe4", out);

	ck_assert_uint_eq(length, strlen("HTTP/1.1 404 No \xe4\r\n"));
	ck_assert_mem_eq(out, "HTTP/1.1 404 No \xe4\r\n", length);
	memset(phrase, 'x', sizeof(phrase) - 1);
	phrase[sizeof(phrase) - 1] = '\0';
	memset(out, GUARD, sizeof(out));
	length = response_status_line(200, phrase, out);
	ck_assert_uint_eq(length, strlen("HTTP/1.1 200 \r\n") + RESPONSE_PHRASE_MAX);
	ck_assert_mem_eq(out + length - 3, "x\r\n", 3);
	ck_assert_int_eq(out[length], GUARD);
}
END_TEST

START_TEST(test_page)
{
	char out[RESPONSE_PAGE_MAX];
	size_t length = response_error_page(404, NULL, out, sizeof(out));

	ck_assert_uint_eq(length, strlen(out));
	ck_assert_ptr_nonnull(strstr(out, "<title>404 Not Found</title>"));
	ck_assert_ptr_nonnull(strstr(out, "<meta name=\"viewport\" "));
	ck_assert_ptr_nonnull(strstr(out, "<meta name=\"color-scheme\" content=\"light dark\">"));
	ck_assert_ptr_nonnull(strstr(out, "<h1>404 Not Found</h1>"));
	ck_assert_ptr_null(strstr(out, "<p>"));
	ck_assert_str_eq(out + length - 15, "</body></html>\n");

	length = response_error_page(400, "<script>alert('x')&\"y\"</script>\r\n\x01", out,
				     sizeof(out));
	ck_assert_uint_eq(length, strlen(out));
	ck_assert_ptr_nonnull(strstr(out, "<p>&lt;script&gt;alert(&#39;x&#39;)&amp;&quot;y&quot;"
					  "&lt;/script&gt;?"
					  "?"
					  "?</p>\n"));
	ck_assert_ptr_null(strstr(out, "<script"));
	ck_assert_str_eq(out + length - 15, "</body></html>\n");
}
END_TEST

/* For any size: terminated, within bounds, no partial escape, and complete if it fits. */
START_TEST(test_page_sizes)
{
	unsigned char out[RESPONSE_PAGE_MAX + 1];
	char detail[2000];
	size_t size, length, frame, i;

	memset(detail, '<', sizeof(detail) - 1);
	detail[sizeof(detail) - 1] = '\0';
	frame = response_error_page(500, NULL, (char *)out, sizeof(out));
	for (size = 0; size <= RESPONSE_PAGE_MAX; size++) {
		const char *at;

		memset(out, GUARD, sizeof(out));
		length = response_error_page(500, detail, (char *)out, size);
		for (i = size; i < sizeof(out); i++)
			REQUIRE(out[i] == GUARD);
		if (size == 0) {
			ck_assert_uint_eq(length, 0);
			continue;
		}
		ck_assert_uint_lt(length, size);
		ck_assert_uint_eq(strlen((char *)out), length);
		for (at = strchr((char *)out, '&'); at; at = strchr(at + 1, '&'))
			REQUIRE(strncmp(at, "&lt;", 4) == 0);
		if (size > frame)
			ck_assert_str_eq((char *)out + length - 15, "</body></html>\n");
	}
	ck_assert_uint_gt(length, RESPONSE_PAGE_MAX - 8);
	length = response_error_page(500, "", (char *)out, RESPONSE_PAGE_MAX);
	ck_assert_uint_eq(length, strlen((char *)out));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_filter);
	tcase_add_test(tcase, test_filter_connection);
	tcase_add_test(tcase, test_filter_date);
	tcase_add_test(tcase, test_filter_length);
	tcase_add_test(tcase, test_filter_controls);
	tcase_add_test(tcase, test_filter_sizes);
	tcase_add_test(tcase, test_filter_random);
	tcase_add_test(tcase, test_digits);
	tcase_add_test(tcase, test_reasons);
	tcase_add_test(tcase, test_status_line);
	tcase_add_test(tcase, test_phrase);
	tcase_add_test(tcase, test_page);
	tcase_add_test(tcase, test_page_sizes);
}

RUN_SUITE("response", fill)
