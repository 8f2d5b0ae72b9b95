/* SPDX-License-Identifier: MIT */
/*
 * test-path-pattern.c - unit tests of regular expressions for paths.  Single-threaded.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "base/clock.h"
#include "base/slice.h"
#include "rules/path-pattern.h"

#include "suite.h"

static struct path_pattern_memory *memory;
static struct path_captures captures;

static void set_up(void)
{
	memory = path_pattern_memory_new();
	ck_assert_ptr_nonnull(memory);
}

static void tear_down(void)
{
	path_pattern_memory_free(memory);
}

static struct path_pattern *must_compile(const char *expression)
{
	char *why;
	struct path_pattern *pattern = path_pattern_compile(expression, &why);

	ck_assert_msg(pattern, "%s: %s", expression, why);
	ck_assert_ptr_null(why);
	return pattern;
}

static enum path_match match(const char *expression, const char *path)
{
	struct path_pattern *pattern = must_compile(expression);
	enum path_match result =
		path_pattern_match(pattern, memory, (struct slice){path, strlen(path)}, &captures);

	path_pattern_free(pattern);
	return result;
}

static void ck_capture(const char *path, unsigned group, const char *expected)
{
	struct slice text = path_capture(&captures, path, group);

	ck_assert_uint_eq(text.length, strlen(expected));
	ck_assert_mem_eq(text.at, expected, text.length);
}

START_TEST(test_match)
{
	ck_assert_int_eq(match("^/users/([0-9]+)$", "/users/42"), PATH_MATCHES);
	ck_assert_uint_eq(captures.count, 2);
	ck_capture("/users/42", 0, "/users/42");
	ck_capture("/users/42", 1, "42");
	ck_capture("/users/42", 2, "");
	ck_capture("/users/42", 9, "");
	ck_assert_int_eq(match("^/users/([0-9]+)$", "/users/x"), PATH_DIFFERS);
	/* The end is the end, also of a path that ends with a line. */
	ck_assert_int_eq(match("^/a$", "/a\n"), PATH_DIFFERS);
	ck_assert_int_eq(match("\\.(jpg|png)$", "/a/b.png"), PATH_MATCHES);
	ck_capture("/a/b.png", 1, "png");
	ck_assert_int_eq(match("(?i)\\.PNG$", "/b.png"), PATH_MATCHES);
	ck_assert_uint_eq(captures.count, 1);
	/* Bytes that are no UTF-8. */
	ck_assert_int_eq(match("^/\xff(.)$", "/\xff\xfe"), PATH_MATCHES);
	ck_capture("/\xff\xfe", 1, "\xfe");
}
END_TEST

START_TEST(test_groups)
{
	struct path_pattern *pattern = must_compile("(a)(b)?");

	ck_assert_uint_eq(path_pattern_groups(pattern), 2);
	path_pattern_free(pattern);
	ck_assert_int_eq(match("^/(a)?(b)$", "/b"), PATH_MATCHES);
	ck_capture("/b", 1, "");
	ck_capture("/b", 2, "b");
	/* More groups than there are numbers. */
	pattern = must_compile("(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)");
	ck_assert_uint_eq(path_pattern_groups(pattern), PATH_CAPTURES_MAX - 1);
	path_pattern_free(pattern);
	ck_assert_int_eq(match("(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)", "/bcdefghijk"), PATH_MATCHES);
	ck_assert_uint_eq(captures.count, PATH_CAPTURES_MAX);
	ck_capture("/bcdefghijk", 9, "i");
}
END_TEST

/* What an expression begins with is compared first: whatever it looks like, PCRE2 decides. */
START_TEST(test_begin)
{
	static const char *const expressions[] = {
		"^/a",	      "^/ab?",	    "^/ab*c",	 "^/ab+",	   "^/a{0}b",
		"^/a|b",      "^/a(b|c)",   "^(?i)/A",	 "^/a[(]|b",	   "^/a[]|]b",
		"^/a[^]|]b",  "^/a\\.b",    "^/a\\|b",	 "^/a\\db",	   "^\\/a",
		"^/a\\Q|\\E", "^/a(?:b|c)", "^/a(?#|)b", "^/a(?i)B",	   "(?x)^/a b",
		"^/a(?x) b",  "^",	    "^$",	 "^/a$|^/b$",	   "^/a[\\]|]b",
		"^/a.b",      "^/a\\x62",   "^/(a)|(b)", "^/a[[:alpha:]]", "^/a(b)(c)|b",
		"^/a)?b",     "(^/a)|b",
	};
	static const char *const paths[] = {"/",    "/a",   "/A",   "/ab",  "/abb", "/aB",
					    "/ac",  "b",    "/b",   "/a.b", "/a|b", "/a1b",
					    "/a(",  "/a]b", "/a|",  "",	    "/abc", "/axb",
					    "/a b", "/a^b", "/a\\", "/a[b", "/xb",  "/a|]b"};

	for (unsigned i = 0; i < G_N_ELEMENTS(expressions); i++) {
		/* The same without '^' at its begin. */
		char *other = g_strconcat("(?:)", expressions[i], NULL), *why;
		struct path_pattern *one = path_pattern_compile(expressions[i], &why), *two;

		g_free(why);
		two = path_pattern_compile(other, &why);
		g_free(why);
		ck_assert((one == NULL) == (two == NULL));
		for (unsigned k = 0; one && k < G_N_ELEMENTS(paths); k++) {
			struct slice path = {paths[k], strlen(paths[k])};

			ck_assert_msg(path_pattern_match(one, memory, path, &captures) ==
					      path_pattern_match(two, memory, path, &captures),
				      "%s: %s", expressions[i], paths[k]);
		}
		path_pattern_free(one);
		path_pattern_free(two);
		g_free(other);
	}
}
END_TEST

