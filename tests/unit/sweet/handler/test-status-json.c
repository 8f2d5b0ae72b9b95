/* SPDX-License-Identifier: MIT */
/*
 * test-status-json.c - unit tests of status-json.c: the text is JSON for any strings
 * and any locale, and has the right values.  System tests check that parsers accept
 * it.
 */
#include <glib.h>
#include <locale.h>
#include <stdbool.h>
#include <string.h>
#include <nabc.h>

#include "handler/status-data.h"
#include "handler/status-field.h"
#include "handler/status-json.h"

#include "status-fixture.h"
#include "suite.h"

/* Brackets match outside of strings, and strings contain no invalid bytes. */
static void check_form(const GString *text)
{
	char open[32];
	unsigned depth = 0;
	bool string = false;

	ck_assert(g_utf8_validate(text->str, (gssize)text->len, NULL));
	for (const char *at = text->str; *at; at++) {
		if (string) {
			ck_assert_uint_ge((unsigned char)*at, 0x20);
			if (*at == '\\')
				at++;
			else if (*at == '"')
				string = false;
		} else if (*at == '"') {
			string = true;
		} else if (*at == '{' || *at == '[') {
			ck_assert_uint_lt(depth, sizeof(open));
			open[depth++] = *at;
		} else if (*at == '}' || *at == ']') {
			ck_assert_uint_gt(depth, 0);
			ck_assert_int_eq(open[--depth], *at == '}' ? '{' : '[');
		} else {
			ck_assert_msg(strchr("-.0123456789:, \ntruefalsn", *at), "%c", *at);
		}
	}
	ck_assert(!string && depth == 0);
	has_not(text, ",\n}");
	has_not(text, ", ,");
	has_not(text, ", }");
	has_not(text, ", ]");
}

START_TEST(test_form)
{
	struct status_data *data = make_data();
	GString *text;

	add_answers(data);
	text = status_json(data);
	check_form(text);
	for (unsigned i = 0; i < status_field_count; i++) {
		g_autofree char *pair =
			g_strdup_printf("\"%s\": %" G_GUINT64_FORMAT, status_fields[i].key,
					status_field_value(&status_fields[i], data));

		if (status_fields[i].group && strcmp(status_fields[i].group, "process") &&
		    strcmp(status_fields[i].group, "config"))
			has(text, pair);
	}
	has(text, "\"prefix\": \"/a\\\"b\\\\c\\u000ad\xc3\xa9");
	has(text, "\"waiting\": 77");
	has(text, "\"number\": 0, \"up\": true, \"pid\": 71, \"in_flight\": 72");
	has(text, "\"number\": 1, \"up\": false, \"pid\": 0, \"in_flight\": 0");
	has(text, "\"address\": \"192.0.2.1\", \"local\": false, \"fixed\": false");
	g_string_free(text, TRUE);
	g_free(data);
}
END_TEST

START_TEST(test_latency)
{
	struct status_data *data = make_data();
	GString *text = status_json(data);

	has(text, "\"count\": 0, \"sum\": 0, \"p50\": 0.0,");
	has(text, "\"below\": [] }");
	g_string_free(text, TRUE);
	add_answers(data);
	text = status_json(data);
	has(text, "\"count\": 3");
	has(text, "\"max\": 134217728");
	has(text, "\"below\": [[2, 1], [104, 1], [null, 1]] }");
	g_string_free(text, TRUE);
	g_free(data);
}
END_TEST

/* A locale that writes numbers with a comma. */
START_TEST(test_locale)
{
	struct status_data *data = make_data();
	GString *text;

	(void)(setlocale(LC_ALL, "de_DE.UTF-8") || setlocale(LC_ALL, "fr_FR.UTF-8"));
	add_answers(data);
	text = status_json(data);
	check_form(text);
	has(text, "\"hit_ratio\": 0.");
	g_string_free(text, TRUE);
	g_free(data);
}
END_TEST

/* A server without any requests, workers or routes. */
START_TEST(test_empty)
{
	struct status_data *data = g_new0(struct status_data, 1);
	GString *text;

	data->io = data->data_path = data->arch = "";
	text = status_json(data);
	check_form(text);
	has(text, "\"hit_ratio\": 0.0000");
	has(text, "\"pools\": []");
	g_string_free(text, TRUE);
	g_free(data);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_form);
	tcase_add_test(tcase, test_latency);
	tcase_add_test(tcase, test_locale);
	tcase_add_test(tcase, test_empty);
}

RUN_SUITE("status-json", fill)
