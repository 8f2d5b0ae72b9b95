/* SPDX-License-Identifier: MIT */
/*
 * test-range.c - unit tests of range_parse(): a table, then many random sets
 * against a map of bytes.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/range.h"

#include "suite.h"

#define SIZE 1000u
#define TEN "0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16,18-18"

/* For a content of SIZE bytes; result "" means ignored, "416" that status. */
static const struct {
	const char *value, *answer;
} cases[] = {
	{"bytes=0-499", "0+500"},
	{"bytes=500-999", "500+500"},
	{"bytes=-500", "500+500"},
	{"bytes=500-", "500+500"},
	{"bytes=0-", "0+1000"},
	{"bytes=0-0", "0+1"},
	{"bytes=999-999", "999+1"},
	{"bytes=-1", "999+1"},
	{"bytes=-1000", "0+1000"},
	{"bytes=-1001", "0+1000"},
	{"bytes=-18446744073709551615", "0+1000"},
	{"bytes=-99999999999999999999999", "0+1000"},
	{"bytes=0-1000", "0+1000"},
	{"bytes=0-18446744073709551615", "0+1000"},
	{"bytes=1-99999999999999999999999", "1+999"},
	{"bytes=000-0009", "0+10"},
	{"Bytes=0-1", "0+2"}, /* range units are case-insensitive */
	{"BYTES=0-1", "0+2"},
	/* Completely beyond the end. */
	{"bytes=1000-", "416"},
	{"bytes=1000-1001", "416"},
	{"bytes=99999999999999999999999-", "416"},
	{"bytes=99999999999999999999999-99999999999999999999999", "416"},
	{"bytes=-0", "416"},
	{"bytes=-00", "416"},
	{"bytes=-0,1000-", "416"},
	/* Partly beyond the end. */
	{"bytes=1000-,5-6", "5+2"},
	{"bytes=-0,5-6", "5+2"},
	/* Several. */
	{"bytes=0-0,-1", "0+1 999+1"},
	{"bytes=0-1,4-5", "0+2 4+2"},
	{"bytes=4-5,0-1", "4+2 0+2"}, /* in the order of the request */
	{"bytes=0-1, 4-5", "0+2 4+2"},
	{"bytes= 0-1\t,\t4-5 ", "0+2 4+2"},
	{"bytes=,0-1,,4-5,", "0+2 4+2"},
	/* Merged, at the place of the first of them. */
	{"bytes=0-5,3-9", "0+10"},
	{"bytes=3-9,0-5", "0+10"},
	{"bytes=0-5,6-9", "0+10"},
	{"bytes=6-9,0-5", "0+10"},
	{"bytes=0-5,7-9", "0+6 7+3"},
	{"bytes=0-9,3-5", "0+10"},
	{"bytes=3-5,0-9", "0+10"},
	{"bytes=0-1,10-11,4-5,2-3", "0+6 10+2"},
	{"bytes=20-21,0-1,4-5,2-3", "20+2 0+6"},
	{"bytes=0-1,20-21,40-41,1-40", "0+42"},
	{"bytes=40-41,0-1,20-21,60-61,1-21", "40+2 0+22 60+2"},
	{"bytes=0-,0-", "0+1000"},
	/* Two that overlap may be a mistake, three are treated as an attack. */
	{"bytes=0-9,5-14,10-19", "0+20"},
	{"bytes=0-9,5-14,10-19,15-24", ""},
	{"bytes=0-,0-,0-,0-", ""},
	{"bytes=0-1,2-3,4-5,6-7,8-9", "0+10"},
	/* At most sixteen. */
	{"bytes=" TEN ",30-30,32-32,34-34,36-36,38-38,40-40",
	 "0+1 2+1 4+1 6+1 8+1 10+1 12+1 14+1 16+1 18+1 30+1 32+1 34+1 36+1 38+1 40+1"},
	{"bytes=" TEN ",30-30,32-32,34-34,36-36,38-38,40-40,42-42", ""},
	{"bytes=" TEN ",30-30,32-32,34-34,36-36,38-38,40-40,2000-", ""},
	/* Other units, and invalid values. */
	{"", ""},
	{"bytes", ""},
	{"bytes=", ""},
	{"bytes=,", ""},
	{"bytes= ", ""},
	{"bytes=-", ""},
	{"bytes=--1", ""},
	{"bytes=-1-", ""},
	{"bytes=0", ""},
	{"bytes=a-b", ""},
	{"bytes=0-b", ""},
	{"bytes=0-1b", ""},
	{"bytes=0x0-1", ""},
	{"bytes=+0-1", ""},
	{"bytes=1-0", ""},
	{"bytes=1001-1000", ""},
	{"bytes=0-1,1-0", ""},
	{"bytes=0-1;2-3", ""},
	{"bytes=0-1 2-3", ""},
	{"bytes=0 -1", ""},
	{"bytes=0- 1", ""},
	{"bytes=- 1", ""},
	{"bytes =0-1", ""},
	{" bytes=0-1", ""},
	{"bytes:0-1", ""},
	{"bytes 0-1", ""},
	{"byte=0-1", ""},
	{"bytess=0-1", ""},
	{"items=0-1", ""},
	{"none=0-1", ""},
	{"bytes=0-1, bytes=4-5", ""}, /* two lines of the field */
};

