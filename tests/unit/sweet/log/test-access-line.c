/* SPDX-License-Identifier: MIT */
/*
 * test-access-line.c - unit tests of access-line.c: each format, absent values,
 * hostile values of clients, limits, and the clock in several time zones.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/slice.h"
#include "log/access-line.h"
#include "log/log-format.h"

#include "suite.h"

#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"
/* clang-format off */
#define TEXT(text) {text, sizeof(text) - 1}
/* clang-format on */
#define MS UINT64_C(1000000)

static struct access_clock at_clock;
static char out[1 << 16];

static const struct access_line full = {
	.remote = "192.0.2.1",
	.remote_port = 4711,
	.date = DATE,
	.user = TEXT("ann"),
	.request = TEXT("GET /a?b HTTP/1.1"),
	.referer = TEXT("http://example.org/"),
	.agent = TEXT("Tester/1.0 (x; y)"),
	.host = TEXT("www.example.org:8080"),
	.status = 200,
	.bytes = 1234,
	.microseconds = 56,
	.queue_us = 1,
	.program_us = 2,
	.send_us = ACCESS_UNKNOWN,
};

static const struct access_line empty = {.remote = "::1", .date = DATE, .status = 400};

static void zone(const char *name, time_t second, long nanoseconds)
{
	setenv("TZ", name, 1);
	tzset();
	access_clock_set(&at_clock, (struct timespec){second, nanoseconds}, 5000 * MS);
}

static void set_up(void)
{
	zone("XYZ7", 971211336, 123 * 1000000);
}

/* Writes the line into memory of exactly its maximum size. */
static const char *write_line(enum access_format format, const struct access_line *line)
{
	size_t most = access_line_most(line), length;
	char *room = must_alloc(most);

	length = (size_t)(access_line_write(room, format, line, &at_clock, 5006 * MS) - room);
	ck_assert_uint_le(length, most);
	ck_assert_uint_lt(length, sizeof(out));
	memcpy(out, room, length);
	out[length] = '\0';
	free(room);
	return out;
}

START_TEST(test_formats)
{
	ck_assert_str_eq(write_line(ACCESS_SHORT, &full),
			 "192.0.2.1 [" DATE "] \"GET /a?b HTTP/1.1\" 200 1234 56us\n");
	ck_assert_str_eq(write_line(ACCESS_COMMON, &full),
			 "192.0.2.1 - ann [10/Oct/2000:13:55:36 -0700] \"GET /a?b HTTP/1.1\" 200 "
			 "1234\n");
	ck_assert_str_eq(write_line(ACCESS_COMBINED, &full),
			 "192.0.2.1 - ann [10/Oct/2000:13:55:36 -0700] \"GET /a?b HTTP/1.1\" 200 "
			 "1234 \"http://example.org/\" \"Tester/1.0 (x; y)\"\n");
	ck_assert_str_eq(write_line(ACCESS_JSON, &full),
			 "{\"time\":\"2000-10-10T20:55:36.129Z\",\"remote\":\"192.0.2.1\","
			 "\"remote_port\":4711,\"user\":\"ann\",\"method\":\"GET\","
			 "\"target\":\"/a?b\",\"protocol\":\"HTTP/1.1\",\"status\":200,"
			 "\"bytes\":1234,\"referer\":\"http://example.org/\","
			 "\"user_agent\":\"Tester/1.0 (x; y)\",\"host\":\"www.example.org:8080\","
			 "\"duration_us\":56,\"queue_us\":1,\"program_us\":2,\"send_us\":null}"
			 "\n");
}
END_TEST

/* Only with an id there is a member for it. */
START_TEST(test_request_id)
{
	struct access_line line = full;

	line.request_id = "0123-a.b_c";
	ck_assert_ptr_nonnull(strstr(write_line(ACCESS_JSON, &line),
				     "\"send_us\":null,\"request_id\":\"0123-a.b_c\"}\n"));
	line.trace_id = SLICE("4bf9");
	ck_assert_ptr_nonnull(strstr(write_line(ACCESS_JSON, &line),
				     "\"request_id\":\"0123-a.b_c\",\"trace_id\":\"4bf9\"}\n"));
}
END_TEST

