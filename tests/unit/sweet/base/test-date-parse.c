/* SPDX-License-Identifier: MIT */
/*
 * test-date-parse.c - unit tests of date_parse(): the three forms, invalid texts, and
 * every date that date_format() writes.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/date.h"
#include "base/slice.h"

#include "suite.h"

#define NOW INT64_C(1700000000) /* 14 November 2023 */
#define RFC INT64_C(784111777)	/* of the examples in RFC 9110, section 5.6.7 */

static const struct {
	const char *text;
	int64_t when;
} good[] = {
	{"Sun, 06 Nov 1994 08:49:37 GMT", RFC},
	{"Sunday, 06-Nov-94 08:49:37 GMT", RFC},
	{"Sun Nov  6 08:49:37 1994", RFC},
	{"Thu, 01 Jan 1970 00:00:00 GMT", 0},
	{"Wednesday, 01-Jan-70 00:00:00 GMT", 3155760000},
	{"Thursday, 01-Jan-70 00:00:00 GMT", -1},
	{"Thu Jan  1 00:00:00 1970", 0},
	{"Thu Jan 01 00:00:00 1970", 0}, /* a zero for the blank is a number of two digits */
	{"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800}, /* leap second */
	{"Tue, 29 Feb 2000 00:00:00 GMT", 951782400},
	{"Tue Feb 29 00:00:00 2000", 951782400},
	{"Mon, 01 Jan 0001 00:00:00 GMT", -62135596800},
	{"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799},
	{"Sat, 31 Dec 2022 23:59:59 GMT", 1672531199},
	{"Tuesday, 14-Nov-73 00:00:00 GMT", 3277843200}, /* 50 years ahead */
	{"Wednesday, 14-Nov-73 00:00:00 GMT", -1},
	{"Thursday, 14-Nov-74 00:00:00 GMT", 153619200}, /* 51 would be too many */
	{"Monday, 01-Jan-24 00:00:00 GMT", 1704067200},
	{"Saturday, 01-Jan-00 00:00:00 GMT", 946684800},
	{"Wednesday, 09-Nov-94 08:49:37 GMT", RFC + 3 * 86400},
};

/* None of these is a date. */
static const char *const bad[] = {
	"",
	"0",
	"S",
	"Sun",
	"Sun,",
	"Sunday",
	"now",
	"1994-11-06T08:49:37Z",
	" Sun, 06 Nov 1994 08:49:37 GMT",
	"Sun, 06 Nov 1994 08:49:37 GMT ",
	"Sun, 06 Nov 1994 08:49:37 GMTX",
	"Sun, 06 Nov 1994 08:49:37 GM",
	"Sun, 06 Nov 1994 08:49:37 gmt",
	"Sun, 06 Nov 1994 08:49:37 UTC",
	"Sun, 06 Nov 1994 08:49:37 AEST",
	"Sun, 06 Nov 1994 08:49:37 +0000",
	"Sun, 06 Nov 1994 08:49:37",
	"sun, 06 nov 1994 08:49:37 GMT",
	"SUN, 06 NOV 1994 08:49:37 GMT",
	"Mon, 06 Nov 1994 08:49:37 GMT", /* it was a Sunday */
	"Sun,06 Nov 1994 08:49:37 GMT",
	"Sun 06 Nov 1994 08:49:37 GMT",
	"Sun,  06  Nov  1994  08:49:37  GMT",
	"Sun, 6 Nov 1994 08:49:37 GMT",
	"Sun,  6 Nov 1994 08:49:37 GMT",
	"Sun, 06-Nov-1994 08:49:37 GMT",
	"Sun, 06 Nov 94 08:49:37 GMT",
	"Sun, 06 Nov 01994 08:49:37 GMT",
	"Sun, 06 Nov 1994 8:49:37 GMT",
	"Sun, 06 Nov 1994 24:00:00 GMT",
	"Sun, 06 Nov 1994 08:60:37 GMT",
	"Sun, 06 Nov 1994 08:49:61 GMT",
	"Sun, 06 Nov 1994 -8:49:37 GMT",
	"Sun, 06 Nov 1994 08.49.37 GMT",
	"Sun, 00 Nov 1994 08:49:37 GMT",
	"Wed, 31 Nov 1994 08:49:37 GMT",
	"Thu, 31 Nov 1994 08:49:37 GMT",
	"Tue, 29 Feb 1994 08:49:37 GMT",
	"Thu, 29 Feb 1900 08:49:37 GMT", /* no leap year */
	"Wed, 29 Feb 1900 08:49:37 GMT",
	"Sat, 01 Jan 0000 00:00:00 GMT",
	"Sun, 06 Abc 1994 08:49:37 GMT",
	"Abc, 06 Nov 1994 08:49:37 GMT",
	"Sun Nov 6 08:49:37 1994",
	"Sun Nov   6 08:49:37 1994",
	"Sun Nov  6 08:49:37 94",
	"Sun Nov  6 08:49:37 1994 GMT",
	"Sun  Nov  6 08:49:37 1994",
	"Sun Nov  0 08:49:37 1994",
	"Sunday, 06-Nov-1994 08:49:37 GMT",
	"Sunday 06-Nov-94 08:49:37 GMT",
	"Sunda, 06-Nov-94 08:49:37 GMT",
	"Sundays, 06-Nov-94 08:49:37 GMT",
	"Monday, 06-Nov-94 08:49:37 GMT",
	"Sunday, 06 Nov 94 08:49:37 GMT",
	"Sunday, 06-Nov-94 08:49:37",
	"Sunday, 06-Nov-94 08:49:37 GMT, Sunday, 06-Nov-94 08:49:37 GMT",
};

/* A heap copy of the exact size: memory checkers detect a read beyond. */
static bool parse(const char *text, size_t length, time_t *when)
{
	char *copy = must_alloc(length);
	bool parsed;

	memcpy(copy, text, length);
	parsed = date_parse((struct slice){copy, length}, (time_t)NOW, when);
	free(copy);
	return parsed;
}

START_TEST(test_good)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		time_t when = 0;
		bool parsed = parse(good[i].text, strlen(good[i].text), &when);

		/* -1: the day has another name in the intended year. */
		if (good[i].when == -1)
			ck_assert_msg(!parsed, "%s", good[i].text);
		else
			ck_assert_msg(parsed && when == good[i].when, "%s: %" PRId64, good[i].text,
				      (int64_t)when);
	}
}
END_TEST

