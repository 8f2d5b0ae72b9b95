/* SPDX-License-Identifier: MIT */
/*
 * test-cachecontrol.c - unit tests of Cache-Control and Vary of a response: tables,
 * every division into two fields at a comma, limits, and random input.
 * Single-threaded; values are heap copies of their exact size, so that memory checkers
 * detect a read beyond.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/cachecontrol.h"

#include "suite.h"

#define U CACHECONTROL_UNSAID
#define MOST CACHECONTROL_SECONDS_MAX

static const struct control_case {
	const char *value;
	const char *flags; /* store, cache, private, public, revalidate */
	uint32_t max_age, s_maxage, stale;
	uint32_t lifetime, grace;
} cases[] = {
	{"", "", U, U, U, 0, 0},
	{",, ,", "", U, U, U, 0, 0},
	{"max-age=60", "", 60, U, U, 60, 0},
	{"MAX-AGE=60", "", 60, U, U, 60, 0},
	{" max-age = 60 ", "", 60, U, U, 60, 0},
	{"max-age=\"60\"", "", 60, U, U, 60, 0},
	{"max-age=003600", "", 3600, U, U, 3600, 0},
	{"nO-StOrE", "s", U, U, U, 0, 0},
	{"No-CaChE, S-MaxAge=60", "c", U, 60, U, 0, 0},
	{"max-age=60,s-maxage=10", "", 60, 10, U, 10, 0},
	{"s-maxage=0, max-age=60", "", 60, 0, U, 0, 0},
	{"public, max-age=0", "u", 0, U, U, 0, 0},
	{"no-store", "s", U, U, U, 0, 0},
	{"no-store, max-age=60", "s", 60, U, U, 0, 0},
	{"max-age=60, no-cache", "c", 60, U, U, 0, 0},
	{"max-age=60, private", "p", 60, U, U, 0, 0},
	{"private, no-cache, no-store, public", "scpu", U, U, U, 0, 0},
	{"max-age=60, must-revalidate", "r", 60, U, U, 60, 0},
	{"max-age=60, proxy-revalidate", "r", 60, U, U, 60, 0},
	{"max-age=60, stale-while-revalidate=30", "", 60, U, 30, 60, 30},
	{"s-maxage=60, stale-while-revalidate=30", "", U, 60, 30, 60, 0},
	{"max-age=0, stale-while-revalidate=30", "", 0, U, 30, 0, 30},
	{"max-age=60, must-revalidate, stale-while-revalidate=30", "r", 60, U, 30, 60, 0},
	{"max-age=60, private, stale-while-revalidate=30", "p", 60, U, 30, 0, 0},
	/* for certain fields */
	{"max-age=60, private=\"Set-Cookie, X-A\"", "p", 60, U, U, 0, 0},
	{"no-cache=\"Set-Cookie\", max-age=60", "c", 60, U, U, 0, 0},
	{"no-cache=Set-Cookie", "c", U, U, U, 0, 0},
	/* repeated */
	{"max-age=60, max-age=10", "", 10, U, U, 10, 0},
	{"max-age=10, max-age=60", "", 10, U, U, 10, 0},
	{"max-age=60, max-age", "", 0, U, U, 0, 0},
	/* invalid times */
	{"max-age", "", 0, U, U, 0, 0},
	{"max-age=", "", 0, U, U, 0, 0},
	{"max-age=\"", "s", 0, U, U, 0, 0},
	{"max-age=\"\"", "", 0, U, U, 0, 0},
	{"max-age=-1", "", 0, U, U, 0, 0},
	{"max-age=+1", "", 0, U, U, 0, 0},
	{"max-age=1.5", "", 0, U, U, 0, 0},
	{"max-age=1e3", "", 0, U, U, 0, 0},
	{"max-age=6 0", "", 0, U, U, 0, 0},
	{"max-age='60'", "", 0, U, U, 0, 0},
	{"max-age=60;s-maxage=60", "", 0, U, U, 0, 0},
	{"s-maxage=x, max-age=60", "", 60, 0, U, 0, 0},
	{"stale-while-revalidate=x, max-age=60", "", 60, U, 0, 60, 0},
	/* long ones */
	{"max-age=2147483647", "", MOST - 1, U, U, MOST - 1, 0},
	{"max-age=2147483648", "", MOST, U, U, MOST, 0},
	{"max-age=4294967295", "", MOST, U, U, MOST, 0},
	{"max-age=4294967296", "", MOST, U, U, MOST, 0},
	{"max-age=18446744073709551616", "", MOST, U, U, MOST, 0},
	{"max-age=99999999999999999999999999", "", MOST, U, U, MOST, 0},
	/* unknown ones, and similar ones */
	{"immutable, x-max-age=1, max-age=60, no-storey, ext=\"no-store, private\"", "", 60, U, U,
	 60, 0},
	{"ext=\"max-age=3600\", max-age=1", "", 1, U, U, 1, 0},
	{"max-age=1, ext=\"max-age=3600, a\"", "", 1, U, U, 1, 0},
	{"ext=\"a, max-age=3600\"", "", U, U, U, 0, 0},
	{"no-store, must-understand, max-age=60", "s", 60, U, U, 0, 0},
	{"no_store, nostore, no-transform, stale-if-error=9", "", U, U, U, 0, 0},
	{"max-age=60 no-store", "", 0, U, U, 0, 0},
	/* unterminated quotes */
	{"ext=\"a, no-store, max-age=60", "s", U, U, U, 0, 0},
	{"max-age=60, ext=\"", "s", 60, U, U, 0, 0},
	{"max-age=60, ext=\"a\\\"", "s", 60, U, U, 0, 0},
	{"max-age=60, ext=\"a\\", "s", 60, U, U, 0, 0},
	{"max-age=60, ext=\"a\\\\\"", "", 60, U, U, 60, 0},
};

