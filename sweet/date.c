/* SPDX-License-Identifier: MIT */
/*
 * date.c - writes IMF-fixdate.
 *
 * gmtime_r(3) takes the lock of the time zone data and strftime(3) asks the
 * locale; a server needs neither, so the calendar is computed here.  No state:
 * any thread may call it, the caller owns the buffer.
 */
#include <stdint.h>
#include <string.h>

#include <date.h>

#define DAY_SECONDS 86400
#define FIRST_SECOND INT64_C(-62135596800) /* 1 January of year 1 */
#define LAST_SECOND INT64_C(253402300799)  /* 31 December 9999, 23:59:59 */

/*
 * Days are counted from 1 March of year 0: with years that begin in March the
 * leap day is the last of its year, of its four years, and of its 400 years.
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
static const uint16_t month_starts[12] = {0, 31, 61, 92, 122, 153, 184, 214, 245, 275, 306, 337};

struct calendar_day {
	unsigned year;
	unsigned month; /* 0 is March */
	unsigned day;	/* of the month, from 1 */
};

/* Takes as many whole periods as fit out of *days; the last one may be a day longer. */
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

	month = days / 31; /* right, or one too low */
	if (month < 11 && days >= month_starts[month + 1])
		month++;
	result.month = month;
	result.day = days - month_starts[month] + 1;
	if (month >= 10) /* January and February end the year that March began */
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
