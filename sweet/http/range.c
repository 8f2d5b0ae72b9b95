/* SPDX-License-Identifier: MIT */
/*
 * range.c - see range.h.  No state, no allocation: any thread may call it.
 */

#include <stdbool.h>

#include "http/range.h"

#define OVERLAPS_MAX 2 /* RFC 9110, section 14.2: more overlaps are an attack, or an error */

struct reader {
	const char *at, *end;
};

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static void skip_blanks(struct reader *reader)
{
	while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t'))
		reader->at++;
}

/*
 * Reads digits; returns false if there are none.  A number that is too large
 * becomes UINT64_MAX, more than any file's size.
 */
static bool read_number(struct reader *reader, uint64_t *value)
{
	const char *start = reader->at;

	*value = 0;
	for (; reader->at < reader->end && is_digit(*reader->at); reader->at++) {
		unsigned digit = (unsigned)(*reader->at - '0');

		*value = *value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *value * 10 + digit;
	}
	return reader->at > start;
}

/* Reads "FIRST-LAST", "FIRST-" or "-LAST BYTES"; returns false if it is none of these. */
static bool read_range(struct reader *reader, uint64_t size, struct range *range, bool *satisfiable)
{
	uint64_t first, last;

	*range = (struct range){0};
	*satisfiable = false;
	if (reader->at < reader->end && *reader->at == '-') {
		reader->at++;
		if (!read_number(reader, &last))
			return false;
		*satisfiable = last > 0;
		range->length = last < size ? last : size;
		range->first = size - range->length;
		return true;
	}
	if (!read_number(reader, &first) || reader->at == reader->end || *reader->at++ != '-')
		return false;
	if (!read_number(reader, &last))
		last = UINT64_MAX;
	if (last < first)
		return false;
	if (first >= size)
		return true;
	if (last >= size)
		last = size - 1;
	*satisfiable = true;
	*range = (struct range){.first = first, .length = last - first + 1};
	return true;
}

/* Two ranges overlap if they share a byte; they may also be adjacent. */
static bool overlap(const struct range *a, const struct range *b)
{
	return a->first < b->first + b->length && b->first < a->first + a->length;
}

static bool touch(const struct range *a, const struct range *b)
{
	return a->first <= b->first + b->length && b->first <= a->first + a->length;
}

static void join(struct range *to, const struct range *from)
{
	uint64_t end = to->first + to->length, other = from->first + from->length;

	if (from->first < to->first)
		to->first = from->first;
	to->length = (other > end ? other : end) - to->first;
}

/*
 * Adds a range to the set, joined with the ranges that it touches, at the place of
 * the first of these.
 */
static void add(struct range_set *set, struct range range, unsigned *overlaps)
{
	unsigned place = set->count, kept = 0;
	bool overlapping = false;

	/* The ranges of the set do not touch each other, so one pass is enough. */
	for (unsigned i = 0; i < set->count; i++) {
		overlapping |= overlap(&set->ranges[i], &range);
		if (touch(&set->ranges[i], &range)) {
			join(&range, &set->ranges[i]);
			if (place == set->count)
				place = kept++;
			continue;
		}
		set->ranges[kept++] = set->ranges[i];
	}
	*overlaps += overlapping;
	if (place == set->count)
		place = kept++;
	set->ranges[place] = range;
	set->count = kept;
}

enum range_verdict range_parse(struct slice value, uint64_t size, struct range_set *set)
{
	struct reader reader = {value.at, value.at + value.length};
	unsigned given = 0, overlaps = 0;
	bool empty = false;

	set->count = 0;
	if (value.length < 6 || !slice_is((struct slice){value.at, 6}, "bytes="))
		return RANGE_IGNORED;
	reader.at += 6;
	for (;;) {
		struct range range;
		bool satisfiable;

		skip_blanks(&reader);
		while (reader.at < reader.end && *reader.at == ',') {
			reader.at++;
			skip_blanks(&reader);
		}
		if (reader.at == reader.end)
			break;
		if (++given > RANGES_MAX || !read_range(&reader, size, &range, &satisfiable))
			return RANGE_IGNORED;
		/*
		 * A suffix of an empty file is valid, but no response can state a
		 * range of 0 bytes.
		 */
		empty |= satisfiable && !range.length;
		if (range.length)
			add(set, range, &overlaps);
		skip_blanks(&reader);
		if (reader.at < reader.end && *reader.at != ',')
			return RANGE_IGNORED;
	}
	if (given == 0 || overlaps > OVERLAPS_MAX || empty)
		return RANGE_IGNORED;
	return set->count ? RANGE_GOOD : RANGE_UNSATISFIABLE;
}
