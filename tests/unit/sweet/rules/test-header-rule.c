/* SPDX-License-Identifier: MIT */
/*
 * test-header-rule.c - unit tests of rules for fields of responses.  Single-threaded; input is a
 * heap copy of its exact size, so that memory checkers detect a read beyond.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/fields.h"
#include "rules/header-rule.h"
#include "rules/template.h"

#include "suite.h"

#define RULES_MAX 4

static struct header_rule rules[RULES_MAX];
static unsigned count;

static char *expanded;

static void forget(void)
{
	g_clear_pointer(&expanded, g_free);
	while (count)
		header_rule_free(&rules[--count]);
}

static const char *read_rule(const char *text)
{
	ck_assert_uint_lt(count, RULES_MAX);
	return header_rule_parse(&rules[count++], text);
}

static void check(int status, const char *lines, const char *expected)
{
	size_t length = strlen(lines);
	char *copy = must_alloc(length), *out = must_alloc(length + HEADER_RULES_MAX);
	struct fields fields;

	memcpy(copy, lines, length);
	fields_init(&fields);
	fields_read(&fields, (struct slice){copy, length});
	header_rules_apply(rules, count, expanded, status, &fields);
	ck_assert_uint_eq(fields_size(&fields), strlen(expected));
	ck_assert_uint_le(strlen(expected), length + HEADER_RULES_MAX);
	ck_assert_ptr_eq(fields_write(&fields, out), out + strlen(expected));
	ck_assert(memcmp(out, expected, strlen(expected)) == 0);
	fields_free(&fields);
	free(copy);
	free(out);
}

START_TEST(test_apply)
{
	static const char lines[] = "ETag: \"1\"\r\nX-a: b\r\nVary: c\r\nx-A: d\r\n";

	ck_assert_ptr_null(read_rule("X-A: new"));
	check(200, lines, "ETag: \"1\"\r\nVary: c\r\nX-A: new\r\n");
	check(404, lines, lines);
	check(200, "", "X-A: new\r\n");
	ck_assert_ptr_null(read_rule("-etag"));
	ck_assert_ptr_null(read_rule("always +Vary:  d  "));
	check(304, lines, "Vary: c\r\nX-A: new\r\nVary: d\r\n");
	check(500, lines, "ETag: \"1\"\r\nX-a: b\r\nVary: c\r\nx-A: d\r\nVary: d\r\n");
	ck_assert_ptr_null(read_rule("always -Vary"));
	check(404, "Vary: c\r\n", "Vary: d\r\n");
	/* A name that only begins with another one. */
	check(404, "Var: c\r\nVarying: e\r\n", "Var: c\r\nVarying: e\r\nVary: d\r\n");
	forget();
}
END_TEST

static const char *host;

static struct slice value(const void *context, enum template_variable variable, unsigned number,
			  const char *name)
{
	ck_assert_ptr_eq(context, rules);
	ck_assert_int_eq(variable, TEMPLATE_HOST);
	(void)number;
	(void)name;
	return (struct slice){host, strlen(host)};
}

static bool expand(void)
{
	bool fits;

	g_free(expanded);
	expanded = header_rules_expand(rules, count, value, rules, &fits);
	return fits;
}

START_TEST(test_variables)
{
	char longest[HEADER_RULES_MAX + 1];

	ck_assert_ptr_null(read_rule("always A: <{host}>"));
	ck_assert_ptr_null(read_rule("B: {{host}"));
	ck_assert_ptr_null(read_rule("+A: {host}{host}"));
	ck_assert_uint_eq(rules[0].length, 0);
	ck_assert_str_eq(rules[1].line, "B: {host}\r\n");
	host = "x\r\nEvil: 1";
	ck_assert(expand());
	check(200, "A: b\r\nC: d\r\n",
	      "C: d\r\nA: <x??Evil: 1>\r\nB: {host}\r\nA: x??Evil: 1x??Evil: 1\r\n");
	check(404, "A: b\r\nB: b\r\n", "B: b\r\nA: <x??Evil: 1>\r\n");
	host = "";
	ck_assert(expand());
	check(200, "", "A: <>\r\nB: {host}\r\nA: \r\n");
	/* All lines have a limit. */
	memset(longest, 'h', sizeof(longest));
	longest[(HEADER_RULES_MAX - 25) / 3] = '\0';
	host = longest;
	ck_assert(expand());
	longest[(HEADER_RULES_MAX - 25) / 3] = 'h';
	longest[(HEADER_RULES_MAX - 25) / 3 + 1] = '\0';
	ck_assert(!expand());
	ck_assert_ptr_null(expanded);
	check(200, "A: b\r\n", "B: {host}\r\n");
	forget();
	ck_assert_ptr_null(read_rule("A: {{host}"));
	ck_assert(expand());
	ck_assert_ptr_null(expanded);
	forget();
}
END_TEST

START_TEST(test_parse)
{
	static const char *const wrong[] = {
		"",	      "Name",	  "Name value", ": value",	     "-",
		"+",	      "-Name: a", "always",	"Na me: a",	     "A: b\nC: d",
		"A: b\r\n",   "A: \x7f",  "Date: now",	"content-length: 1", "-Connection",
		"+Server: x", "-Name ",	  "A: {hots}",	"A: {map:}",	     "A: {host",
	};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_msg(read_rule(wrong[i]) != NULL, "%s", wrong[i]);
		forget();
	}
	ck_assert_ptr_null(read_rule("Name:"));
	ck_assert_str_eq(rules[0].line, "Name: \r\n");
	ck_assert_ptr_null(read_rule("Name:\t\xc3\xa4 b"));
	forget();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_apply);
	tcase_add_test(tcase, test_variables);
	tcase_add_test(tcase, test_parse);
}

RUN_SUITE("header-rule", fill)