START_TEST(test_absent)
{
	ck_assert_str_eq(write_line(ACCESS_SHORT, &empty), "::1 [" DATE "] \"\" 400 0 0us\n");
	ck_assert_str_eq(write_line(ACCESS_COMMON, &empty),
			 "::1 - - [10/Oct/2000:13:55:36 -0700] \"\" 400 -\n");
	ck_assert_str_eq(write_line(ACCESS_COMBINED, &empty),
			 "::1 - - [10/Oct/2000:13:55:36 -0700] \"\" 400 - \"-\" \"-\"\n");
	ck_assert_str_eq(write_line(ACCESS_JSON, &empty),
			 "{\"time\":\"2000-10-10T20:55:36.129Z\",\"remote\":\"::1\","
			 "\"remote_port\":0,\"user\":null,\"method\":null,\"target\":null,"
			 "\"protocol\":null,\"status\":400,\"bytes\":0,\"referer\":null,"
			 "\"user_agent\":null,\"host\":null,\"duration_us\":0,"
			 "\"queue_us\":0,\"program_us\":0,\"send_us\":0}\n");
}
END_TEST

/* Fields that are present and empty. */
START_TEST(test_empty)
{
	struct access_line line = full;

	line.user = line.request = line.referer = line.agent = line.host = (struct slice){"", 0};
	ck_assert_str_eq(write_line(ACCESS_COMBINED, &line),
			 "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"\" 200 1234 \"\" \"\"\n");
	ck_assert_ptr_nonnull(strstr(write_line(ACCESS_JSON, &line),
				     "\"user\":\"\",\"method\":null,\"target\":\"\","
				     "\"protocol\":null"));
}
END_TEST

