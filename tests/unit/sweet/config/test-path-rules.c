/* SPDX-License-Identifier: MIT */
/*
 * test-path-rules.c - unit tests of exact paths and patterns: which applies, what it inherits, and
 * that decisions are remembered for one configuration only.
 */
#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "config/configuration.h"
#include "config/path-rules.h"
#include "rules/path-pattern.h"

#include "config-fixture.h"
#include "suite.h"

static struct path_memory *memory;
static struct path_captures captures;
static const struct path_rule *rule;
static unsigned generation = 1; /* of the configuration */

static void refuses(const char *text, const char *part)
{
	char words[256];

	write_config(text);
	snprintf(words, sizeof(words), "sweet --config=%s", path);
	check_refused(words, part);
}

static void free_memory(void)
{
	path_memory_free(memory);
	memory = NULL;
	tear_down();
}

static const struct scope *find(const struct config *config, const char *at)
{
	return path_rules_find(generation, &config->hosts[0], at, &memory, &captures, &rule);
}

/* What applies, as "NAME PREFIX"; twice, since the second time it is remembered. */
static const char *applies(const struct config *config, const char *at)
{
	static char text[256];
	const struct scope *scope = find(config, at);

	ck_assert_ptr_nonnull(scope);
	ck_assert_ptr_eq(find(config, at), scope);
	snprintf(text, sizeof(text), "%s %s", scope->rule ? scope->rule->name : "-", scope->prefix);
	return text;
}

START_TEST(test_order)
{
	struct config *config = must_read_file("[sweet]\n"
					       "[pattern b]\nmatch=^/x\n"
					       "[pattern a]\nmatch=\\\\.txt$\n"
					       "[path /d]\n[path /d/e]\n"
					       "[path =/d/e.txt]\n[path =/x]\n[path =/]\n");

	ck_assert_str_eq(applies(config, "/d"), "- /d");
	ck_assert_str_eq(applies(config, "/d/e/f"), "- /d/e");
	ck_assert_str_eq(applies(config, "/d/e/f.txt"), "a /d/e");
	ck_assert_str_eq(applies(config, "/d/f.txt"), "a /d");
	ck_assert_str_eq(applies(config, "/f.txt"), "a ");
	ck_assert_str_eq(applies(config, "/xf.txt"), "b ");
	ck_assert_str_eq(applies(config, "/d/e.txt"), "- /d/e.txt");
	ck_assert_str_eq(applies(config, "/x"), "- /x");
	ck_assert_str_eq(applies(config, "/x/"), "b ");
	ck_assert_str_eq(applies(config, "/"), "- /");
	ck_assert_str_eq(applies(config, "/y"), "- ");
	config_release(config);
}
END_TEST

/* A pattern adds to what the prefix says, and an exact path as well. */
START_TEST(test_inheritance)
{
	struct config *config =
		must_read_file("[sweet]\nmax-body=1K\nroot=/srv\n"
			       "[path /d]\nallow=192.0.2.0/24\nmax-body=2K\n"
			       "alias=/other\nredirect=/new/\n"
			       "[path /e]\nrewrite=/f\n"
			       "[path =/d]\nlisting=on\n"
			       "[path =/d/x]\nmax-body=4K\n"
			       "[pattern a]\nmatch=(.)\\\\.txt$\nlisting=on\n"
			       "request-rate=7\n"
			       "[pattern r]\nmatch=/(r)$\nrewrite=/b/{1}?c={1}\n"
			       "redirect=off\n"
			       "[pattern o]\nmatch=/o$\nroot=/only\nredirect=/x/\n");
	const struct scope *scope = find(config, "/d/f.txt"), *other;

	ck_assert(scope->listing && scope->access);
	ck_assert_uint_eq(scope->max_body, 2 << 10);
	ck_assert_str_eq(scope->alias, "/other");
	ck_assert_uint_eq(scope->alias_skip, 2);
	ck_assert_str_eq(scope->redirect_to, "/new/");
	ck_assert_ptr_null(scope->redirect_text);
	ck_assert_uint_eq(scope->redirect_skip, 2);
	ck_assert_uint_eq(captures.count, 2);
	ck_assert_uint_eq(captures.from[1], 3);
	other = find(config, "/f.txt");
	ck_assert(other->listing && !other->access && !other->alias);
	ck_assert_uint_eq(other->max_body, 1 << 10);
	ck_assert(scope->rate_name && other->rate_name);
	scope = find(config, "/e/r");
	ck_assert_ptr_nonnull(scope->rewrite_text);
	ck_assert_ptr_null(scope->rewrite);
	ck_assert_str_eq(find(config, "/e/f.txt")->rewrite, "/f");
	scope = find(config, "/d/o");
	ck_assert_str_eq(scope->root, "/only");
	ck_assert_ptr_null(scope->alias);
	/* The redirect of a pattern replaces the whole path. */
	ck_assert_ptr_nonnull(scope->redirect_text);
	scope = find(config, "/d");
	ck_assert(scope->listing && scope->access);
	ck_assert_uint_eq(scope->max_body, 2 << 10);
	scope = find(config, "/d/x");
	ck_assert(!scope->listing && scope->access);
	ck_assert_uint_eq(scope->max_body, 4 << 10);
	config_release(config);
}
END_TEST

