/* SPDX-License-Identifier: MIT */
/*
 * test-compress-rule.c - unit tests of compress-rule.c: the values of the keys, and
 * which bodies they select.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "coding/compress-rule.h"
#include "coding/encoder.h"
#include "http/accept.h"

#include "suite.h"

static char *names[5];

/* Sets names to the words of a text; returns them. */
static char **words(const char *text)
{
	static char copy[200];
	unsigned count = 0;

	strcpy(copy, text);
	for (char *at = strtok(copy, " "); at; at = strtok(NULL, " "))
		names[count++] = at;
	names[count] = NULL;
	return names;
}

START_TEST(test_codings)
{
	static const struct {
		const char *text, *order; /* NULL: wrong */
		unsigned codings;
	} cases[] = {
		{"", "bzg", 0},
		{"off", "bzg", 0},
		{"gzip", "gbz", 1u << CODING_GZIP},
		{"zstd", "zbg", 1u << CODING_ZSTD},
		{"zstd br gzip", "zbg", 7},
		{"gzip br zstd", "gbz", 7},
		{"br gzip", "bgz", 1u << CODING_BR | 1u << CODING_GZIP},
		{"deflate", NULL, 0},
		{"GZIP", NULL, 0},
		{"gzip gzip", NULL, 0},
		{"gzip off", NULL, 0},
		{"off gzip", NULL, 0},
		{"off off", NULL, 0},
	};
	bool all = encoder_of(CODING_BR) && encoder_of(CODING_ZSTD) && encoder_of(CODING_GZIP);

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct compress_rule rule = {0};
		const char *wrong = NULL;
		const char *must = compress_rule_codings(&rule, words(cases[i].text), &wrong);

		if (!cases[i].order) {
			ck_assert_ptr_nonnull(must);
			ck_assert_ptr_nonnull(wrong);
			continue;
		}
		if (!all && cases[i].codings)
			continue;
		ck_assert_msg(!must, "%s: %s", cases[i].text, must);
		ck_assert_uint_eq(rule.codings, cases[i].codings);
		for (unsigned k = 0; k < CODINGS; k++)
			ck_assert_msg("bzg"[rule.order[k]] == cases[i].order[k], "%s",
				      cases[i].text);
	}
}
END_TEST

/* A coding without its library is refused, with its message. */
START_TEST(test_built_without)
{
	for (unsigned i = 0; i < CODINGS; i++) {
		struct compress_rule rule = {0};
		const char *wrong;

		if (encoder_of((enum coding)i))
			continue;
		ck_assert_str_eq(
			compress_rule_codings(&rule, words(coding_token((enum coding)i)), &wrong),
			encoder_missing((enum coding)i));
	}
}
END_TEST

START_TEST(test_types)
{
	static const struct {
		const char *text, *wrong; /* NULL: good */
	} cases[] = {
		{"", NULL},
		{"text/html", NULL},
		{"text/* application/vnd.api+json", NULL},
		{"text", "text"},
		{"text/html /", "/"},
		{"text/", "text/"},
		{"/html", "/html"},
		{"text/html;charset=utf-8", "text/html;charset=utf-8"},
		{"a/b/c", "a/b/c"},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *wrong = NULL;
		const char *must = compress_rule_types(words(cases[i].text), &wrong);

		ck_assert_msg(!must == !cases[i].wrong, "%s", cases[i].text);
		if (must)
			ck_assert_str_eq(wrong, cases[i].wrong);
	}
}
END_TEST

START_TEST(test_takes)
{
	static const struct {
		const char *type;
		bool good;
	} cases[] = {
		{"text/html", true},
		{"Text/HTML", true},
		{"text/html;charset=utf-8", true},
		{"text/html ; charset=utf-8", true},
		{"text/htm", false},
		{"text/htmlx", false},
		{"text/plain", false},
		{"", false},
		{";", false},
		{" ", false},
		{"image/svg+xml", true},
		{"image/", false},
		{"image", false},
		{"imagex/png", false},
	};
	struct compress_rule rule = {.types = words("text/html image/*"), .min = 10, .max = 100};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t length = strlen(cases[i].type);
		char *copy = must_alloc(length);
		struct slice type = {copy, length};

		memcpy(copy, cases[i].type, length);
		ck_assert_msg(compress_rule_takes(&rule, type, 10) == cases[i].good, "%s",
			      cases[i].type);
		ck_assert(compress_rule_takes(&rule, type, 100) == cases[i].good);
		ck_assert(!compress_rule_takes(&rule, type, 9));
		ck_assert(!compress_rule_takes(&rule, type, 101));
		free(copy);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_codings);
	tcase_add_test(tcase, test_built_without);
	tcase_add_test(tcase, test_types);
	tcase_add_test(tcase, test_takes);
}

RUN_SUITE("compress-rule", fill)
