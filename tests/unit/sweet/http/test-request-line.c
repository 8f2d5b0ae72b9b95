/* SPDX-License-Identifier: MIT */
/*
 * test-request-line.c - unit tests of request-line.c: hosts, the parts of a request
 * line, and lines that are refused before their end.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/request-internal.h"
#include "http/request.h"

#include "request-fixture.h"
#include "suite.h"

static const struct {
	const char *host;
	bool good;
} hosts[] = {
	{"a", true},
	{"example.org", true},
	{"example.org:80", true},
	{"example.org:", true},
	{"a:65535", true},
	{"a:65536", false},
	{"a:99999999999999999999", false},
	{"a:8x", false},
	{"a:1:2", false},
	{"", false},
	{":80", false},
	{"a b", false},
	{"a/b", false},
	{"a@b", false},
	{"[::1]", true},
	{"[::1]:8080", true},
	{"[::ffff:192.0.2.1]", true},
	{"[v1.a:b]", true},
	{"[V1F.a]", true},
	{"[v1.]", false},
	{"[v.a]", false},
	{"[v1]", false},
	{"[]", false},
	{"[::1", false},
	{"[::1]8080", false},
	{"[example.org]", false},
	{"[1:2:3]", false},
	{"::1", false},
	{"[::1:::::::::::::::::::::::::::::::::::::::::::::::::::]", false},
};

START_TEST(test_hosts)
{
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		size_t length = strlen(hosts[i].host);
		char *bytes = copy(hosts[i].host, length);

		ck_assert_msg(request_is_host((struct slice){bytes, length}) == hosts[i].good, "%s",
			      hosts[i].host);
		free(bytes);
	}
	ck_assert(!request_is_host((struct slice){"[::1\0]", 6}));
}
END_TEST

/* Parses a single line; returns whether it went beyond its end. */
static int parse_line(const char *line, struct request_framing *framing)
{
	const char *at = line, *end = line + strlen(line);
	int status;

	memset(&request, 0, sizeof(request));
	memset(framing, 0, sizeof(*framing));
	status = request_parse_line(&request, framing, &at, end);
	if (!status)
		ck_assert_ptr_eq(at, end);
	else
		ck_assert_ptr_nonnull(request.wrong);
	return status;
}

static const struct {
	const char *line;
	int status;
	enum request_method method;
	bool minor;
	const char *path, *query, *host; /* host NULL: the line has none */
} lines[] = {
	{"GET / HTTP/1.1\r\n", 0, METHOD_GET, 1, "/", "", NULL},
	{"HEAD /a/b?c=d?e HTTP/1.0\r\n", 0, METHOD_HEAD, 0, "/a/b", "c=d?e", NULL},
	{"POST /? HTTP/1.9\r\n", 0, METHOD_POST, 1, "/", "", NULL},
	{"PUT /x HTTP/1.1\r\n", 0, METHOD_PUT, 1, "/x", "", NULL},
	{"DELETE /x HTTP/1.1\r\n", 0, METHOD_DELETE, 1, "/x", "", NULL},
	{"PATCH /x HTTP/1.1\r\n", 0, METHOD_PATCH, 1, "/x", "", NULL},
	{"TRACE /x HTTP/1.1\r\n", 0, METHOD_TRACE, 1, "/x", "", NULL},
	{"OPTIONS * HTTP/1.1\r\n", 0, METHOD_OPTIONS, 1, "*", "", NULL},
	{"get / HTTP/1.1\r\n", 0, METHOD_OTHER, 1, "/", "", NULL},
	{"GETS / HTTP/1.1\r\n", 0, METHOD_OTHER, 1, "/", "", NULL},
	{"GET http://a:80/b?c HTTP/1.1\r\n", 0, METHOD_GET, 1, "/b", "c", "a:80"},
	{"GET HTTPS://a HTTP/1.1\r\n", 0, METHOD_GET, 1, "/", "", "a"},
	{"GET http://a?c HTTP/1.1\r\n", 0, METHOD_GET, 1, "/", "c", "a"},
	{"GET * HTTP/1.1\r\n", -400, 0, 0, NULL, NULL, NULL},
	{"GET a/b HTTP/1.1\r\n", -400, 0, 0, NULL, NULL, NULL},
	{"GET ftp://a/ HTTP/1.1\r\n", -400, 0, 0, NULL, NULL, NULL},
	{"GET http:/a/ HTTP/1.1\r\n", -400, 0, 0, NULL, NULL, NULL},
	{"GET http://u@a/ HTTP/1.1\r\n", -400, 0, 0, NULL, NULL, NULL},
	{"GET http:///b HTTP/1.1\r\n", -400, 0, 0, NULL, NULL, NULL},
	{"CONNECT a:443 HTTP/1.1\r\n", -501, 0, 0, NULL, NULL, NULL},
	{"CONNECT a HTTP/1.1\r\n", -400, 0, 0, NULL, NULL, NULL},
	{"CONNECT [::1] HTTP/1.1\r\n", -400, 0, 0, NULL, NULL, NULL},
	{"CONNECT / HTTP/1.1\r\n", -400, 0, 0, NULL, NULL, NULL},
	{" GET / HTTP/1.1\r\n", -400, 0, 0, NULL, NULL, NULL},
	{"GET  / HTTP/1.1\r\n", -400, 0, 0, NULL, NULL, NULL},
	{"GET / HTTP/1.1 \r\n", -400, 0, 0, NULL, NULL, NULL},
	{"GET / HTTP/1.1\n", -400, 0, 0, NULL, NULL, NULL},
	{"GET / http/1.1\r\n", -400, 0, 0, NULL, NULL, NULL},
	{"GET /\r\n", -400, 0, 0, NULL, NULL, NULL},
	{"GET / HTTP/2.0\r\n", -505, 0, 0, NULL, NULL, NULL},
	{"GET / HTTP/0.9\r\n", -505, 0, 0, NULL, NULL, NULL},
};