START_TEST(test_hosts)
{
	struct config *config = must_read_file("[sweet]\nredirect=/default\n[host a.example]\n"
					       "[host b.example]\n"
					       "[pattern a.example/one]\nmatch=^/x\n"
					       "[path b.example=/x]\n[path b.example/x/y]\n");
	const struct host *a = &config->hosts[1], *b = &config->hosts[2];

	ck_assert_ptr_null(find(config, "/x")->rule);
	ck_assert_str_eq(
		path_rules_find(generation, a, "/x", &memory, &captures, &rule)->rule->name, "one");
	/* Hosts do not inherit it, and so their patterns do not. */
	ck_assert_ptr_null(
		path_rules_find(generation, a, "/x", &memory, &captures, &rule)->redirect_to);
	ck_assert_str_eq(path_rules_find(generation, b, "/x", &memory, &captures, &rule)->prefix,
			 "/x");
	ck_assert_str_eq(path_rules_find(generation, b, "/x/z", &memory, &captures, &rule)->prefix,
			 "");
	ck_assert_str_eq(path_rules_find(generation, a, "/x", &memory, &captures, &rule)->prefix,
			 "");
	config_release(config);
}
END_TEST

/* A reload can put another configuration at the address of the last one: its number differs. */
START_TEST(test_remembers)
{
	struct config *config = must_read_file("[sweet]\n[pattern a]\nmatch=(x)y$\n");
	char longer[300];

	for (unsigned round = 0; round < 2; round++) {
		ck_assert_str_eq(applies(config, "/xy"), "a ");
		ck_assert_uint_eq(captures.from[1], 1);
		/* Many others, which have its place in between. */
		for (unsigned i = 0; i < 2000; i++) {
			char other[32];

			snprintf(other, sizeof(other), "/%u%s", i, i % 2 ? "xy" : "");
			ck_assert_str_eq(applies(config, other), i % 2 ? "a " : "- ");
			if (i % 2)
				ck_assert_uint_eq(captures.from[1], strlen(other) - 2);
		}
	}
	memset(longer, 'x', sizeof(longer));
	longer[0] = '/';
	strcpy(longer + sizeof(longer) - 2, "y");
	ck_assert_str_eq(applies(config, longer), "a ");
	longer[1] = 'y';
	ck_assert_str_eq(applies(config, longer), "a ");
	generation = 2;
	g_free(config->hosts[0].rules[0]->name);
	config->hosts[0].rules[0]->name = g_strdup("b");
	path_pattern_free(config->hosts[0].rules[0]->pattern);
	config->hosts[0].rules[0]->pattern = path_pattern_compile("^/z", &(char *){NULL});
	ck_assert_str_eq(applies(config, "/xy"), "- ");
	config_release(config);
}
END_TEST

START_TEST(test_too_hard)
{
	struct config *config = must_read_file("[sweet]\n[pattern slow]\nmatch=^/(a+)+$\n");
	char text[200];

	memset(text, 'a', sizeof(text));
	text[0] = '/';
	strcpy(text + sizeof(text) - 2, "!");
	ck_assert_ptr_null(find(config, text));
	ck_assert_str_eq(rule->name, "slow");
	ck_assert_ptr_null(find(config, text));
	ck_assert_str_eq(applies(config, "/aa"), "slow ");
	config_release(config);
}
END_TEST

START_TEST(test_bad)
{
	refuses("[sweet]\n[pattern a]\n", "needs match=EXPRESSION");
	refuses("[sweet]\n[pattern a]\nmatch=\n", "must be a regular expression");
	refuses("[sweet]\n[pattern a]\nmatch=(x\n", "sweet.conf:3: match \"(x\": missing");
	refuses("[sweet]\n[pattern b.example/a]\nmatch=x\n", "there is no [host b.example]");
	refuses("[sweet]\n[pattern a]\nmatch=(x)\nrewrite=/{2}\n", "has 1 groups");
	refuses("[sweet]\n[pattern a]\nmatch=(x)\nrewrite={1}\n", "must begin with '/'");
	refuses("[sweet]\n[pattern a]\nmatch=(x)\nrewrite=/a b\n", "must be a URI");
	refuses("[sweet]\n[pattern a]\nmatch=(x)\nrewrite=/{client}\n",
		"unknown variable {client}");
	refuses("[sweet]\n[pattern a]\nmatch=(x)\nalias=/a\n", "into [path PREFIX]");
	refuses("[sweet]\n[path /a]\nredirect=/{1}\n", "only a [pattern] has groups");
	refuses("[sweet]\n[path /a]\nmatch=x\n", "into [pattern NAME]");
	refuses("[sweet]\n[path =/a]\nalias=/a\n", "not for an exact path");
	refuses("[sweet]\n[path a]\n", "must begin with '/'");
	refuses("[sweet]\n[path =a]\n", "must begin with '/'");
	refuses("[sweet]\n[path b=/a]\n", "there is no [host b]");
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, free_memory);
	tcase_add_test(tcase, test_order);
	tcase_add_test(tcase, test_inheritance);
	tcase_add_test(tcase, test_hosts);
	tcase_add_test(tcase, test_remembers);
	tcase_add_test(tcase, test_too_hard);
	tcase_add_test(tcase, test_bad);
}

RUN_SUITE("path-rules", fill)
