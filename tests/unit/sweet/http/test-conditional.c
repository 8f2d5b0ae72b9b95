/* SPDX-License-Identifier: MIT */
/*
 * test-conditional.c - unit tests of conditional.c: what is extracted from a request,
 * and the result by RFC 9110, section 13.2.2.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/conditional.h"
#include "http/request.h"

#include "request-fixture.h"
#include "suite.h"

#define NOW 1700000000			   /* Tue, 14 Nov 2023 22:13:20 GMT */
#define MODIFIED (NOW - 86400)		   /* of the file */
#define AT "Mon, 13 Nov 2023 22:13:20 GMT" /* that time as text */
#define BEFORE "Mon, 13 Nov 2023 22:13:19 GMT"
#define AFTER "Mon, 13 Nov 2023 22:13:21 GMT"
#define FUTURE "Fri, 14 Nov 2036 22:13:20 GMT"
#define SAME "\"abc\""
#define OTHER "\"abd\""

static const struct representation file = {
	.etag = {SAME, 5},
	.modified = MODIFIED,
};

#define WHOLE CONDITION_PROCEED_WHOLE
#define RANGE CONDITION_PROCEED
#define NOT_MODIFIED CONDITION_NOT_MODIFIED
#define FAILED CONDITION_FAILED

#define RANGE_FIELD "Range: bytes=0-1\r\n"

static const struct {
	const char *fields;
	enum condition_verdict verdict;
} cases[] = {
	{"", WHOLE},
	{RANGE_FIELD, RANGE},
	{"range: bytes=0-1\r\n", RANGE},
	{"RANGE: what it says is not our business\r\n", RANGE},
	/* Step 1: If-Match. */
	{"If-Match: " SAME "\r\n", WHOLE},
	{"if-match: *\r\n", WHOLE},
	{"If-Match: " OTHER "\r\n", FAILED},
	{"If-Match: W/" SAME "\r\n", FAILED}, /* strong comparison */
	{"If-Match: " OTHER ", " SAME "\r\n", WHOLE},
	{"If-Match: " OTHER "\r\nIf-Match: " SAME "\r\n", WHOLE},
	{"If-Match: " SAME "\r\nHost2: x\r\nIf-Match: " OTHER "\r\n", WHOLE},
	{"If-Match:\r\n", FAILED},
	{"If-Match: abc\r\n", FAILED},
	{"If-Match: " SAME "\r\n" RANGE_FIELD, RANGE},
	{"If-Match: " OTHER "\r\n" RANGE_FIELD, FAILED},
	{"If-Match: " SAME "\r\nIf-Unmodified-Since: " BEFORE "\r\n", WHOLE}, /* ignored then */
	{"If-Match: " OTHER "\r\nIf-Unmodified-Since: " AT "\r\n", FAILED},
	{"If-Match: " OTHER "\r\nIf-None-Match: " SAME "\r\n", FAILED},
	{"If-Match: " SAME "\r\nIf-None-Match: " SAME "\r\n", NOT_MODIFIED},
	/* Step 2: If-Unmodified-Since. */
	{"If-Unmodified-Since: " AT "\r\n", WHOLE},
	{"If-Unmodified-Since: " AFTER "\r\n", WHOLE},
	{"If-Unmodified-Since: " BEFORE "\r\n", FAILED},
	{"If-Unmodified-Since: yesterday\r\n", WHOLE},
	{"If-Unmodified-Since: " BEFORE "\r\nIf-Unmodified-Since: " BEFORE "\r\n", WHOLE},
	{"If-Unmodified-Since: Monday, 13-Nov-23 22:13:19 GMT\r\n", FAILED},
	{"If-Unmodified-Since: Mon Nov 13 22:13:19 2023\r\n", FAILED},
	{"If-Unmodified-Since: " BEFORE "\r\n" RANGE_FIELD, FAILED},
	{"If-Unmodified-Since: " AT "\r\nIf-None-Match: " SAME "\r\n", NOT_MODIFIED},
	{"If-Unmodified-Since: " BEFORE "\r\nIf-None-Match: " SAME "\r\n", FAILED},
	/* Step 3: If-None-Match. */
	{"If-None-Match: " SAME "\r\n", NOT_MODIFIED},
	{"If-None-Match: W/" SAME "\r\n", NOT_MODIFIED}, /* weak comparison */
	{"If-None-Match: *\r\n", NOT_MODIFIED},
	{"If-None-Match: " OTHER "\r\n", WHOLE},
	{"If-None-Match: " OTHER ", W/" SAME "\r\n", NOT_MODIFIED},
	{"If-None-Match: " OTHER "\r\nIf-None-Match: " SAME "\r\n", NOT_MODIFIED},
	{"If-None-Match: " SAME "\r\n" RANGE_FIELD, NOT_MODIFIED},
	{"If-None-Match: " OTHER "\r\n" RANGE_FIELD, RANGE},
	{"If-None-Match: " OTHER "\r\nIf-Modified-Since: " AFTER "\r\n", WHOLE}, /* not evaluated */
	{"If-None-Match:\r\nIf-Modified-Since: " AFTER "\r\n", WHOLE},
	{"If-None-Match: " SAME "\r\nIf-Modified-Since: " BEFORE "\r\n", NOT_MODIFIED},
	/* Step 4: If-Modified-Since. */
	{"If-Modified-Since: " AT "\r\n", NOT_MODIFIED},
	{"If-Modified-Since: " AFTER "\r\n", NOT_MODIFIED},
	{"If-Modified-Since: " FUTURE "\r\n", NOT_MODIFIED},
	{"If-Modified-Since: " BEFORE "\r\n", WHOLE},
	{"If-Modified-Since: 0\r\n", WHOLE},
	{"If-Modified-Since: " AT "; length=5\r\n", WHOLE},
	{"If-Modified-Since: " AT "\r\nIf-Modified-Since: " AT "\r\n", WHOLE},
	{"If-Modified-Since: " AT "\r\n" RANGE_FIELD, NOT_MODIFIED},
	{"If-Modified-Since: " BEFORE "\r\n" RANGE_FIELD, RANGE},
	/* Step 5: If-Range. */
	{RANGE_FIELD "If-Range: " SAME "\r\n", RANGE},
	{"If-Range: " SAME "\r\n" RANGE_FIELD, RANGE},
	{RANGE_FIELD "If-Range: " OTHER "\r\n", WHOLE},
	{RANGE_FIELD "If-Range: W/" SAME "\r\n", WHOLE}, /* strong comparison */
	{RANGE_FIELD "If-Range: *\r\n", WHOLE},
	{RANGE_FIELD "If-Range: " OTHER ", " SAME "\r\n", WHOLE}, /* a list is invalid */
	{RANGE_FIELD "If-Range:\r\n", WHOLE},
	{RANGE_FIELD "If-Range: " AT "\r\n", RANGE},
	{RANGE_FIELD "If-Range: " BEFORE "\r\n", WHOLE},
	{RANGE_FIELD "If-Range: " AFTER "\r\n", WHOLE}, /* exactly this one, or not at all */
	{RANGE_FIELD "If-Range: abc\r\n", WHOLE},
	{"If-Range: " SAME "\r\n", WHOLE},
	{"If-Range: " OTHER "\r\n", WHOLE},
	{RANGE_FIELD "If-Match: " SAME "\r\nIf-Range: " OTHER "\r\n", WHOLE},
	{RANGE_FIELD "If-None-Match: " SAME "\r\nIf-Range: " SAME "\r\n", NOT_MODIFIED},
	/* Names that only look similar. */
	{"If-Matches: " OTHER "\r\n", WHOLE},
	{"If-Mitch: " OTHER "\r\n", WHOLE},
	{"Rango: bytes=0-1\r\n", WHOLE},
	{"If-Modified-Until: " AT "\r\n", WHOLE},
};

