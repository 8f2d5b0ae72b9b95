/* SPDX-License-Identifier: MIT */
/*
 * test-template.c - unit tests of values with variables.  Single-threaded.
 */
#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "base/slice.h"
#include "rules/template.h"

#include "suite.h"

#define ALL ((1u << TEMPLATE_VARIABLES) - 1)

static const char *values[TEMPLATE_VARIABLES];

/* A group has its number as the text; a table, its name. */
static struct slice value(const void *context, enum template_variable variable, unsigned number,
			  const char *name)
{
	static const char *const numbers[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
	const char *text = variable == TEMPLATE_CAPTURE && !values[variable] ? numbers[number]
			   : variable == TEMPLATE_MAP			     ? name
									     : values[variable];

	ck_assert_ptr_eq(context, values);
	return (struct slice){text ? text : "", text ? strlen(text) : 0};
}

static void expands(const char *text, enum template_escape escape, const char *expected)
{
	GString *out = g_string_new("<");
	const char *must;
	struct template *template = template_compile(text, ALL, &must);

	ck_assert_msg(template, "%s: %s", text, must);
	template_expand(template, escape, value, values, out);
	ck_assert_str_eq(out->str + 1, expected);
	template_free(template);
	g_string_free(out, TRUE);
}

static void refuses(const char *text, unsigned permitted, const char *part)
{
	const char *must;

	ck_assert_msg(!template_compile(text, permitted, &must), "%s", text);
	ck_assert_msg(strstr(must, part), "%s: %s", text, must);
}

START_TEST(test_text)
{
	expands("", TEMPLATE_PLAIN, "");
	expands("a", TEMPLATE_PLAIN, "a");
	expands("{{a}", TEMPLATE_PLAIN, "{a}");
	expands("{\"a\": {}}", TEMPLATE_PLAIN, "{\"a\": {}}");
	expands("a{", TEMPLATE_PLAIN, "a{");
	expands("}{1}{", TEMPLATE_PLAIN, "}1{");
	expands("{0}{9}x{1}", TEMPLATE_PLAIN, "09x1");
	values[TEMPLATE_HOST] = "example.org";
	expands("https://{host}/", TEMPLATE_PLAIN, "https://example.org/");
	expands("{map:old paths}", TEMPLATE_PLAIN, "old paths");
}
END_TEST

START_TEST(test_escapes)
{
	values[TEMPLATE_PATH] = "/a b/%\xff?#&=\"";
	values[TEMPLATE_QUERY] = "a=%20&b";
	expands("{path}", TEMPLATE_URI_PATH, "/a%20b/%25%FF%3F%23&=%22");
	expands("{path}?{path}", TEMPLATE_URI_PATH,
		"/a%20b/%25%FF%3F%23&=%22?%2Fa%20b%2F%25%FF%3F%23%26%3D%22");
	expands("/x?a={1}&{query}", TEMPLATE_URI_PATH, "/x?a=1&a=%20&b");
	values[TEMPLATE_CAPTURE] = "a&b=c";
	expands("/x?a={1}", TEMPLATE_URI_PATH, "/x?a=a%26b%3Dc");
	/* A '?' in a value begins no query. */
	values[TEMPLATE_CAPTURE] = "?";
	expands("/{1}/{path}", TEMPLATE_URI_PATH, "/%3F//a%20b/%25%FF%3F%23&=%22");
	values[TEMPLATE_SUBJECT] = "CN=a\r\nX: b\x7f\xc3\xa9";
	expands("{subject}", TEMPLATE_FIELD, "CN=a??X: b?\xc3\xa9");
}
END_TEST

START_TEST(test_invalid)
{
	refuses("{hots}", ALL, "{hots}");
	refuses("{hots}", 1u << TEMPLATE_HOST, "there are host");
	refuses("{user}", 1u << TEMPLATE_HOST | 1u << TEMPLATE_CAPTURE, "there are 0 to 9, host");
	refuses("{host", ALL, "close the brace");
	refuses("{10}", ALL, "{10}");
	refuses("{map:}", ALL, "{map:}");
	refuses("a{1}{host}", 1u << TEMPLATE_CAPTURE, "{host}");
}
END_TEST

static const char *visit(void *context, const char *name)
{
	g_string_append(context, name);
	return strcmp(name, "bad") == 0 ? "must be good" : NULL;
}

START_TEST(test_uses)
{
	static const struct {
		const char *text;
		bool constant, host;
		int last;
		const char *maps;
	} cases[] = {
		{"", true, false, -1, ""},
		{"{{1}", true, false, -1, ""},
		{"{host}", false, true, -1, ""},
		{"{1}{0}", false, false, 1, ""},
		{"{2}{host}{9}{map:a}{map:b}", false, true, 9, "ab"},
		{"{map:a}{map:bad}{map:b}", false, false, -1, "abad"},
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		GString *maps = g_string_new(NULL);
		const char *name = NULL, *must;
		struct template *template = template_compile(cases[i].text, ALL, &must);

		ck_assert_ptr_nonnull(template);
		ck_assert(template_is_constant(template) == cases[i].constant);
		ck_assert(template_uses(template, TEMPLATE_HOST) == cases[i].host);
		ck_assert_int_eq(template_last_capture(template), cases[i].last);
		must = template_each_map(template, visit, maps, &name);
		ck_assert_str_eq(maps->str, cases[i].maps);
		ck_assert((must != NULL) == (strstr(cases[i].text, "bad") != NULL));
		if (must)
			ck_assert_str_eq(name, "bad");
		template_free(template);
		g_string_free(maps, TRUE);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_text);
	tcase_add_test(tcase, test_escapes);
	tcase_add_test(tcase, test_invalid);
	tcase_add_test(tcase, test_uses);
}

RUN_SUITE("template", fill)
