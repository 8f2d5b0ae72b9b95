/* SPDX-License-Identifier: MIT */
/*
 * fuzz-date.c - dates (sweet/base/date.c): an accepted date is written in the same way
 * again, and the C library agrees on the day.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/date.h"
#include "base/slice.h"

#include "fuzz.h"

#define NOW 1700000000 /* November 2023 */

/* Checks a text in the current form. */
static void check_fixdate(struct slice text, time_t when)
{
	bool leap = memcmp(text.at + 23, "60", 2) == 0;
	char again[DATE_LENGTH];

	/* The 61st second of a minute is the first one of the next minute here. */
	date_format(when - leap, again);
	if (leap)
		memcpy(again + 23, "60", 2);
	MUST(memcmp(again, text.at, DATE_LENGTH) == 0);
}

static void check_day(time_t when)
{
	char ours[DATE_LENGTH], theirs[64];
	struct tm parts;

	date_format(when, ours);
	MUST(gmtime_r(&when, &parts));
	MUST(strftime(theirs, sizeof(theirs), "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0);
	/* The C library writes years below 1000 without leading zeros. */
	if (parts.tm_year >= 1000 - 1900 && parts.tm_year <= 9999 - 1900)
		MUST(memcmp(ours, theirs, DATE_LENGTH) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = exact_copy(data, size);
	struct slice text = {copy, size};
	struct input input = {data, size};
	time_t when;

	if (date_parse(text, NOW, &when)) {
		if (size == DATE_LENGTH && copy[3] == ',')
			check_fixdate(text, when);
		check_day(when);
		/* A year of two digits is at most fifty years ahead. */
		if (copy[3] != ',' && copy[3] != ' ')
			MUST(when <= NOW + (time_t)51 * 366 * 86400);
	}
	free(copy);
	/* The same bytes as a number of seconds. */
	if (size >= 5)
		check_day((time_t)(input_number(&input, 5) % 253402300800));
	return 0;
}
