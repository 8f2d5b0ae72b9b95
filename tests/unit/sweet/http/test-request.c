/* SPDX-License-Identifier: MIT */
/*
 * test-request.c - unit tests of the request head: valid and invalid ones.  Tables of
 * raw heads, and every byte in some places.
 */
#include <stdlib.h>

#include "base/slice.h"
#include "http/request.h"

#include "request-fixture.h"
#include "suite.h"

/* clang-format off */
#define T(status, head) {{head, sizeof(head) - 1}, status}
/* clang-format on */

/* Only the statuses. */
static const struct {
	struct slice head;
	int status;
} statuses[] = {
	/* request line */
	T(0, L H E),
	T(0, "HEAD / HTTP/1.1\r\n" H E),
	T(0, "POST / HTTP/1.1\r\n" H E),
	T(0, "BREW /pot HTTP/1.1\r\n" H E),
	T(0, "!#$%&'*+-.^_`|~ / HTTP/1.1\r\n" H E),
	T(0, "GET / HTTP/1.0\r\n" E),
	T(0, "GET / HTTP/1.2\r\n" H E),
	T(0, "GET / HTTP/1.9\r\n" H E),
	T(0, E L H E),
	T(0, E E L H E),
	T(0, E E E E L H E),
	T(-400, E E E E E L H E),
	T(-400, "\n" L H E),
	T(-400, "\r" L H E),
	T(-400, " " L H E),
	T(-400, ""),
	T(-400, E),
	T(-400, E E),
	T(-400, "\n"),
	T(-400, "\n\n"),
	T(-400, "GET"),
	T(-400, "GET\r\n\r\n"),
	T(-400, "GET /\r\n\r\n"),
	T(-400, "GET / \r\n\r\n"),
	T(-400, "GET  HTTP/1.1\r\n" H E),
	T(-400, "GET HTTP/1.1\r\n" H E),
	T(-400, "GET  / HTTP/1.1\r\n" H E),
	T(-400, "GET /  HTTP/1.1\r\n" H E),
	T(-400, "GET / HTTP/1.1 \r\n" H E),
	T(-400, "GET\t/ HTTP/1.1\r\n" H E),
	T(-400, "GET /\tHTTP/1.1\r\n" H E),
	T(-400, "GET / x HTTP/1.1\r\n" H E),
	T(-400, "G(T / HTTP/1.1\r\n" H E),
	T(-400, "G\0T / HTTP/1.1\r\n" H E),
	T(-400, "G\xc3T / HTTP/1.1\r\n" H E),
	T(-400, "GET: / HTTP/1.1\r\n" H E),
	T(-400, " / HTTP/1.1\r\n" H E),
	T(-400, "GET / HTTP/1.1\n" H E),
	T(-400, "GET / HTTP/1.1\r" H E),
	T(-400, "GET / HTTP/1.1\r\r\n" H E),
	T(-400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n"), /* TLS */
	/* version */
	T(-505, "GET / HTTP/2.0\r\n" H E),
	T(-505, "GET / HTTP/0.9\r\n" H E),
	T(-505, "GET / HTTP/9.9\r\n" H E),
	T(-505, "PRI * HTTP/2.0\r\n\r\n"),
	T(-400, "GET / http/1.1\r\n" H E),
	T(-400, "GET / Http/1.1\r\n" H E),
	T(-400, "GET / HTTP/1.10\r\n" H E),
	T(-400, "GET / HTTP/01.1\r\n" H E),
	T(-400, "GET / HTTP/11\r\n" H E),
	T(-400, "GET / HTTP/1\r\n" H E),
	T(-400, "GET / HTTP/2\r\n" H E),
	T(-400, "GET / HTTP/1.\r\n" H E),
	T(-400, "GET / HTTP/.1\r\n" H E),
	T(-400, "GET / HTTP/1,1\r\n" H E),
	T(-400, "GET / HTTP/-1.1\r\n" H E),
	T(-400, "GET / HTTP/1.x\r\n" H E),
	T(-400, "GET / HTTP/x.1\r\n" H E),
	T(-400, "GET / HTTP 1.1\r\n" H E),
	T(-400, "GET / ICY/1.1\r\n" H E),
	T(-400, "GET / HTTP/1.1"),
	T(-400, "GET / HTTP/1.1\r\n"),
	T(-400, "GET / H\r\n"),
	/* target */
	T(0, "GET /a/b?c=d&e HTTP/1.1\r\n" H E),
	T(0, "GET //x HTTP/1.1\r\n" H E),
	T(0, "GET /%zz HTTP/1.1\r\n" H E),
	T(0, "GET /{|}^`<>\"\\[] HTTP/1.1\r\n" H E),
	T(0, "OPTIONS * HTTP/1.1\r\n" H E),
	T(-400, "GET * HTTP/1.1\r\n" H E),
	T(-400, "OPTIONS *x HTTP/1.1\r\n" H E),
	T(-400, "OPTIONS ** HTTP/1.1\r\n" H E),
	T(-400, "options * HTTP/1.1\r\n" H E),
	T(-400, "GET a HTTP/1.1\r\n" H E),
	T(-400, "GET ?a HTTP/1.1\r\n" H E),
	T(-400, "GET /a#b HTTP/1.1\r\n" H E),
	T(-400, "GET /a?b#c HTTP/1.1\r\n" H E),
	T(-400, "GET /a\x7f HTTP/1.1\r\n" H E),
	T(-400, "GET /\xc3\xa4 HTTP/1.1\r\n" H E),
	T(-400, "GET /a\0b HTTP/1.1\r\n" H E),
	T(-400, "GET /a\x01 HTTP/1.1\r\n" H E),
	T(-400, "GET /a\rb HTTP/1.1\r\n" H E),
	T(-400, "GET /a\nb HTTP/1.1\r\n" H E),
	T(-501, "CONNECT h:80 HTTP/1.1\r\n" H E),
	T(-501, "CONNECT [::1]:80 HTTP/1.1\r\n" H E),
	T(-400, "CONNECT h HTTP/1.1\r\n" H E),
	T(-400, "CONNECT [::1] HTTP/1.1\r\n" H E),
	T(-400, "CONNECT :80 HTTP/1.1\r\n" H E),
	T(-400, "CONNECT h:80000 HTTP/1.1\r\n" H E),
	T(-400, "CONNECT /a HTTP/1.1\r\n" H E),
	T(-400, "CONNECT * HTTP/1.1\r\n" H E),
	T(-400, "CONNECT http://h:80/ HTTP/1.1\r\n" H E),
	T(-400, "GET h:80 HTTP/1.1\r\n" H E),
	T(0, "GET http://h/ HTTP/1.1\r\n" H E),
	T(0, "GET https://h:443/ HTTP/1.1\r\n" H E),
	T(0, "GET http://h/ HTTP/1.0\r\n" E),
	T(-400, "GET http://h/ HTTP/1.1\r\n" E),
	T(-400, "GET http:// HTTP/1.1\r\n" H E),
	T(-400, "GET https:// HTTP/1.1\r\n" H E),
	T(-400, "GET http:/// HTTP/1.1\r\n" H E),
	T(-400, "GET http://?x HTTP/1.1\r\n" H E),
	T(-400, "GET http://:80/ HTTP/1.1\r\n" H E),
	T(-400, "GET http://u@h/ HTTP/1.1\r\n" H E),
	T(-400, "GET http://u:p@h/ HTTP/1.1\r\n" H E),
	T(-400, "GET http://h:x/ HTTP/1.1\r\n" H E),
	T(-400, "GET http HTTP/1.1\r\n" H E),
	T(-400, "GET h HTTP/1.1\r\n" H E),
	T(-400, "GET http:/h/ HTTP/1.1\r\n" H E),
	T(-400, "GET http:h HTTP/1.1\r\n" H E),
	T(-400, "GET httpx://h/ HTTP/1.1\r\n" H E),
	T(-400, "GET ftp://h/ HTTP/1.1\r\n" H E),
	T(-400, "GET file:///etc/passwd HTTP/1.1\r\n" H E),
	T(-400, "GET javascript:x HTTP/1.1\r\n" H E),
	/* field lines */
	T(0, L H "A: b\r\n" E),
	T(0, L H "A:b\r\n" E),
	T(0, L H "A:\r\n" E),
	T(0, L H "A: \t \r\n" E),
	T(0, L H "A: b\tc\r\n" E),
	T(0, L H "A: \xc3\xa4\r\n" E),
	T(0, L H "A: b: c\r\n" E),
	T(0, L H "!#$%&'*+-.^_`|~: x\r\n" E),
	T(-400, L H "A : b\r\n" E),
	T(-400, L H "A\t: b\r\n" E),
	T(-400, L H "A b: c\r\n" E),
	T(-400, L H "A\r\n" E),
	T(-400, L H ": b\r\n" E),
	T(-400, L H ":\r\n" E),
	T(-400, L H " A: b\r\n" E),
	T(-400, L H "\tA: b\r\n" E),
	T(-400, L " " H E),
	T(-400, L H "A: b\r\n c\r\n" E),
	T(-400, L H "A: b\r\n\tc\r\n" E),
	T(-400, L H "A: b\r\n \r\n" E),
	T(-400, L H "A: b\n" E),
	T(-400, L H "A: b\n\n"),
	T(-400, L H "\n"),
	T(-400, L "Host: h\n" E),
	T(-400, L H "A: b\rC: d\r\n" E),
	T(-400, L H "A: b\r\r\n" E),
	T(-400, L H "A: b\r \r\n" E),
	T(-400, L H "A: b\0\r\n" E),
	T(-400, L H "A\0: b\r\n" E),
	T(-400, L H "A: \x01\r\n" E),
	T(-400, L H "A: \x1b\r\n" E),
	T(-400, L H "A: b\x7f\r\n" E),
	T(-400, L H "A: 0123456\x7f"
		    "89abcdef\r\n" E),
	T(-400, L H "\xc3\xa4: b\r\n" E),
	T(-400, L H "A(: b\r\n" E),
	T(-400, L H "A/: b\r\n" E),
	T(-400, L H "\"A\": b\r\n" E),
	T(-400, L H),
	T(-400, L H "\r"),
	T(-400, L H "A: b"),
	T(-400, L H "A: b\r\n"),
	T(-400, L H E "x"),
	T(-400, L H E E),
	T(-400, L H E L H E),
	/* Host */
	T(-400, L E),
	T(-400, "GET / HTTP/1.2\r\n" E),
	T(-400, L H H E),
	T(-400, L H "HOST: h\r\n" E),
	T(-400, L "Host:\r\nHost:\r\n" E),
	T(-400, "GET / HTTP/1.0\r\n" H H E),
	T(-400, L "Hos: h\r\n" E),
	T(-400, L "Host : h\r\n" E),
	T(0, L "Host:\r\n" E),
	T(0, L "Host:   \r\n" E),
	T(0, L "Host: www.example.com\r\n" E),
	T(0, L "Host: www.example.com:8080\r\n" E),
	T(0, L "Host: h:\r\n" E),
	T(0, L "Host: 127.0.0.1:65535\r\n" E),
	T(0, L "Host: [::1]\r\n" E),
	T(0, L "Host: [2001:db8::1]:80\r\n" E),
	T(0, L "Host: [::ffff:127.0.0.1]\r\n" E),
	T(0, L "Host: [::]\r\n" E),
	T(0, L "Host: [1:2:3:4:5:6:7:8]\r\n" E),
	T(0, L "Host: [1:2:3:4:5:6:255.255.255.255]:1\r\n" E),
	T(0, L "Host: [ABCD:EF01:2345:6789:abcd:ef01:2345:6789]\r\n" E),
	T(0, L "Host: [v1.a:b]\r\n" E),
	T(-400, L "Host: [ab..cd::1]\r\n" E),
	T(-400, L "Host: [4712::abcd::]\r\n" E),
	T(-400, L "Host: [1:2:3:4:5:6:7]\r\n" E),
	T(-400, L "Host: [1:2:3:4:5:6:7:8:9]\r\n" E),
	T(-400, L "Host: [1:2:3:4:5:6:7:1.2.3.4]\r\n" E),
	T(-400, L "Host: [12345::]\r\n" E),
	T(-400, L "Host: [::256.0.0.1]\r\n" E),
	T(-400, L "Host: [::1.2.3]\r\n" E),
	T(-400, L "Host: [:1]\r\n" E),
	T(-400, L "Host: [:::]\r\n" E),
	T(-400, L "Host: [1.2.3.4]\r\n" E),
	T(-400, L "Host: [name]\r\n" E),
	T(-400, L "Host: [g::1]\r\n" E),
	T(-400, L "Host: [fe80::1~lo]\r\n" E),
	T(-400, L "Host: [v.a]\r\n" E),
	T(-400, L "Host: [v1.]\r\n" E),
	T(-400, L "Host: [v1a]\r\n" E),
	T(-400, L "Host: [ABCD:EF01:2345:6789:abcd:ef01:2345:67890123456789012345678901]\r\n" E),
	T(-400, "GET http://[ab..cd::1]/ HTTP/1.1\r\n" H E),
	T(-400, "GET http://[4712::abcd::]:80/ HTTP/1.1\r\n" H E),
	T(0, "GET http://[4712::abcd]:80/ HTTP/1.1\r\n" H E),
	T(0, L "Host: a_b-c.~d\r\n" E),
	T(-400, L "Host: h:65536\r\n" E),
	T(-400, L "Host: h:4294967376\r\n" E),
	T(-400, L "Host: h:8x\r\n" E),
	T(-400, L "Host: h:80:80\r\n" E),
	T(-400, L "Host: :80\r\n" E),
	T(-400, L "Host: ::1\r\n" E),
	T(-400, L "Host: [::1\r\n" E),
	T(-400, L "Host: [\r\n" E),
	T(-400, L "Host: [::1 ]\r\n" E),
	T(-400, L "Host: []\r\n" E),
	T(-400, L "Host: ::1]\r\n" E),
	T(-400, L "Host: [::1]x\r\n" E),
	T(-400, L "Host: [::1]]\r\n" E),
	T(-400, L "Host: [::1/]\r\n" E),
	T(-400, L "Host: a/b\r\n" E),
	T(-400, L "Host: a\\b\r\n" E),
	T(-400, L "Host: a@b\r\n" E),
	T(-400, L "Host: a b\r\n" E),
	T(-400, L "Host: a\tb\r\n" E),
	T(-400, L "Host: a,b\r\n" E),
	T(-400, L "Host: a?b\r\n" E),
	T(-400, L "Host: a#b\r\n" E),
	T(-400, L "Host: <h>\r\n" E),
	T(-400, L "Host: a'b\r\n" E),
	T(-400, L "Host: a\"b\r\n" E),
	T(-400, L "Host: http://h\r\n" E),
	T(-400, L "Host: h\xc3\xa4\r\n" E),
	/* the length of the body */
	T(0, L H "Content-Length: 0\r\n" E),
	T(0, L H "Content-Length:5\r\n" E),
	T(0, L H "content-length: \t5 \r\n" E),
	T(0, L H "Content-Length: 9223372036854775807\r\n" E),
	T(0, L H "Content-Length: 00000000000000000000000000000005\r\n" E),
	T(-400, L H "Content-Length: 9223372036854775808\r\n" E),
	T(-400, L H "Content-Length: 18446744073709551616\r\n" E),
	T(-400, L H "Content-Length: 18446744073709551621\r\n" E),
	T(-400, L H "Content-Length: 99999999999999999999999999\r\n" E),
	T(-400, L H "Content-Length:\r\n" E),
	T(-400, L H "Content-Length: +5\r\n" E),
	T(-400, L H "Content-Length: -5\r\n" E),
	T(-400, L H "Content-Length: 5,5\r\n" E),
	T(-400, L H "Content-Length: 5, 5\r\n" E),
	T(-400, L H "Content-Length: 5 5\r\n" E),
	T(-400, L H "Content-Length: 0x5\r\n" E),
	T(-400, L H "Content-Length: 5a\r\n" E),
	T(-400, L H "Content-Length: 5.0\r\n" E),
	T(-400, L H "Content-Length: \"5\"\r\n" E),
	T(-400, L H "Content-Length: \xd9\xa5\r\n" E),
	T(-400, L H "Content-Length : 5\r\n" E),
	T(-400, L H "Content-Length: 5\r\nContent-Length: 5\r\n" E),
	T(-400, L H "Content-Length: 5\r\nA: b\r\ncontent-LENGTH: 6\r\n" E),
	T(-400, "GET / HTTP/1.0\r\nContent-Length: x\r\n" E),
	T(0, L H "Transfer-Encoding: chunked\r\n" E),
	T(0, L H "transfer-ENCODING:\tChunked \r\n" E),
	T(-501, L H "Transfer-Encoding: gzip, chunked\r\n" E),
	T(-501, L H "Transfer-Encoding: gzip,chunked\r\n" E),
	T(-501, L H "Transfer-Encoding: gzip \t,\t chunked\r\n" E),
	T(-501, L H "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n" E),
	T(-501, L H "Transfer-Encoding: identity, chunked\r\n" E),
	T(-501, L H "Transfer-Encoding: xchunked, chunked\r\n" E),
	T(-400, L H "TRANSFER-ENCODING: identity\r\n" E),
	T(-400, L H "Transfer-Encoding:\r\n" E),
	T(-400, L H "Transfer-Encoding: gzip\r\n" E),
	T(-400, L H "Transfer-Encoding: xchunked\r\n" E),
	T(-400, L H "Transfer-Encoding: chunkedx\r\n" E),
	T(-400, L H "Transfer-Encoding: \"chunked\"\r\n" E),
	T(-400, L H "Transfer-Encoding: chunked;a=b\r\n" E),
	T(-400, L H "Transfer-Encoding: chunked,\r\n" E),
	T(-400, L H "Transfer-Encoding: ,chunked\r\n" E),
	T(-400, L H "Transfer-Encoding: gzip,,chunked\r\n" E),
	T(-400, L H "Transfer-Encoding: gzip chunked\r\n" E),
	T(-400, L H "Transfer-Encoding: chunked chunked\r\n" E),
	T(-400, L H "Transfer-Encoding: chunked, chunked\r\n" E),
	T(-400, L H "Transfer-Encoding: chunked, gzip\r\n" E),
	T(-400, L H "Transfer-Encoding: chunked, gzip, chunked\r\n" E),
	T(-400, L H "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n" E),
	T(-400, L H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" E),
	T(-400, L H "Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n" E),
	T(-400, L H "Transfer-Encoding : chunked\r\n" E),
	T(-400, L H "Transfer-Encoding\t: chunked\r\n" E),
	T(-400, L H "Transfer-Encoding: \x0b"
		    "chunked\r\n" E),
	T(-400, L H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n" E),
	T(-400, L H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" E),
	T(-400, "POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n" E),
	T(-400, L "Transfer-Encoding: chunked\r\n" E),
	T(0, L H "Transfer_Encoding: chunked\r\n" E),
	T(0, L H "XTransfer-Encoding: chunked\r\n" E),
#undef T
};

START_TEST(test_statuses)
{
	size_t i;

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		struct slice head = statuses[i].head;
		int got = parse(head.at, head.length);

		ck_assert_msg(got == statuses[i].status, "%zu: %d, not %d: %s", i, got,
			      statuses[i].status, head.at);
		ck_assert(got == 0 || *request.wrong);
	}
}
END_TEST

/* If a whole head is valid, no part of it is refused, in whatever pieces it arrives. */
START_TEST(test_begins_of_good_ones)
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		struct slice head = statuses[i].head;

		if (statuses[i].status)
			continue;
		for (size_t length = 0; length < head.length; length++) {
			char *data = copy(head.at, length);

			for (size_t seen = 0; seen <= length && seen < 200; seen++)
				ck_assert_msg(request_check_begin(&request, data, length, seen) ==
						      0,
					      "%zu of %s: %s", length, head.at, request.wrong);
			free(data);
		}
	}
}
END_TEST

/* Beginnings that no further bytes can make valid; one byte fewer could be. */
START_TEST(test_hopeless_begins)
{
	static const struct {
		struct slice data;
		int status;
	} hopeless[] = {
#define B(status, text) {{text, sizeof(text) - 1}, status}
		B(-400, "\0"),
		B(-400, "\x16"),
		B(-400, " "),
		B(-400, "\rG"),
		B(-400, "\n"),
		B(-400, "\r\n\r\n\0"), /* the PROXY protocol, version 2 */
		B(-400, "G\0"),
		B(-400, "GET("),
		B(-400, "GET  "),
		B(-400, "GET /\r"),
		B(-400, "GET /a\0"),
		B(-400, "GET / h"),
		B(-400, "GET / HTTP/x"),
		B(-400, "GET / HTTP/1."
			"\r"),
		B(-400, "GET / HTTP/1.1\n"),
		B(-400, "GET / HTTP/1.1\r\r"),
		B(-400, "GET http://[a::b::]/ HTTP/1.1\r\n"),
		B(-505, "GET / HTTP/2.0\r\n"),
		B(-400, L "A\0"),
		B(-400, "SSH-"),
#undef B
	};

	for (size_t i = 0; i < sizeof(hopeless) / sizeof(hopeless[0]); i++) {
		struct slice data = hopeless[i].data;
		char *whole = copy(data.at, data.length), *less = copy(data.at, data.length - 1);

		ck_assert_int_eq(request_check_begin(&request, less, data.length - 1, 0), 0);
		for (size_t seen = 0; seen < data.length; seen++) {
			int got = request_check_begin(&request, whole, data.length, seen);

			ck_assert_msg(got == hopeless[i].status, "%zu: %d", i, got);
			ck_assert_ptr_nonnull(request.wrong);
		}
		free(whole);
		free(less);
	}
}
END_TEST

START_TEST(test_is_head)
{
	ck_assert(request_is_head("HEAD ", 5));
	ck_assert(request_is_head("\r\n\nHEAD / x", 11));
	ck_assert(!request_is_head("HEAD", 4));
	ck_assert(!request_is_head("HEADS /", 7));
	ck_assert(!request_is_head("head /", 6));
	ck_assert(!request_is_head("\r\n", 2));
	ck_assert(!request_is_head("GET HEAD ", 9));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_statuses);
	tcase_add_test(tcase, test_begins_of_good_ones);
	tcase_add_test(tcase, test_hopeless_begins);
	tcase_add_test(tcase, test_is_head);
}

RUN_SUITE("request", fill)
