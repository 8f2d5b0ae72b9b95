/* SPDX-License-Identifier: MIT */
/*
 * date.c - writes IMF-fixdate; reads it and the two older formats.
 *
 * gmtime_r(3) locks the time zone data, and strftime(3) depends on the locale; a
 * server needs neither, so this file computes the calendar (strptime(3) depends on
 * the locale too, and accepts invalid dates).  No state: any thread may call it;
 * the caller owns the buffer.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/date.h"

#define DAY_SECONDS 86400
#define FIRST_SECOND INT64_C(-62135596800) /* 1 January of year 1 */
#define LAST_SECOND INT64_C(253402300799)  /* 31 December 9999, 23:59:59 */

/*
 * Days are counted from 1 March of year 0.  If years begin in March, the leap day
 * is the last day of its year, of its four years, and of its 400 years.
 */
#define EPOCH_DAY 719468
#define FIRST_WEEKDAY 3 /* 1 March of year 0 was a Wednesday */
#define DAYS_400 146097
#define DAYS_100 36524
#define DAYS_4 1461
#define DAYS_1 365

static const char weekdays[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char months[12][4] = {"Mar", "Apr", "May", "Jun", "Jul", "Aug",
				   "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"};
/* In RFC 850 dates, what follows the first three letters of a day's name. */
static const char *const weekday_ends[7] = {"day",   "day", "sday", "nesday",
					    "rsday", "day", "urday"};
static const uint16_t month_starts[12] = {0, 31, 61, 92, 122, 153, 184, 214, 245, 275, 306, 337};

struct calendar_day {
	unsigned year;
	unsigned month; /* 0 is March */
	unsigned day;	/* of the month, from 1 */
};

/*
 * Takes whole periods out of *days, as many as fit but not more than most; the last
 * period may be one day longer.
 */
static unsigned take(unsigned *days, unsigned period, unsigned most)
{
	unsigned count = *days / period;

	if (count > most)
		count = most;
	*days -= count * period;
	return count;
}

static struct calendar_day calendar_day(unsigned days)
{
	struct calendar_day result;
	unsigned month;

	result.year = 400 * take(&days, DAYS_400, UINT32_MAX);
	result.year += 100 * take(&days, DAYS_100, 3);
	result.year += 4 * take(&days, DAYS_4, UINT32_MAX);
	result.year += take(&days, DAYS_1, 3);

	month = days / 31; /* the month, or the one before it */
	if (month < 11 && days >= month_starts[month + 1])
		month++;
	result.month = month;
	result.day = days - month_starts[month] + 1;
	if (month >= 10) /* January and February belong to the year that began in March */
		result.year++;
	return result;
}

static void two_digits(char *out, unsigned value)
{
	out[0] = (char)('0' + value / 10);
	out[1] = (char)('0' + value % 10);
}

void date_format(time_t when, char *out)
{
	int64_t seconds = when;
	struct calendar_day date;
	unsigned days, second;

	if (seconds < FIRST_SECOND)
		seconds = FIRST_SECOND;
	if (seconds > LAST_SECOND)
		seconds = LAST_SECOND;

	/* Positive from here on, so that division rounds down. */
	seconds += (int64_t)EPOCH_DAY * DAY_SECONDS;
	days = (unsigned)(seconds / DAY_SECONDS);
	second = (unsigned)(seconds % DAY_SECONDS);
	date = calendar_day(days);

	memcpy(out, "Www, dd Mmm yyyy hh:mm:ss GMT", DATE_LENGTH);
	memcpy(out, weekdays[(days + FIRST_WEEKDAY) % 7], 3);
	two_digits(out + 5, date.day);
	memcpy(out + 8, months[date.month], 3);
	two_digits(out + 12, date.year / 100);
	two_digits(out + 14, date.year % 100);
	two_digits(out + 17, second / 3600);
	two_digits(out + 20, second / 60 % 60);
	two_digits(out + 23, second % 60);
}

/* --- reading --------------------------------------------------------------- */

/* The rest of a text; at is NULL after the first mismatch. */
struct reader {
	const char *at, *end;
};

/* The parts of a date as written. */
struct parts {
	unsigned weekday, year, month, day, hour, minute, second;
};

static void expect_text(struct reader *reader, const char *text)
{
	size_t length = strlen(text);

	if (!reader->at || (size_t)(reader->end - reader->at) < length ||
	    memcmp(reader->at, text, length) != 0)
		reader->at = NULL;
	else
		reader->at += length;
}

static unsigned read_number(struct reader *reader, unsigned digits)
{
	unsigned value = 0;

	if (!reader->at || reader->end - reader->at < (ptrdiff_t)digits) {
		reader->at = NULL;
		return 0;
	}
	for (unsigned i = 0; i < digits; i++, reader->at++) {
		if (*reader->at < '0' || *reader->at > '9') {
			reader->at = NULL;
			return 0;
		}
		value = value * 10 + (unsigned)(*reader->at - '0');
	}
	return value;
}

/* Reads one of count names of three letters; case-sensitive (RFC 9110, section 5.6.7). */
static unsigned read_name(struct reader *reader, const char names[][4], unsigned count)
{
	unsigned i = 0;

	if (!reader->at || reader->end - reader->at < 3) {
		reader->at = NULL;
		return 0;
	}
	while (i < count && memcmp(reader->at, names[i], 3) != 0)
		i++;
	if (i == count) {
		reader->at = NULL;
		return 0;
	}
	reader->at += 3;
	return i;
}

static void read_time(struct reader *reader, struct parts *parts)
{
	parts->hour = read_number(reader, 2);
	expect_text(reader, ":");
	parts->minute = read_number(reader, 2);
	expect_text(reader, ":");
	parts->second = read_number(reader, 2);
}

/* " 06 Nov 1994 08:49:37 GMT" after "Sun,"; or with dashes and a year of two digits. */
static void read_rest(struct reader *reader, struct parts *parts, const char *dash, unsigned digits)
{
	expect_text(reader, " ");
	parts->day = read_number(reader, 2);
	expect_text(reader, dash);
	parts->month = read_name(reader, months, 12);
	expect_text(reader, dash);
	parts->year = read_number(reader, digits);
	expect_text(reader, " ");
	read_time(reader, parts);
	expect_text(reader, " GMT");
}

/* " Nov  6 08:49:37 1994" after "Sun". */
static void read_asctime(struct reader *reader, struct parts *parts)
{
	expect_text(reader, " ");
	parts->month = read_name(reader, months, 12);
	expect_text(reader, " ");
	if (reader->at && reader->at < reader->end && *reader->at == ' ') {
		reader->at++;
		parts->day = read_number(reader, 1);
	} else {
		parts->day = read_number(reader, 2);
	}
	expect_text(reader, " ");
	read_time(reader, parts);
	expect_text(reader, " ");
	parts->year = read_number(reader, 4);
}

static bool is_leap(unsigned year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Computes the days since 1 March of year 0; returns false if the day does not exist. */
static bool day_number(const struct parts *parts, unsigned *days)
{
	/* A year of this calendar begins in March. */
	unsigned year = parts->year - (parts->month >= 10);
	unsigned length =
		parts->month < 11
			? (unsigned)(month_starts[parts->month + 1] - month_starts[parts->month])
			: 28u + is_leap(parts->year);

	if (parts->year < 1 || parts->day < 1 || parts->day > length)
		return false;
	*days = year * 365 + year / 4 - year / 100 + year / 400 + month_starts[parts->month] +
		parts->day - 1;
	return true;
}

static unsigned year_of(time_t when)
{
	int64_t seconds = when;

	if (seconds < FIRST_SECOND)
		seconds = FIRST_SECOND;
	if (seconds > LAST_SECOND)
		seconds = LAST_SECOND;
	return calendar_day(
		       (unsigned)(seconds / DAY_SECONDS + EPOCH_DAY - (seconds % DAY_SECONDS < 0)))
		.year;
}

/* Returns the latest year with these two last digits that is at most 50 years ahead. */
static unsigned full_year(unsigned digits, time_t now)
{
	unsigned last = year_of(now) + 50;

	return last - (last + 100 - digits) % 100;
}

bool date_parse(struct slice text, time_t now, time_t *when)
{
	struct reader reader = {text.at, text.at + text.length};
	struct parts parts = {0};
	unsigned days;

	parts.weekday = read_name(&reader, weekdays, 7);
	if (!reader.at || reader.at == reader.end)
		return false;
	if (*reader.at == ',') {
		reader.at++;
		read_rest(&reader, &parts, " ", 4);
	} else if (*reader.at == ' ') {
		read_asctime(&reader, &parts);
	} else {
		expect_text(&reader, weekday_ends[parts.weekday]);
		expect_text(&reader, ",");
		read_rest(&reader, &parts, "-", 2);
		parts.year = full_year(parts.year, now);
	}
	/* 60 is a leap second; other clocks count it as the following second. */
	if (!reader.at || reader.at != reader.end || !day_number(&parts, &days) ||
	    (days + FIRST_WEEKDAY) % 7 != parts.weekday || parts.hour > 23 || parts.minute > 59 ||
	    parts.second > 60)
		return false;
	*when = (time_t)(((int64_t)days - EPOCH_DAY) * DAY_SECONDS + (int64_t)parts.hour * 3600 +
			 (int64_t)parts.minute * 60 + parts.second);
	return true;
}
