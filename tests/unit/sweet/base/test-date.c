/* SPDX-License-Identifier: MIT */
/*
 * test-date.c - unit tests of date_format(): known dates, then many seconds
 * against the C library.  Single-threaded; runs in the C locale.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/date.h"

#include "suite.h"

#define GUARD 0x5a
#define FIRST INT64_C(-62135596800)
#define LAST INT64_C(253402300799)

static const struct {
	int64_t when;
	const char *text;
} known[] = {
	{0, "Thu, 01 Jan 1970 00:00:00 GMT"},
	{1, "Thu, 01 Jan 1970 00:00:01 GMT"},
	{-1, "Wed, 31 Dec 1969 23:59:59 GMT"},
	{784111777, "Sun, 06 Nov 1994 08:49:37 GMT"}, /* RFC 9110, section 5.6.7 */
	{951782399, "Mon, 28 Feb 2000 23:59:59 GMT"},
	{951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
	{951868800, "Wed, 01 Mar 2000 00:00:00 GMT"},
	{1078012800, "Sun, 29 Feb 2004 00:00:00 GMT"},
	{1709164800, "Thu, 29 Feb 2024 00:00:00 GMT"},
	{1735689599, "Tue, 31 Dec 2024 23:59:59 GMT"},
	{-2203891200, "Thu, 01 Mar 1900 00:00:00 GMT"}, /* no leap year */
	{-2203891201, "Wed, 28 Feb 1900 23:59:59 GMT"},
	{4107542399, "Sun, 28 Feb 2100 23:59:59 GMT"}, /* nor this */
	{4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"},
	{2147483647, "Tue, 19 Jan 2038 03:14:07 GMT"},
	{2147483648, "Tue, 19 Jan 2038 03:14:08 GMT"},
	{4294967296, "Sun, 07 Feb 2106 06:28:16 GMT"},
	{FIRST, "Mon, 01 Jan 0001 00:00:00 GMT"},
	{FIRST - 1, "Mon, 01 Jan 0001 00:00:00 GMT"},
	{INT64_MIN, "Mon, 01 Jan 0001 00:00:00 GMT"},
	{LAST, "Fri, 31 Dec 9999 23:59:59 GMT"},
	{LAST + 1, "Fri, 31 Dec 9999 23:59:59 GMT"},
	{INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"},
};

START_TEST(test_known)
{
	char out[DATE_LENGTH + 1];
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		memset(out, GUARD, sizeof(out));
		date_format((time_t)known[i].when, out);
		ck_assert_int_eq(out[DATE_LENGTH], GUARD);
		out[DATE_LENGTH] = '\0';
		ck_assert_str_eq(out, known[i].text);
	}
}
END_TEST

/* ck_assert() reports even success to the parent process: too slow for loops. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg("%s", #condition);                                            \
	} while (0)

static void compare(int64_t when)
{
	char expected[64], year[8], out[DATE_LENGTH + 1];
	time_t time = (time_t)when;
	struct tm tm;
	size_t i, bytes;

	REQUIRE(gmtime_r(&time, &tm));
	/* "%Y" does not pad; four digits are needed for years before 1000. */
	for (i = 4, bytes = (size_t)tm.tm_year + 1900; i-- > 0; bytes /= 10)
		year[i] = (char)('0' + bytes % 10);
	year[4] = '\0';
	bytes = strftime(expected, sizeof(expected), "%a, %d %b yyyy %H:%M:%S GMT", &tm);
	REQUIRE(bytes == DATE_LENGTH);
	memcpy(strstr(expected, "yyyy"), year, 4);
	date_format(time, out);
	out[DATE_LENGTH] = '\0';
	if (strcmp(out, expected) != 0)
		ck_abort_msg("%" PRId64 ": %s, not %s", when, out, expected);
}

/* A step of about nine days and some odd seconds, over all years. */
START_TEST(test_all_years)
{
	int64_t when;

	for (when = FIRST; when <= LAST; when += 9 * 86400 + 4231)
		compare(when);
}
END_TEST

/* Every day around now, its start and its end. */
START_TEST(test_days)
{
	int64_t day;

	for (day = -150 * 366; day < 150 * 366; day++) {
		compare(day * 86400);
		compare(day * 86400 + 86399);
	}
}
END_TEST

START_TEST(test_random)
{
	uint64_t state = 88172645463325252;
	int i;

	for (i = 0; i < 100000; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		compare(FIRST + (int64_t)(state % (uint64_t)(LAST - FIRST + 1)));
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_known);
	tcase_add_test(tcase, test_all_years);
	tcase_add_test(tcase, test_days);
	tcase_add_test(tcase, test_random);
}

RUN_SUITE("date", fill)
