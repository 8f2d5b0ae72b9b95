/* SPDX-License-Identifier: MIT */
/*
 * test-log-format.c - unit tests of log-format.c: the fixed formats, the parts of templates, and
 * every error with its place.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "log/log-format.h"

#include "suite.h"

static struct log_format *must_read(const char *text)
{
	struct log_format *format;
	const char *wrong, *must = log_format_read(text, &format, &wrong);

	ck_assert_msg(!must, "%s: %s", text, must);
	ck_assert_str_eq(format->text, text);
	return format;
}

START_TEST(test_fixed)
{
	static const char *const words[] = {"short", "common", "combined", "json"};

	for (unsigned i = 0; i < 4; i++) {
		struct log_format *format = must_read(words[i]);

		ck_assert_int_eq(format->kind, (int)i);
		ck_assert_uint_eq(format->part_count, 0);
		ck_assert_uint_eq(format->wants,
				  i < 2 ? LOG_WANTS_LINE : LOG_WANTS_LINE | LOG_WANTS_USUAL);
		log_format_free(format);
	}
	log_format_free(NULL);
}
END_TEST

static void check_part(const struct log_format *format, unsigned at, enum log_variable variable,
		       const char *text, bool quoted)
{
	const struct log_part *part = &format->parts[at];

	ck_assert_uint_lt(at, format->part_count);
	ck_assert_int_eq(part->variable, variable);
	ck_assert_uint_eq(part->text.length, strlen(text));
	ck_assert_mem_eq(part->text.at, text, part->text.length);
	ck_assert_int_eq(part->quoted, quoted);
}

START_TEST(test_parts)
{
	struct log_format *format =
		must_read("template:{client} \"{method} {request.X-A}\"\t{{{response.Etag}}}");

	ck_assert_int_eq(format->kind, ACCESS_TEMPLATE);
	check_part(format, 0, LOG_CLIENT, "client", false);
	check_part(format, 1, LOG_LITERAL, " \"", false);
	check_part(format, 2, LOG_METHOD, "method", true);
	check_part(format, 3, LOG_LITERAL, " ", false);
	check_part(format, 4, LOG_REQUEST_FIELD, "X-A", true);
	check_part(format, 5, LOG_LITERAL, "\"\t", false);
	check_part(format, 6, LOG_LITERAL, "{", false);
	check_part(format, 7, LOG_RESPONSE_FIELD, "Etag", false);
	check_part(format, 8, LOG_LITERAL, "}", false);
	ck_assert_uint_eq(format->part_count, 9);
	ck_assert_uint_eq(format->wants, LOG_WANTS_LINE | LOG_WANTS_FIELDS);
	log_format_free(format);
	format = must_read("json-template:{tls-cipher}");
	ck_assert_int_eq(format->kind, ACCESS_JSON_TEMPLATE);
	ck_assert_uint_eq(format->wants, LOG_WANTS_LINE | LOG_WANTS_TLS);
	log_format_free(format);
}
END_TEST

/* Each name of the list, except the last two, is that of a variable of its own. */
START_TEST(test_variables)
{
	unsigned count = 0;

	for (; log_variables[count + 2]; count++) {
		char text[64];
		struct log_format *format;

		snprintf(text, sizeof(text), "template:{%s}", log_variables[count]);
		format = must_read(text);
		ck_assert_uint_eq(format->part_count, 1);
		ck_assert_int_eq(format->parts[0].variable, (int)count + 1);
		log_format_free(format);
	}
	ck_assert_uint_eq(count + 1, LOG_REQUEST_FIELD);
}
END_TEST

START_TEST(test_errors)
{
	static const struct {
		const char *text, *wrong, *must;
	} bad[] = {
		{"", "", "must be short, common"},
		{"Short", "Short", "must be short, common"},
		{"template", "template", "must be short, common"},
		{"template:", "template:", "must have 1 to 4096"},
		{"template:a\nb", "template:a\nb", "must be one line"},
		{"template:a\x7f", "template:a\x7f", "must be one line"},
		{"template:{client} {clint}", "{clint}", "names no variable"},
		{"template:{}", "{}", "names no variable"},
		{"template:{Client}", "{Client}", "names no variable"},
		{"template:{request.}", "{request.}", "names no variable"},
		{"template:{request.NAME}{response.a b}", "{response.a b}", "names no variable"},
		{"template:{request.authorization}", "{request.authorization}", "names no"},
		{"template:{request.Proxy-Authorization}", "{request.Proxy", "names no"},
		{"template:a {client", "{client", "has a single brace"},
		{"template:a {client{", "{client{", "has a single brace"},
		{"template:a } b", "} b", "has a single brace"},
		{"json-template:{", "{", "has a single brace"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct log_format *format;
		const char *wrong, *must = log_format_read(bad[i].text, &format, &wrong);

		ck_assert_msg(must && strncmp(must, bad[i].must, strlen(bad[i].must)) == 0,
			      "%s: %s", bad[i].text, must);
		ck_assert_msg(strncmp(wrong, bad[i].wrong, strlen(bad[i].wrong)) == 0 &&
				      wrong >= bad[i].text,
			      "%s: %s", bad[i].text, wrong);
		ck_assert_ptr_null(format);
	}
}
END_TEST

START_TEST(test_limits)
{
	static char text[LOG_TEMPLATE_MAX + 2];
	struct log_format *format;
	const char *wrong;

	strcpy(text, "template:");
	memset(text + 9, 'x', LOG_TEMPLATE_MAX - 9);
	log_format_free(must_read(text));
	text[LOG_TEMPLATE_MAX] = 'x';
	ck_assert_ptr_nonnull(log_format_read(text, &format, &wrong));
	text[9] = '\0';
	for (unsigned i = 0; i < LOG_PARTS_MAX; i++)
		strcat(text, "{user}");
	log_format_free(must_read(text));
	strcat(text, "{{");
	ck_assert_int_eq(strncmp(log_format_read(text, &format, &wrong), "has too many", 12), 0);
	ck_assert_str_eq(wrong, "{{");
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_fixed);
	tcase_add_test(tcase, test_parts);
	tcase_add_test(tcase, test_variables);
	tcase_add_test(tcase, test_errors);
	tcase_add_test(tcase, test_limits);
}

RUN_SUITE("log-format", fill)
