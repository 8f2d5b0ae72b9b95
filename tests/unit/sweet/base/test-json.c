/* SPDX-License-Identifier: MIT */
/*
 * test-json.c - unit tests of json.c: forms, commas, and texts of any bytes.
 * Writes to memory.
 */
#include <glib.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

#include "suite.h"

static char *text;
static size_t length;
static struct json json;

static void begin(enum json_layout layout)
{
	json = (struct json){.to = open_memstream(&text, &length), .layout = layout};
	ck_assert_ptr_nonnull(json.to);
}

static void ends_as(const char *wanted)
{
	ck_assert_int_eq(fclose(json.to), 0);
	ck_assert_str_eq(text, wanted);
	free(text);
}

START_TEST(test_form)
{
	begin(JSON_LINES);
	json_open(&json, NULL, '[');
	json_open(&json, NULL, '{');
	json_number(&json, "a", 1);
	json_open(&json, "b", '{');
	json_number(&json, "c", 0);
	json_close(&json, '}');
	json_real(&json, "d", 1.25, 1);
	json_close(&json, '}');
	json_open(&json, NULL, '[');
	json_close(&json, ']');
	json_close(&json, ']');
	ends_as("[\n  {\n    \"a\": 1,\n    \"b\": {\n      \"c\": 0\n    },\n    \"d\": 1.2\n"
		"  },\n  []\n]\n");
}
END_TEST

START_TEST(test_one_line)
{
	begin(JSON_FLAT);
	for (unsigned i = 0; i < 2; i++) {
		json_open(&json, NULL, '{');
		json_number(&json, "a", i);
		json_open(&json, "b", '[');
		json_text(&json, NULL, "x");
		json_text(&json, NULL, "");
		json_close(&json, ']');
		json_close(&json, '}');
	}
	ends_as("{\"a\": 0, \"b\": [\"x\", \"\"]}\n{\"a\": 1, \"b\": [\"x\", \"\"]}\n");
}
END_TEST

/* As the status writes it: groups on one line each, and lists of lines within them. */
START_TEST(test_layouts)
{
	json = (struct json){.step = 1};
	json_open(&json, NULL, '{');
	json_open_as(&json, "a", '{', JSON_SPACED);
	json_bool(&json, "b", true);
	json_open(&json, "c", '[');
	json_null(&json, NULL);
	json_bool(&json, NULL, false);
	json_close(&json, ']');
	json_open_as(&json, "d", '[', JSON_LINES);
	json_open_as(&json, NULL, '{', JSON_DENSE);
	json_real(&json, "e", 0.12345, 4);
	json_number(&json, "f", 1);
	json_close(&json, '}');
	json_close(&json, ']');
	json_close(&json, '}');
	json_open_as(&json, "g", '{', JSON_SPACED);
	json_close(&json, '}');
	json_close(&json, '}');
	ck_assert_str_eq(json.text->str,
			 "{\n \"a\": { \"b\": true, \"c\": [null, false], \"d\": [\n"
			 "   {\"e\":0.1235,\"f\":1}\n  ] },\n \"g\": {}\n}\n");
	g_string_free(json.text, TRUE);
}
END_TEST

START_TEST(test_numbers)
{
	begin(JSON_FLAT);
	json_open(&json, NULL, '[');
	json_number(&json, NULL, UINT64_MAX);
	json_id(&json, NULL, SIZE_MAX);
	json_real(&json, NULL, 0, 1);
	json_real(&json, NULL, 1e9, 1);
	json_real(&json, NULL, NAN, 1);
	json_real(&json, NULL, -INFINITY, 1);
	json_close(&json, ']');
	ends_as("[18446744073709551615, \"18446744073709551615\", 0.0, 1000000000.0, 0.0, "
		"0.0]\n");
}
END_TEST

START_TEST(test_texts)
{
	static const struct {
		const char *given, *wanted;
	} cases[] = {
		{"plain", "plain"},
		{"\"\\/", "\\\"\\\\/"},
		{"\n\t\x1b[0m\x7f\x01", "\\u000a\\u0009\\u001b[0m\\u007f\\u0001"},
		{"\xc2\x85", "\\u0085"},
		{"\u00fc\u20ac\U0001f600", "\u00fc\u20ac\U0001f600"},
		{"a\xff"
		 "b",
		 "a\ufffdb"},
		/* Truncated, longer than its first byte says, half of a pair. */
		{"\xe2\x82", "\ufffd\ufffd"},
		{"\xc0\x80", "\ufffd\ufffd"},
		{"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
	};
	char wanted[200];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(JSON_FLAT);
		json_open(&json, NULL, '[');
		json_text(&json, NULL, cases[i].given);
		json_close(&json, ']');
		snprintf(wanted, sizeof(wanted), "[\"%s\"]\n", cases[i].wanted);
		ends_as(wanted);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_form);
	tcase_add_test(tcase, test_one_line);
	tcase_add_test(tcase, test_layouts);
	tcase_add_test(tcase, test_numbers);
	tcase_add_test(tcase, test_texts);
}

RUN_SUITE("json", fill)
