/* SPDX-License-Identifier: MIT */
/*
 * test-dav-if.c - unit tests of dav-if.c: the grammar of the field If, and which lists hold.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "dav/dav-if.h"

#include "suite.h"

static const struct {
	const char *value;
	bool good;
	unsigned lists, conditions;
} cases[] = {
	{"(<urn:a>)", true, 1, 1},
	{" ( <urn:a> ) ", true, 1, 1},
	{"(<urn:a> [\"x\"])", true, 1, 2},
	{"(<urn:a>[\"x\"])(Not <urn:b>)", true, 2, 3},
	{"(not<urn:a>)", true, 1, 1},
	{"(NOT [W/\"x\"])", true, 1, 1},
	{"([\"\"])", true, 1, 1},
	{"</a> (<urn:a>)", true, 1, 1},
	{"<http://h/a> (<urn:a>) (<urn:b>) <http://h/b> ([\"x\"])", true, 3, 3},
	{"", false, 0, 0},
	{"()", false, 0, 0},
	{"(", false, 0, 0},
	{"(<urn:a>", false, 0, 0},
	{"(<urn:a)", false, 0, 0},
	{"(<>)", false, 0, 0},
	{"(<urn a>)", false, 0, 0},
	{"(urn:a)", false, 0, 0},
	{"([x])", false, 0, 0},
	{"([\"x\")", false, 0, 0},
	{"([\"x])", false, 0, 0},
	{"([W\"x\"])", false, 0, 0},
	{"(Not)", false, 0, 0},
	{"(Not Not <urn:a>)", false, 0, 0},
	{"(<urn:a>),(<urn:b>)", false, 0, 0},
	{"</a>", false, 0, 0},
	{"</a> </b> (<urn:a>)", false, 0, 0},
	{"</a> (<urn:a>) </b>", false, 0, 0},
	{"(<urn:a>) </a> (<urn:b>)", false, 0, 0},
	{"(<urn:a>) x", false, 0, 0},
	{"((<urn:a>))", false, 0, 0},
};

/* In memory of exactly its length, so that a read beyond it is found. */
static bool parse(const char *value, struct dav_if *parsed, char **copy)
{
	size_t length = strlen(value);

	*copy = must_alloc(length);
	memcpy(*copy, value, length);
	return dav_if_parse((struct slice){*copy, length}, parsed);
}

START_TEST(test_grammar)
{
	struct dav_if parsed;
	char *copy;

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		bool good = parse(cases[i].value, &parsed, &copy);

		ck_assert_msg(good == cases[i].good, "%s", cases[i].value);
		ck_assert(!good || parsed.list_count == cases[i].lists);
		ck_assert(!good || parsed.condition_count == cases[i].conditions);
		free(copy);
	}
}
END_TEST

START_TEST(test_parts)
{
	struct dav_if parsed;
	char *copy;

	ck_assert(parse("</a> (Not <urn:a> [W/\"x\"]) (<urn:b>)", &parsed, &copy));
	ck_assert(slice_is(parsed.lists[0].resource, "/a"));
	ck_assert(parsed.lists[1].resource.at == parsed.lists[0].resource.at);
	ck_assert_uint_eq(parsed.lists[1].first, 2);
	ck_assert(parsed.conditions[0].negated && !parsed.conditions[0].is_etag);
	ck_assert(slice_is(parsed.conditions[0].text, "urn:a"));
	ck_assert(!parsed.conditions[1].negated && parsed.conditions[1].is_etag);
	ck_assert(slice_is(parsed.conditions[1].text, "W/\"x\""));
	free(copy);
}
END_TEST

START_TEST(test_limits)
{
	GString *value = g_string_new(NULL);
	struct dav_if parsed;
	char *copy;

	for (unsigned i = 0; i <= DAV_IF_LISTS_MAX; i++) {
		if (i) {
			ck_assert(parse(value->str, &parsed, &copy));
			free(copy);
		}
		g_string_append(value, "(<a:b>)");
	}
	ck_assert(!parse(value->str, &parsed, &copy));
	free(copy);
	g_string_assign(value, "(");
	for (unsigned i = 0; i <= DAV_IF_CONDITIONS_MAX; i++)
		g_string_append(value, "<a:b>");
	g_string_append_c(value, ')');
	ck_assert(!parse(value->str, &parsed, &copy));
	free(copy);
	g_string_free(value, TRUE);
}
END_TEST

/* The resource "/a" has the token urn:yes; the request's own also has the tag "t". */
static bool holds(struct slice resource, const struct dav_if_condition *condition, void *context)
{
	(void)context;
	if (condition->is_etag)
		return !resource.at && slice_is(condition->text, "\"t\"");
	return (!resource.at || slice_is(resource, "/a")) && slice_is(condition->text, "urn:yes");
}

static const struct {
	const char *value;
	bool holds;
} lists[] = {
	{"(<urn:yes>)", true},
	{"(<urn:no>)", false},
	{"(Not <urn:no>)", true},
	{"(<urn:yes> <urn:no>)", false},
	{"(<urn:yes> Not <urn:no> [\"t\"])", true},
	{"(<urn:yes> [\"u\"])", false},
	{"(<urn:no>) ([\"u\"]) (<urn:yes>)", true},
	{"(<urn:no>) (Not <urn:yes>)", false},
	{"</a> (<urn:yes>)", true},
	{"</a> ([\"t\"])", false},
	{"</b> (<urn:yes>)", false},
	{"</b> (<urn:yes>) </a> (<urn:yes>)", true},
};

START_TEST(test_evaluate)
{
	struct dav_if parsed;
	char *copy;

	for (unsigned i = 0; i < G_N_ELEMENTS(lists); i++) {
		ck_assert(parse(lists[i].value, &parsed, &copy));
		ck_assert_msg(dav_if_evaluate(&parsed, holds, NULL) == lists[i].holds, "%s",
			      lists[i].value);
		free(copy);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_grammar);
	tcase_add_test(tcase, test_parts);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_evaluate);
}

RUN_SUITE("dav-if", fill)