static void print(char *text, enum range_verdict verdict, const struct range_set *set)
{
	*text = '\0';
	if (verdict == RANGE_UNSATISFIABLE)
		strcpy(text, "416");
	for (unsigned i = 0; verdict == RANGE_GOOD && i < set->count; i++)
		text += sprintf(text, "%s%" PRIu64 "+%" PRIu64, i ? " " : "", set->ranges[i].first,
				set->ranges[i].length);
}

static enum range_verdict parse(const char *value, uint64_t size, struct range_set *set)
{
	size_t length = strlen(value);
	char *copy = must_alloc(length);
	enum range_verdict verdict;

	memcpy(copy, value, length);
	verdict = range_parse((struct slice){copy, length}, size, set);
	free(copy);
	return verdict;
}

START_TEST(test_table)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct range_set set;
		char text[1024];

		print(text, parse(cases[i].value, SIZE, &set), &set);
		ck_assert_msg(strcmp(text, cases[i].answer) == 0, "%s: \"%s\", not \"%s\"",
			      cases[i].value, text, cases[i].answer);
	}
}
END_TEST

START_TEST(test_other_sizes)
{
	struct range_set set;

	/* An empty content has an end, but no range can name it. */
	ck_assert_int_eq(parse("bytes=-5", 0, &set), RANGE_IGNORED);
	ck_assert_int_eq(parse("bytes=-0", 0, &set), RANGE_UNSATISFIABLE);
	ck_assert_int_eq(parse("bytes=0-", 0, &set), RANGE_UNSATISFIABLE);
	ck_assert_int_eq(parse("bytes=0-,-5", 0, &set), RANGE_IGNORED);
	ck_assert_int_eq(parse("bytes=0-", 1, &set), RANGE_GOOD);
	/* Beyond 32 bits. */
	ck_assert_int_eq(parse("bytes=9663676416-9663676425", UINT64_C(10) << 30, &set),
			 RANGE_GOOD);
	ck_assert_uint_eq(set.ranges[0].first, UINT64_C(9) << 30);
	ck_assert_uint_eq(set.ranges[0].length, 10);
	ck_assert_int_eq(parse("bytes=0-,-9223372036854775807", INT64_MAX, &set), RANGE_GOOD);
	ck_assert_uint_eq(set.count, 1);
	ck_assert_uint_eq(set.ranges[0].first, 0);
	ck_assert_uint_eq(set.ranges[0].length, INT64_MAX);
}
END_TEST

/* The result contains the requested bytes, once, in pieces that are not adjacent. */
START_TEST(test_random)
{
	uint64_t state = 88172645463325252;
	unsigned good = 0, rounds = scaled(100000);

	for (unsigned round = 0; round < rounds; round++) {
		bool asked[64] = {false}, sent[65] = {false};
		unsigned count = 1 + (unsigned)(random_next(&state) % 8);
		char value[256] = "bytes=";
		struct range_set set;
		enum range_verdict verdict;

		for (unsigned i = 0; i < count; i++) {
			unsigned first = (unsigned)(random_next(&state) % 70);
			unsigned last = first + (unsigned)(random_next(&state) % 8);

			sprintf(value + strlen(value), "%s%u-%u", i ? "," : "", first, last);
			for (unsigned at = first; at <= last && at < 64; at++)
				asked[at] = true;
		}
		verdict = parse(value, 64, &set);
		if (verdict == RANGE_UNSATISFIABLE)
			expect(!memchr(asked, true, sizeof(asked)));
		if (verdict != RANGE_GOOD)
			continue;
		good++;
		expect(set.count >= 1 && set.count <= count);
		for (unsigned i = 0; i < set.count; i++) {
			uint64_t first = set.ranges[i].first, length = set.ranges[i].length;

			expect(length > 0 && first < 64 && length <= 64 - first);
			/* No other piece contains these bytes or the adjacent ones. */
			expect(first == 0 || !sent[first - 1]);
			expect(!sent[first + length]);
			for (uint64_t at = first; at < first + length; at++) {
				expect(!sent[at]);
				sent[at] = true;
			}
		}
		expect(memcmp(asked, sent, sizeof(asked)) == 0);
	}
	ck_assert_uint_gt(good, rounds / 4);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_table);
	tcase_add_test(tcase, test_other_sizes);
	tcase_add_test(tcase, test_random);
}

RUN_SUITE("range", fill)
