/* SPDX-License-Identifier: MIT */
/*
 * test-template-line.c - unit tests of template-line.c: each variable in lines of words and in
 * JSON, absent and hostile values, and the limit of a line.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/slice.h"
#include "log/access-line.h"
#include "log/log-format.h"
#include "log/template-line.h"

#include "suite.h"

#define TEXT(text) SLICE_OF(text)
#define MS UINT64_C(1000000)

static struct access_clock at_clock;
static char out[1 << 16];

static const struct slice fields[] = {TEXT("first value"), {NULL, 0}, TEXT("")};

static const struct access_line full = {
	.remote = "192.0.2.1",
	.remote_port = 4711,
	.user = TEXT("ann b"),
	.request = TEXT("GET /a?b=1?2 HTTP/1.1"),
	.host = TEXT("example.org:80"),
	.status = 200,
	.bytes = 1234,
	.microseconds = 56,
	.queue_us = 1,
	.program_us = 2,
	.send_us = 3,
	.head_bytes = 78,
	.tls_version = "TLSv1.3",
	.tls_cipher = "TLS_AES_256_GCM_SHA384",
	.pool = "php",
	.cache = "miss",
	.request_id = "0123-a.b_c",
	.trace_id = TEXT("4bf9"),
	.fields = fields,
	.field_count = 3,
	.head = TEXT("Content-Type: text/plain\r\nX-A:b \r\nx-empty:\r\nX-Last: \"q\"\n"),
};

static const struct access_line empty = {.remote = "::1",
					 .status = 400,
					 .microseconds = ACCESS_UNKNOWN,
					 .queue_us = ACCESS_UNKNOWN,
					 .program_us = ACCESS_UNKNOWN,
					 .send_us = ACCESS_UNKNOWN};

static void set_up(void)
{
	setenv("TZ", "XYZ7", 1);
	tzset();
	access_clock_set(&at_clock, (struct timespec){971211336, 123 * 1000000}, 5000 * MS);
}

/* Writes the line into memory of exactly its maximum size. */
static const char *write_line(const char *template, const struct access_line *line)
{
	struct log_format *format;
	const char *wrong;
	size_t most, length;
	char *room;

	ck_assert_ptr_null(log_format_read(template, &format, &wrong));
	for (unsigned i = 0; i < format->part_count; i++)
		if (format->parts[i].variable == LOG_REQUEST_FIELD)
			format->parts[i].field = (unsigned)(format->parts[i].text.at[0] - '0');
	most = template_line_most(format, line);
	ck_assert_uint_le(most, TEMPLATE_LINE_MAX);
	room = must_alloc(most);
	length = (size_t)(template_line_write(room, format, line, &at_clock, 5006 * MS) - room);
	ck_assert_uint_le(length, most);
	ck_assert_uint_lt(length, sizeof(out));
	memcpy(out, room, length);
	out[length] = '\0';
	free(room);
	log_format_free(format);
	return out;
}

static const struct {
	const char *name, *full, *quoted, *json, *empty, *empty_json;
} variables[] = {
	{"client", "192.0.2.1", "192.0.2.1", "\"192.0.2.1\"", "::1", "\"::1\""},
	{"client-port", "4711", "4711", "4711", "0", "0"},
	{"user", "ann\\x20b", "ann b", "\"ann b\"", "-", "null"},
	{"time", "2000-10-10T20:55:36.129Z", "2000-10-10T20:55:36.129Z",
	 "\"2000-10-10T20:55:36.129Z\"", "2000-10-10T20:55:36.129Z",
	 "\"2000-10-10T20:55:36.129Z\""},
	{"time-local", "10/Oct/2000:13:55:36 -0700", "10/Oct/2000:13:55:36 -0700",
	 "\"10/Oct/2000:13:55:36 -0700\"", "10/Oct/2000:13:55:36 -0700",
	 "\"10/Oct/2000:13:55:36 -0700\""},
	{"request", "GET\\x20/a?b=1?2\\x20HTTP/1.1", "GET /a?b=1?2 HTTP/1.1",
	 "\"GET /a?b=1?2 HTTP/1.1\"", "-", "null"},
	{"method", "GET", "GET", "\"GET\"", "-", "null"},
	{"target", "/a?b=1?2", "/a?b=1?2", "\"/a?b=1?2\"", "-", "null"},
	{"path", "/a", "/a", "\"/a\"", "-", "null"},
	{"query", "b=1?2", "b=1?2", "\"b=1?2\"", "-", "null"},
	{"protocol", "HTTP/1.1", "HTTP/1.1", "\"HTTP/1.1\"", "-", "null"},
	{"host", "example.org:80", "example.org:80", "\"example.org:80\"", "-", "null"},
	{"status", "200", "200", "200", "400", "400"},
	{"bytes", "1234", "1234", "1234", "0", "0"},
	{"head-bytes", "78", "78", "78", "0", "0"},
	{"time-total", "56", "56", "56", "-", "null"},
	{"time-queue", "1", "1", "1", "-", "null"},
	{"time-program", "2", "2", "2", "-", "null"},
	{"time-send", "3", "3", "3", "-", "null"},
	{"tls-version", "TLSv1.3", "TLSv1.3", "\"TLSv1.3\"", "-", "null"},
	{"tls-cipher", "TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384",
	 "\"TLS_AES_256_GCM_SHA384\"", "-", "null"},
	{"pool", "php", "php", "\"php\"", "-", "null"},
	{"cache", "miss", "miss", "\"miss\"", "-", "null"},
	{"request-id", "0123-a.b_c", "0123-a.b_c", "\"0123-a.b_c\"", "-", "null"},
	{"trace-id", "4bf9", "4bf9", "\"4bf9\"", "-", "null"},
	{"request.0", "first\\x20value", "first value", "\"first value\"", "-", "null"},
	{"request.1", "-", "-", "null", "-", "null"},
	{"request.2", "-", "", "\"\"", "-", "null"},
	{"request.9", "-", "-", "null", "-", "null"},
	{"response.content-type", "text/plain", "text/plain", "\"text/plain\"", "-", "null"},
	{"response.X-A", "b", "b", "\"b\"", "-", "null"},
	{"response.X-Empty", "-", "", "\"\"", "-", "null"},
	{"response.X-Last", "\\x22q\\x22", "\\x22q\\x22", "\"\\\"q\\\"\"", "-", "null"},
	{"response.X", "-", "-", "null", "-", "null"},
};