START_TEST(test_request_words)
{
	static const struct {
		struct slice request;
		const char *json;
	} cases[] = {
		{TEXT("GET /a b  c HTTP/1.1"),
		 "\"method\":\"GET\",\"target\":\"/a b  c\",\"protocol\":\"HTTP/1.1\""},
		{TEXT("GET  HTTP/1.1"),
		 "\"method\":\"GET\",\"target\":\"\",\"protocol\":\"HTTP/1.1\""},
		{TEXT("GET /"), "\"method\":null,\"target\":\"GET /\",\"protocol\":null"},
		{TEXT("GET"), "\"method\":null,\"target\":\"GET\",\"protocol\":null"},
		{TEXT(" "), "\"method\":null,\"target\":\" \",\"protocol\":null"},
		{TEXT("  "), "\"method\":\"\",\"target\":\"\",\"protocol\":\"\""},
		{TEXT("\x16\x03\x01\xff\""),
		 "\"method\":null,\"target\":\"\\u0016\\u0003\\u0001\\u00ff\\\"\",\"protocol\":"
		 "null"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct access_line line = full;

		line.request = cases[i].request;
		ck_assert_msg(strstr(write_line(ACCESS_JSON, &line), cases[i].json) != NULL, "%s",
			      out);
	}
}
END_TEST

/* No input of a client ends its quotes, its field or the line. */
START_TEST(test_hostile)
{
	struct access_line line = full;
	char all[256];

	for (unsigned i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	line.user = line.request = line.referer = line.agent = line.host =
		(struct slice){all, sizeof(all)};
	for (int format = ACCESS_SHORT; format <= ACCESS_JSON; format++) {
		unsigned quotes = 0;
		const char *at;

		write_line((enum access_format)format, &line);
		for (at = out; *at && at[1]; at++) {
			ck_assert(*at >= 0x20 && *at < 0x7f);
			quotes += *at == '"' && at[-1] != '\\';
		}
		ck_assert_int_eq(*at, '\n');
		ck_assert_uint_eq(quotes, format == ACCESS_JSON	      ? 26 + 2 * 10
					  : format == ACCESS_COMBINED ? 6
								      : 2);
	}
	/* The name of a user is one word. */
	write_line(ACCESS_COMMON, &line);
	ck_assert_int_eq(strncmp(out, "192.0.2.1 - \\x00\\x01", 20), 0);
	ck_assert_int_eq(strncmp(strchr(out + 12, ' '), " [10/Oct", 8), 0);
}
END_TEST

/* The longest line, each byte escaped, is within its bound; and is cut off. */
START_TEST(test_longest)
{
	static char much[100000];
	struct access_line line = full;

	memset(much, 1, sizeof(much));
	line.user = line.request = line.referer = line.agent = line.host =
		(struct slice){much, sizeof(much)};
	line.status = -2147483647 - 1;
	line.bytes = line.microseconds = UINT64_MAX;
	line.queue_us = line.program_us = line.send_us = UINT64_MAX - 1;
	for (int format = ACCESS_SHORT; format <= ACCESS_JSON; format++)
		write_line((enum access_format)format, &line);
	ck_assert_ptr_nonnull(strstr(out, "\"status\":-2147483648,\"bytes\":18446744073709551615"));
	ck_assert_uint_lt(access_line_most(&line), 32768);
	memset(much, 'x', sizeof(much));
	write_line(ACCESS_JSON, &line);
	ck_assert_uint_eq(strlen(strstr(out, "\"target\":\"x")) -
				  strlen(strstr(out, "\",\"proto")) - strlen("\"target\":\""),
			  ACCESS_REQUEST_MAX);
}
END_TEST

START_TEST(test_clock)
{
	static const struct {
		const char *zone;
		time_t second;
		const char *local, *utc;
	} cases[] = {
		{"UTC0", 0, "01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00"},
		{"XYZ-5:30", 951782400, "29/Feb/2000:05:30:00 +0530", "2000-02-29T00:00:00"},
		{"XYZ3:30", 951782400, "28/Feb/2000:20:30:00 -0330", "2000-02-29T00:00:00"},
		{"XYZ0:30", 951782400, "28/Feb/2000:23:30:00 -0030", "2000-02-29T00:00:00"},
		{"XYZ-14", 1767225599, "01/Jan/2026:13:59:59 +1400", "2025-12-31T23:59:59"},
		/* Summer and winter. */
		{"CET-1CEST,M3.5.0,M10.5.0/3", 1785585600, "01/Aug/2026:14:00:00 +0200",
		 "2026-08-01T12:00:00"},
		{"CET-1CEST,M3.5.0,M10.5.0/3", 1769947200, "01/Feb/2026:13:00:00 +0100",
		 "2026-02-01T12:00:00"},
		{"UTC0", 253402300800, "01/Jan/10000:00:00:00 +0000", "10000-01-01T00:00:00"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		zone(cases[i].zone, cases[i].second, 0);
		ck_assert_str_eq(at_clock.local, cases[i].local);
		ck_assert_str_eq(at_clock.utc, cases[i].utc);
	}
	/* Beyond any calendar: some text, not none. */
	zone("UTC0", INT64_MAX, 0);
	(void)write_line(ACCESS_JSON, &full);
}
END_TEST

START_TEST(test_second)
{
	/* Set 123 ms after the second began, at 5,000 ms. */
	ck_assert(access_clock_good(&at_clock, 5000 * MS));
	ck_assert(access_clock_good(&at_clock, 5876 * MS));
	ck_assert(!access_clock_good(&at_clock, 5877 * MS));
	/* Used late, it is the end of its second. */
	(void)access_line_write(out, ACCESS_JSON, &empty, &at_clock, 9000 * MS);
	ck_assert_int_eq(strncmp(out, "{\"time\":\"2000-10-10T20:55:36.999Z\"", 34), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, NULL);
	tcase_add_test(tcase, test_formats);
	tcase_add_test(tcase, test_request_id);
	tcase_add_test(tcase, test_absent);
	tcase_add_test(tcase, test_empty);
	tcase_add_test(tcase, test_request_words);
	tcase_add_test(tcase, test_hostile);
	tcase_add_test(tcase, test_longest);
	tcase_add_test(tcase, test_clock);
	tcase_add_test(tcase, test_second);
}

RUN_SUITE("access-line", fill)
