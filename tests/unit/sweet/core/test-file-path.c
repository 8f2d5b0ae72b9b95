/* SPDX-License-Identifier: MIT */
/*
 * test-file-path.c - unit tests of file-path.c: which paths name files that are served.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <nabc.h>

#include "config/configuration.h"
#include "core/file-path.h"

#include "suite.h"

static const struct {
	const char *path;
	bool hidden;
} cases[] = {
	{"/", false},
	{"/a/b.txt", false},
	{"/a.b/c.", false},
	{"/.git", true},
	{"/a/.git/config", true},
	{"/a/..b", true},
	{"/.well-known", false},
	{"/.well-known/acme", false},
	{"/.well-known/.a", true},
	{"/.well-knownx", true},
	{"/a/.well-known/b", true},
	{"", false},
};

START_TEST(test_hidden)
{
	const struct scope plain = {.hidden = false}, open = {.hidden = true};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		ck_assert_msg(file_path_is_hidden(&plain, cases[i].path) == cases[i].hidden, "%s",
			      cases[i].path);
		ck_assert(!file_path_is_hidden(&open, cases[i].path));
	}
}
END_TEST

/* The replaced prefix is not a name of the folder. */
START_TEST(test_alias)
{
	const struct scope scope = {.alias = (char *)(uintptr_t)("/srv"), .alias_skip = 3};

	ck_assert_str_eq(file_path_of(&scope, "/.x/a"), "/a");
	ck_assert(!file_path_is_hidden(&scope, "/.x/a"));
	ck_assert(file_path_is_hidden(&scope, "/.x/.a"));
	/* That name of RFC 8615 is one of the host's root. */
	ck_assert(file_path_is_hidden(&scope, "/.x/.well-known/a"));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_hidden);
	tcase_add_test(tcase, test_alias);
}

RUN_SUITE("file-path", fill)