static void add(struct cachecontrol *control, const char *value, size_t length)
{
	char *bytes = must_alloc(length);

	memcpy(bytes, value, length);
	cachecontrol_add(control, (struct slice){bytes, length});
	free(bytes);
}

static void judge(const struct cachecontrol *control, const struct control_case *expected)
{
	char flags[8], *at = flags;

	if (control->no_store)
		*at++ = 's';
	if (control->no_cache)
		*at++ = 'c';
	if (control->is_private)
		*at++ = 'p';
	if (control->is_public)
		*at++ = 'u';
	if (control->must_revalidate)
		*at++ = 'r';
	*at = '\0';
	ck_assert_msg(strcmp(flags, expected->flags) == 0, "%s: %s", expected->value, flags);
	ck_assert_msg(control->max_age == expected->max_age, "%s: max-age %u", expected->value,
		      control->max_age);
	ck_assert_msg(control->s_maxage == expected->s_maxage, "%s: s-maxage %u", expected->value,
		      control->s_maxage);
	ck_assert_msg(control->stale_while_revalidate == expected->stale, "%s: stale %u",
		      expected->value, control->stale_while_revalidate);
	ck_assert_msg(cachecontrol_lifetime(control) == expected->lifetime, "%s", expected->value);
	ck_assert_msg(cachecontrol_grace(control) == expected->grace, "%s", expected->value);
}

START_TEST(test_control)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cachecontrol control;

		cachecontrol_init(&control);
		add(&control, cases[i].value, strlen(cases[i].value));
		judge(&control, &cases[i]);
	}
}
END_TEST

/* A list in two lines means the same as in one, wherever it is divided. */
START_TEST(test_two_lines)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *value = cases[i].value, *comma = value;

		while ((comma = strchr(comma, ','))) {
			struct cachecontrol control;

			if (strchr(value, '"'))
				break;
			cachecontrol_init(&control);
			add(&control, value, (size_t)(comma - value));
			comma++;
			add(&control, comma, strlen(comma));
			judge(&control, &cases[i]);
		}
	}
}
END_TEST

/* The names with a comma after each, or "*". */
static void vary_text(const struct cachecontrol_vary *vary, char *out)
{
	const char *at = vary->names;

	*out = '\0';
	if (vary->anything) {
		strcpy(out, "*");
		return;
	}
	for (; at < vary->names + vary->length; at += strlen(at) + 1)
		out += sprintf(out, "%s,", at);
}