static void check_slice_is(struct slice slice, const char *text, const char *line)
{
	ck_assert_msg(slice.length == strlen(text) && memcmp(slice.at, text, slice.length) == 0,
		      "%s: \"%.*s\" for \"%s\"", line, (int)slice.length, slice.at, text);
}

START_TEST(test_lines)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *line = lines[i].line;
		struct request_framing framing;
		int status = parse_line(line, &framing);

		ck_assert_msg(status == lines[i].status, "%s: %d", line, status);
		if (status)
			continue;
		ck_assert_msg(request.method == lines[i].method, "%s: %d", line, request.method);
		ck_assert_msg(request.minor == lines[i].minor, "%s", line);
		check_slice_is(request.path, lines[i].path, line);
		check_slice_is(request.query, lines[i].query, line);
		ck_assert_msg(framing.absolute == !!lines[i].host, "%s", line);
		if (lines[i].host)
			check_slice_is(request.host, lines[i].host, line);
	}
}
END_TEST

START_TEST(test_longest_target)
{
	for (unsigned more = 0; more < 2; more++) {
		size_t length = REQUEST_TARGET_MAX + more;
		char *line = must_alloc(length + 32);
		struct request_framing framing;

		memcpy(line, "GET /", 5);
		memset(line + 5, 'a', length - 1);
		strcpy(line + 4 + length, " HTTP/1.1\r\n");
		ck_assert_int_eq(parse_line(line, &framing), more ? -414 : 0);
		free(line);
	}
}
END_TEST

static int check_begin(const char *bytes, size_t length, size_t seen)
{
	char *exact = copy(bytes, length);
	int status = request_check_begin(&request, exact, length, seen);

	free(exact);
	return status;
}

/* Beginnings that may still become a request; others are refused before the end. */
static const struct {
	const char *bytes;
	const char *wrong; /* in the error message; NULL: no error */
} begins[] = {
	{"", NULL},
	{"\r", NULL},
	{"\r\n\r\n", NULL},
	{"\r\n\r\n\r\n\r\nGET", NULL},
	{"\r\n\r\n\r\n\r\n\r\nG", "malformed"},
	{"G", NULL},
	{"GET ", NULL},
	{"GET /a", NULL},
	{"GET /a ", NULL},
	{"GET /a HTTP/1.", NULL},
	{"GET /a HTTP/9.7\r", NULL},
	{"GET /a HTTP/1.1\r\r", "malformed"},
	{"GET /a HTTX", "malformed"},
	{"GET /a HTTP/x", "malformed"},
	{"GET /a  ", "malformed"},
	{"GET  ", "malformed"},
	{" ", "malformed"},
	{"GET\t", "malformed"},
	{"\x16\x03\x01", "TLS"},
	{"SSH", NULL},
	{"SSH-2.0-x", "SSH"},
	{"GET / HTTP/1.1\r\nHost", NULL},
	{"GET / HTTP/2.0\r\nHost", "version"},
};

START_TEST(test_begins)
{
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		const char *bytes = begins[i].bytes;
		int status = check_begin(bytes, strlen(bytes), 0);

		if (!begins[i].wrong)
			ck_assert_msg(status == 0, "%s: %d", bytes, status);
		else
			ck_assert_msg(status < 0 && strstr(request.wrong, begins[i].wrong),
				      "%s: %d", bytes, status);
	}
}
END_TEST

/* A NUL in the head is refused; earlier bytes are not parsed again. */
START_TEST(test_zero_byte)
{
	static const char bytes[] = "GET / HTTP/1.1\r\nA: \0b";

	ck_assert_int_eq(check_begin(bytes, sizeof(bytes) - 1, 0), -400);
	ck_assert_str_eq(request.wrong, "a byte of 0");
	ck_assert_int_eq(check_begin(bytes, sizeof(bytes) - 1, 17), -400);
	ck_assert_int_eq(check_begin(bytes, sizeof(bytes) - 1, 20), 0);
	ck_assert_int_eq(check_begin("GET / HTTP/2.0\r\nA", 17, 16), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_hosts);
	tcase_add_test(tcase, test_lines);
	tcase_add_test(tcase, test_longest_target);
	tcase_add_test(tcase, test_begins);
	tcase_add_test(tcase, test_zero_byte);
}

RUN_SUITE("request-line", fill)