static bool take(struct conditions *conditions, const char *fields, size_t length)
{
	char *head = must_alloc(length + 64);
	size_t start = strlen(L H);
	bool good;

	memcpy(head, L H, start);
	memcpy(head + start, fields, length);
	memcpy(head + start + length, E, 2);
	ck_assert_int_eq(request_parse(&request, head, start + length + 2), 0);
	memset(conditions, 0x5a, sizeof(*conditions));
	good = conditions_take(conditions, &request);
	free(head); /* the result does not refer to the head */
	return good;
}

START_TEST(test_table)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct conditions conditions;
		enum condition_verdict verdict, head;

		ck_assert(take(&conditions, cases[i].fields, strlen(cases[i].fields)));
		verdict = head = WHOLE;
		if (conditions.any) {
			verdict = conditions_evaluate(&conditions, false, &file, NOW);
			head = conditions_evaluate(&conditions, true, &file, NOW);
		}
		ck_assert_msg(verdict == cases[i].verdict, "%s: %d", cases[i].fields, verdict);
		/* The same for HEAD, except that it ignores ranges. */
		ck_assert_msg(head == (verdict == RANGE ? WHOLE : verdict), "HEAD, %s: %d",
			      cases[i].fields, head);
	}
}
END_TEST

/* A date that says less counts for all but If-Range, which needs the same bytes. */
START_TEST(test_weak_date)
{
	const struct representation weak = {
		.etag = file.etag, .modified = file.modified, .weak_date = true};
	static const struct {
		const char *fields;
		enum condition_verdict verdict;
	} rows[] = {{RANGE_FIELD "If-Range: " AT "\r\n", WHOLE},
		    {RANGE_FIELD "If-Range: " SAME "\r\n", RANGE},
		    {RANGE_FIELD, RANGE},
		    {"If-Modified-Since: " AT "\r\n", NOT_MODIFIED},
		    {"If-Unmodified-Since: " AT "\r\n", WHOLE},
		    {"If-Unmodified-Since: " BEFORE "\r\n", FAILED}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conditions conditions;

		ck_assert(take(&conditions, rows[i].fields, strlen(rows[i].fields)));
		ck_assert_msg(conditions_evaluate(&conditions, false, &weak, NOW) ==
				      rows[i].verdict,
			      "%s", rows[i].fields);
	}
}
END_TEST