START_TEST(test_invalid)
{
	static const char *const expressions[] = {"(", "[a", "a{2,1}", "\\", "(?<n>a)(?<n>b)",
						  "*a"};

	for (unsigned i = 0; i < G_N_ELEMENTS(expressions); i++) {
		char *why;

		ck_assert_msg(!path_pattern_compile(expressions[i], &why), "%s", expressions[i]);
		ck_assert_ptr_nonnull(strstr(why, "at character "));
		g_free(why);
	}
}
END_TEST

/* An expression that tries exponentially many ways ends. */
START_TEST(test_too_hard)
{
	char path[4096];

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 2] = '!';
	path[sizeof(path) - 1] = '\0';
	ck_assert_int_eq(match("^/(a+)+$", path), PATH_TOO_HARD);
	ck_assert_int_eq(match("^/(a|a)*$", path), PATH_TOO_HARD);
	/* The memory can be used again. */
	ck_assert_int_eq(match("^/a+!$", path), PATH_MATCHES);
}
END_TEST

/* Many hard paths, each another one, get few steps; others are matched meanwhile. */
START_TEST(test_many_hard)
{
	uint64_t began_ns = clock_monotonic_ns(), seconds;
	unsigned tries = 0, refused = 0;
	char path[200];

	for (unsigned i = 0; i < 20 * PATH_HARD_TRIES; i++) {
		enum path_match found;

		snprintf(path, sizeof(path), "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!%u", i);
		found = match("^/(a+)+$", path);
		ck_assert(found == PATH_TOO_HARD || found == PATH_NOT_NOW);
		tries += found == PATH_TOO_HARD;
		refused += found == PATH_NOT_NOW;
		ck_assert_int_eq(match("^/(a+)+!", path), PATH_MATCHES);
		ck_assert_int_eq(match("^/(b+)+$", path), PATH_DIFFERS);
	}
	seconds = (clock_monotonic_ns() - began_ns) / 1000000000u + 2;
	ck_assert_uint_ge(tries, PATH_HARD_TRIES);
	ck_assert_uint_le(tries, seconds * PATH_HARD_TRIES);
	ck_assert(refused || seconds > 19);
}
END_TEST

/* With and without machine code, whose stack is smaller, the results are the same. */
START_TEST(test_long)
{
	static const char *const expressions[] = {"^/(a|b)*$", "^/(?:a|b)*$", "^/((a)|b)*$",
						  "^(/a|a)*$"};
	char path[8192];

	for (unsigned i = 0; i < G_N_ELEMENTS(expressions); i++)
		for (size_t length = 512; length < sizeof(path); length += 512) {
			char *other = g_strconcat("(*NO_JIT)", expressions[i], NULL);
			enum path_match result;
			unsigned end;

			/* With all its tries. */
			path_pattern_memory_free(memory);
			memory = path_pattern_memory_new();
			memset(path, 'a', length);
			path[0] = '/';
			path[length] = '\0';
			result = match(expressions[i], path);
			end = captures.to[1];
			ck_assert_msg(result == match(other, path), "%s: %zu", expressions[i],
				      length);
			ck_assert_uint_eq(end, captures.to[1]);
			if (i == 0 && length == 2048)
				ck_assert_int_eq(result, PATH_MATCHES);
			g_free(other);
		}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_match);
	tcase_add_test(tcase, test_groups);
	tcase_add_test(tcase, test_begin);
	tcase_add_test(tcase, test_invalid);
	tcase_add_test(tcase, test_too_hard);
	tcase_add_test(tcase, test_many_hard);
	tcase_add_test(tcase, test_long);
}

RUN_SUITE("path-pattern", fill)