static void check(const char *template, const char *before, const char *after, const char *name,
		  const struct access_line *line, const char *expected)
{
	char text[128], whole[256];

	snprintf(text, sizeof(text), "%s%s{%s}%s", template, before, name, after);
	snprintf(whole, sizeof(whole), "%s%s%s\n", before, expected, after);
	ck_assert_str_eq(write_line(text, line), whole);
}

START_TEST(test_variables)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		check("template:", "a ", " b", variables[i].name, &full, variables[i].full);
		check("template:", "\"", "\"", variables[i].name, &full, variables[i].quoted);
		check("template:", "<", ">", variables[i].name, &empty, variables[i].empty);
		check("json-template:", "[", "]", variables[i].name, &full, variables[i].json);
		check("json-template:", "[", "]", variables[i].name, &empty,
		      variables[i].empty_json);
	}
	/* Between quotes of the template, JSON has no other quotes and no null. */
	ck_assert_str_eq(write_line("json-template:\"<{user}>\" \"{host}\"", &full),
			 "\"<ann b>\" \"example.org:80\"\n");
	ck_assert_str_eq(write_line("json-template:\"<{user}>\"", &empty), "\"<>\"\n");
}
END_TEST

/* No input of a client ends its quotes, its word or the line. */
START_TEST(test_hostile)
{
	struct access_line line = full;
	char all[256];
	struct slice many[] = {{all, sizeof(all)}};
	unsigned words = 0, quotes = 0;

	for (unsigned i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	line.user = line.request = line.host = many[0];
	line.fields = many;
	line.field_count = 1;
	write_line("template:{user} {request} {target} {host} {request.0}", &line);
	for (const char *at = out; *at != '\n'; at++) {
		ck_assert(*at >= 0x20 && *at < 0x7f);
		words += *at == ' ';
		quotes += *at == '"';
	}
	ck_assert_uint_eq(words, 4);
	ck_assert_uint_eq(quotes, 0);
	write_line("template:\"{user}\" \"{request}\" \"{request.0}\"", &line);
	for (const char *at = out; *at != '\n'; at++) {
		ck_assert(*at >= 0x20 && *at < 0x7f);
		quotes += *at == '"';
	}
	ck_assert_uint_eq(quotes, 6);
}
END_TEST

/* Values are cut, then the line is; it is never longer than its limit. */
START_TEST(test_longest)
{
	static char much[100000], template[LOG_TEMPLATE_MAX + 1];
	struct access_line line = full;
	struct slice many[] = {{much, sizeof(much)}};

	memset(much, 'x', sizeof(much));
	line.user = line.request = line.host = many[0];
	line.fields = many;
	line.field_count = 1;
	ck_assert_uint_eq(strlen(write_line("template:{request.0}", &line)), ACCESS_FIELD_MAX + 1);
	ck_assert_uint_eq(strlen(write_line("template:{request}", &line)), ACCESS_REQUEST_MAX + 1);
	ck_assert_uint_eq(strlen(write_line("template:{user}", &line)), ACCESS_USER_MAX + 1);
	memset(much, 1, sizeof(much));
	line.bytes = UINT64_MAX;
	strcpy(template, "template:");
	for (unsigned i = 0; i < 20; i++)
		strcat(template, "\"{request}\" {bytes} {time-local}");
	write_line(template, &line);
	ck_assert_uint_gt(strlen(out), TEMPLATE_LINE_MAX / 2);
	strcpy(template, "json-template:");
	for (unsigned i = 0; i < 20; i++)
		strcat(template, "{request}{bytes}{user}");
	write_line(template, &line);
	ck_assert_uint_gt(strlen(out), TEMPLATE_LINE_MAX / 2);
	/* A line that is all literal. */
	strcpy(template, "template:");
	memset(template + 9, 'a', LOG_TEMPLATE_MAX - 9);
	ck_assert_uint_eq(strlen(write_line(template, &line)), LOG_TEMPLATE_MAX - 9 + 1);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, NULL);
	tcase_add_test(tcase, test_variables);
	tcase_add_test(tcase, test_hostile);
	tcase_add_test(tcase, test_longest);
}

RUN_SUITE("template-line", fill)