START_TEST(test_bad)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		time_t when = 4711;

		ck_assert_msg(!parse(bad[i], strlen(bad[i]), &when), "%s", bad[i]);
		ck_assert_int_eq(when, 4711);
	}
}
END_TEST

/* No prefix of a date is a date, and a changed byte makes another date or none. */
START_TEST(test_pieces)
{
	for (size_t i = 0; i < 3; i++) {
		size_t length = strlen(good[i].text);
		char text[64];
		time_t when;

		for (size_t cut = 0; cut < length; cut++)
			ck_assert(!parse(good[i].text, cut, &when));
		for (size_t place = 0; place < length; place++) {
			for (unsigned byte = 0; byte < 256; byte++) {
				memcpy(text, good[i].text, length);
				if (text[place] == (char)byte)
					continue;
				text[place] = (char)byte;
				/* Only asctime accepts a blank for the zero of a day. */
				expect(!parse(text, length, &when) || when != RFC ||
				       (i == 2 && byte == '0'));
			}
		}
	}
}
END_TEST

START_TEST(test_both_ways)
{
	static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
					   "Thursday", "Friday", "Saturday"};
	int64_t first = INT64_C(-62135596800), last = INT64_C(253402300799);
	unsigned step = 9 * 86400 + 4231;

	for (int64_t at = first; at <= last; at += step * (INT64_C(1) + 1000 / scaled(1000) - 1)) {
		char text[DATE_LENGTH + 1], other[64];
		time_t when;
		struct tm tm;
		time_t time = (time_t)at;

		date_format(time, text);
		expect(parse(text, DATE_LENGTH, &when) && when == time);
		expect(gmtime_r(&time, &tm));
		snprintf(other, sizeof(other), "%.3s %.3s %2d %.8s %.4s", text, text + 8,
			 tm.tm_mday, text + 17, text + 12);
		expect(parse(other, strlen(other), &when) && when == time);
		/* The century of two digits: now it is 2023. */
		if (tm.tm_year + 1900 <= 1973 || tm.tm_year + 1900 > 2073)
			continue;
		snprintf(other, sizeof(other), "%s, %02d-%.3s-%02d %.8s GMT", days[tm.tm_wday],
			 tm.tm_mday, text + 8, tm.tm_year % 100, text + 17);
		expect(parse(other, strlen(other), &when) && when == time);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_good);
	tcase_add_test(tcase, test_bad);
	tcase_add_test(tcase, test_pieces);
	tcase_add_test(tcase, test_both_ways);
}

RUN_SUITE("date-parse", fill)
