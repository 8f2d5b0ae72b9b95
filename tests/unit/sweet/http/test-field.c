/* SPDX-License-Identifier: MIT */
/*
 * test-field.c - unit tests of the parts of field values; test-fields.c tests lines.  Single-threaded; input is a heap copy of its
 * exact size, so that memory checkers detect a read beyond.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/field.h"

#include "suite.h"

/* Writes each part in brackets. */
static void split(const char *text, char *out)
{
	size_t length = strlen(text);
	char *bytes = must_alloc(length);
	struct slice rest = {bytes, length}, part;

	memcpy(bytes, text, length);
	*out = '\0';
	while (field_part(&rest, ',', &part))
		out += sprintf(out, "[%.*s]", (int)part.length, part.at);
	free(bytes);
}

START_TEST(test_parts)
{
	static const char *const cases[][2] = {
		{"", "[]"},
		{"a", "[a]"},
		{" a\t", "[a]"},
		{"a,b", "[a][b]"},
		{"a , b c ,d", "[a][b c][d]"},
		{",", "[][]"},
		{"a,", "[a][]"},
		{"a=\"b,c\",d", "[a=\"b,c\"][d]"},
		{"a=\"b\\\",c\",d", "[a=\"b\\\",c\"][d]"},
		{"a\\,b", "[a\\][b]"},
		{"a=\"b,c", "[a=\"b,c]"},
		{"a=\"b\\", "[a=\"b\\]"},
	};
	char out[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		split(cases[i][0], out);
		ck_assert_str_eq(out, cases[i][1]);
	}
}
END_TEST

START_TEST(test_no_parts)
{
	struct slice rest = {NULL, 0}, part;

	ck_assert(!field_part(&rest, ',', &part));
	ck_assert_uint_eq(field_trim(rest).length, 0);
}
END_TEST

START_TEST(test_numbers)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t value;
	} cases[] = {
		{"0", true, 0},
		{"007", true, 7},
		{"18446744073709551614", true, UINT64_MAX - 1},
		{"18446744073709551615", true, UINT64_MAX},
		{"18446744073709551616", true, UINT64_MAX},
		{"184467440737095516150", true, UINT64_MAX},
		{"99999999999999999999999999999999", true, UINT64_MAX},
		{"", false, 0},
		{"-1", false, 0},
		{"+1", false, 0},
		{" 1", false, 0},
		{"1 ", false, 0},
		{"0x1", false, 0},
		{"1.0", false, 0},
		{"/", false, 0},
		{":", false, 0},
		{"\xb1", false, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slice text = {cases[i].text, strlen(cases[i].text)};
		uint64_t value;

		ck_assert_msg(field_number(text, &value) == cases[i].good, "%s", cases[i].text);
		if (cases[i].good)
			ck_assert_msg(value == cases[i].value, "%s", cases[i].text);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_parts);
	tcase_add_test(tcase, test_no_parts);
	tcase_add_test(tcase, test_numbers);
}

RUN_SUITE("field", fill)