static void vary_add(struct cachecontrol_vary *vary, const char *value)
{
	size_t length = strlen(value);
	char *bytes = must_alloc(length);

	memcpy(bytes, value, length);
	cachecontrol_vary_add(vary, (struct slice){bytes, length});
	free(bytes);
}

START_TEST(test_vary)
{
	static const char *const names[][3] = {
		/* of two lines, and the result */
		{"", "", ""},
		{"Accept-Encoding", "", "accept-encoding,"},
		{"Accept, Cookie", "X-A_b~09Z", "accept,cookie,x-a_b~09z,"},
		{",Accept,,", " , ", "accept,"},
		{"accept, Accept", "ACCEPT", "accept,"},
		{"acc, accept", "ac", "acc,accept,ac,"},
		{"*", "", "*"},
		{"Accept, *", "Cookie", "*"},
		{"Accept", "*", "*"},
		{"*, *", "", "*"},
		{"*", "*", "*"},
		{", *", "", "*"},
		{"", "*", "*"},
		{"*, Accept", "", "*"},
		{"Accept Cookie", "", "*"},
		{"Accept:", "", "*"},
		{"\"Accept\"", "", "*"},
		{"A\x01", "", "*"},
		{"\xc4", "", "*"},
		{"A;q=1", "", "*"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct cachecontrol_vary vary = {0};
		char out[300];

		vary_add(&vary, names[i][0]);
		vary_add(&vary, names[i][1]);
		vary_text(&vary, out);
		ck_assert_str_eq(out, names[i][2]);
	}
}
END_TEST

/* The memory has a limit; with one name too many, the list means "*". */
START_TEST(test_vary_bounds)
{
	struct cachecontrol_vary vary = {0};
	char name[CACHECONTROL_VARY_MAX + 2];

	for (unsigned i = 0; i < CACHECONTROL_VARY_MAX / 4; i++) {
		snprintf(name, sizeof(name), "%03u", i);
		vary_add(&vary, name);
		ck_assert(!vary.anything);
	}
	ck_assert_uint_eq(vary.length, CACHECONTROL_VARY_MAX);
	vary_add(&vary, "063");
	ck_assert(!vary.anything);
	vary_add(&vary, "a");
	ck_assert(vary.anything);
	ck_assert_uint_eq(vary.length, CACHECONTROL_VARY_MAX);

	for (size_t length = CACHECONTROL_VARY_MAX - 2; length < sizeof(name); length++) {
		vary = (struct cachecontrol_vary){0};
		memset(name, 'a', length);
		name[length] = '\0';
		vary_add(&vary, name);
		ck_assert_int_eq(vary.anything, length >= CACHECONTROL_VARY_MAX);
	}
}
END_TEST

/* For any input, names stay within their memory and their alphabet. */
START_TEST(test_noise)
{
	static const char alphabet[] = "aB*-,,,  =\"\\;max-age9\x80";
	uint64_t state = 11;

	for (unsigned i = 0; i < scaled(20000); i++) {
		struct cachecontrol_vary vary = {0};
		struct cachecontrol control;
		char noise[400];

		for (size_t at = 0; at < sizeof(noise) - 1; at++)
			noise[at] = alphabet[random_next(&state) % (sizeof(alphabet) - 1)];
		noise[sizeof(noise) - 1] = '\0';
		cachecontrol_init(&control);
		add(&control, noise, sizeof(noise) - 1);
		expect(cachecontrol_lifetime(&control) <= MOST);
		vary_add(&vary, noise);
		expect(vary.length <= sizeof(vary.names));
		expect(vary.length == 0 || vary.names[vary.length - 1] == '\0');
		for (size_t at = 0; at < vary.length; at++)
			expect(!strchr("B,= \"\\;\x80", vary.names[at]) || !vary.names[at]);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_control);
	tcase_add_test(tcase, test_two_lines);
	tcase_add_test(tcase, test_vary);
	tcase_add_test(tcase, test_vary_bounds);
	tcase_add_test(tcase, test_noise);
}

RUN_SUITE("cachecontrol", fill)