/* For a request without them only one byte is read. */
START_TEST(test_none)
{
	static const char fields[] = "Accept: */*\r\nUser-Agent: test\r\nOrder: 1\r\n"
				     "Accepted: 1\r\nCache-Control: no-cache\r\n";
	struct conditions conditions;

	ck_assert(take(&conditions, fields, strlen(fields)));
	ck_assert(!request.conditional);
	ck_assert(!conditions.any);
	ck_assert_uint_eq(conditions.present, 0x5a5a5a5a);
}
END_TEST

/* Within its second a date is not a strong validator. */
START_TEST(test_date_of_this_second)
{
	static const char fields[] = RANGE_FIELD "If-Range: " AT "\r\n";
	struct conditions conditions;

	ck_assert(take(&conditions, fields, strlen(fields)));
	ck_assert_int_eq(conditions_evaluate(&conditions, false, &file, MODIFIED), WHOLE);
	ck_assert_int_eq(conditions_evaluate(&conditions, false, &file, MODIFIED + 1), RANGE);
}
END_TEST

START_TEST(test_value)
{
	static const char fields[] =
		"If-None-Match: \"1\"\r\nRange: bytes=1-2\r\nIf-None-Match: \"2\"\r\n"
		"If-None-Match: \"3\"\r\n";
	static const char joined[] = "\"1\", \"2\", \"3\"";
	struct conditions conditions;
	struct slice value;

	ck_assert(take(&conditions, fields, strlen(fields)));
	value = conditions_value(&conditions, CONDITION_NONE_MATCH);
	ck_assert_uint_eq(value.length, strlen(joined));
	ck_assert_mem_eq(value.at, joined, value.length);
	value = conditions_value(&conditions, CONDITION_RANGE);
	ck_assert_uint_eq(value.length, 9);
	ck_assert_mem_eq(value.at, "bytes=1-2", 9);
}
END_TEST

/* As much as fits, and not a byte more; in one line or in many. */
START_TEST(test_long)
{
	static const char name[] = "If-None-Match: ";
	char fields[8192];
	struct conditions conditions;
	size_t at = 0;

	for (size_t length = CONDITIONS_TEXT_MAX - 1; length <= CONDITIONS_TEXT_MAX + 1; length++) {
		memcpy(fields, name, strlen(name));
		memset(fields + strlen(name), 'x', length);
		memcpy(fields + strlen(name) + length, E, 2);
		ck_assert_int_eq(take(&conditions, fields, strlen(name) + length + 2),
				 length <= CONDITIONS_TEXT_MAX);
	}
	for (unsigned i = 0; i < 60; i++)
		at += (size_t)sprintf(fields + at, "If-Match: \"%0*u\"\r\n", 100, i);
	ck_assert(!take(&conditions, fields, at));
}
END_TEST

/* Of two variants with one date, a date does not select a part. */
START_TEST(test_dated_range)
{
	static const struct {
		const char *fields;
		bool range;
	} ranges[] = {
		{RANGE_FIELD, true},
		{RANGE_FIELD "If-Range: " SAME "\r\n", true},
		{RANGE_FIELD "If-Range: " OTHER "\r\n", true},
		{RANGE_FIELD "If-Range: " AT "\r\n", false},
		{RANGE_FIELD "If-Range: W/" SAME "\r\n", false},
		{RANGE_FIELD "If-Range:\r\n", false},
		{"If-Match: " SAME "\r\n" RANGE_FIELD, true},
	};
	struct conditions conditions;

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		ck_assert(take(&conditions, ranges[i].fields, strlen(ranges[i].fields)));
		conditions_ignore_dated_range(&conditions);
		ck_assert_msg(!(conditions.present & 1u << CONDITION_RANGE) == !ranges[i].range,
			      "%s", ranges[i].fields);
	}
	ck_assert(take(&conditions, "", 0));
	conditions_ignore_dated_range(&conditions);
}
END_TEST

START_TEST(test_named)
{
	static const struct {
		const char *fields;
		bool named;
	} named[] = {
		{"", false},
		{RANGE_FIELD, false},
		{"If-Range: " SAME "\r\n", true},
		{"If-Range: " OTHER "\r\n", false},
		{"If-Range: W/" SAME "\r\n", false},
		{"If-Match: " OTHER ", " SAME "\r\n", true},
		{"If-None-Match: " SAME "\r\n", false},
	};
	struct conditions conditions;

	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		ck_assert(take(&conditions, named[i].fields, strlen(named[i].fields)));
		ck_assert_msg(conditions_name(&conditions, file.etag) == named[i].named, "%s",
			      named[i].fields);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_table);
	tcase_add_test(tcase, test_weak_date);
	tcase_add_test(tcase, test_none);
	tcase_add_test(tcase, test_date_of_this_second);
	tcase_add_test(tcase, test_value);
	tcase_add_test(tcase, test_long);
	tcase_add_test(tcase, test_dated_range);
	tcase_add_test(tcase, test_named);
}

RUN_SUITE("conditional", fill)
