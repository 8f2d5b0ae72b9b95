/* SPDX-License-Identifier: MIT */
/*
 * test-config-script.c - unit tests of config-script.c: which pool has a path as a script, and which
 * files are never sent.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/slice.h"
#include "config/config-script.h"
#include "config/configuration.h"
#include "config/pool-config.h"

#include "config-fixture.h"
#include "suite.h"

#define POOL(name, more)                                                                           \
	"[pool " name "]\nprotocol=fastcgi\nupstream=127.0.0.1:1\nscript-suffix=\n" more "\n"

static const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};

static const struct host *host_of(const struct config *config, const char *name)
{
	return config_host(config, (struct slice){name, strlen(name)}, &nowhere);
}

/* The pool comes first in the file that is only near to all hosts. */
#define CLAIMS                                                                                     \
	"[sweet]\n[host a]\n[host b]\n" POOL("all", "suffix=.php")                                 \
		POOL("own", "suffix=.php\nhosts=a")                                                \
			POOL("long", "suffix=.inc.php\nhosts=default;a")

START_TEST(test_claims)
{
	static const struct {
		const char *host, *path, *pool, *script;
	} cases[] = {
		{"x", "/a.php", "all", "/a.php"},
		{"b", "/a.php", "all", "/a.php"},
		{"a", "/a.php", "own", "/a.php"},
		{"a", "/a.inc.php", "long", "/a.inc.php"},
		{"x", "/a.inc.php/b", "long", "/a.inc.php"},
		{"b", "/a.inc.php", "all", "/a.inc.php"},
		/* The first script in the path. */
		{"a", "/a.php/b.inc.php", "own", "/a.php"},
		{"a", "/a.phpx/b.php/", "own", "/a.phpx/b.php"},
		{"a", "/a.php5", NULL, NULL},
		{"a", "/", NULL, NULL},
	};
	struct config *config = must_read_file(CLAIMS);

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		const struct host *host = host_of(config, cases[i].host);
		size_t length = 0;
		const struct pool_config *pool = config_script(host, cases[i].path, &length);

		ck_assert_msg(g_strcmp0(pool ? pool->name : NULL, cases[i].pool) == 0, "%s: %s",
			      cases[i].path, pool ? pool->name : "none");
		ck_assert(!pool || length == strlen(cases[i].script));
	}
	config_release(config);
}
END_TEST

START_TEST(test_sources)
{
	struct config *config = must_read_file(
		"[sweet]\nfastcgi=/mounted=127.0.0.1:1\n[path /own]\npool=own\n"
		"[path /tried]\ntry-files=file;pool:own\n[path /off]\npool=off\n[host a]\n" POOL(
			"suffix", "suffix=.s\nhosts=a") "[pool own]\nprotocol=fastcgi\n"
							"upstream=127.0.0.1:1\nscript-suffix=.o\n");
	static const struct {
		const char *path;
		bool source;
	} cases[] = {
		{"/a.s", true},	     {"/own/a.s", true},   {"/off/a.s", true},
		{"/a.o", false},     {"/own/a.o", true},   {"/own/a.o/", false},
		{"/off/a.o", false}, {"/tried/a.o", true}, {"/mounted/a.php", true},
		{"/a.php", false},
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		const struct scope *scope = host_scope(&config->hosts[0], cases[i].path);

		ck_assert_msg(config_is_source(config, scope, cases[i].path) == cases[i].source,
			      "%s", cases[i].path);
	}
	/* Without a path, only the suffix counts. */
	ck_assert(config_is_source(config, NULL, "/x/a.s"));
	ck_assert(!config_is_source(config, NULL, "/mounted/a.php"));
	config_release(config);
}
END_TEST

START_TEST(test_off)
{
	struct config *config = must_read_file(
		"[sweet]\n[path /a]\npool=off\n[path /a/b]\nlisting=on\n[path /a/c]\npool=p\n"
		"[path /d]\n[pattern x]\nmatch=x\npool=off\n[host off]\npool=off\n"
		"[path off/on]\npool=p\n" POOL("p", ""));
	const struct host *host = &config->hosts[0], *off = host_of(config, "off");

	ck_assert(host_scope(host, "/a")->no_scripts && host_scope(host, "/a/b")->no_scripts);
	ck_assert(!host_scope(host, "/a/c")->no_scripts && !host_scope(host, "/d")->no_scripts);
	ck_assert(!host_scope(host, "/")->no_scripts && host_scope(off, "/")->no_scripts);
	ck_assert(!host_scope(off, "/on")->no_scripts);
	config_release(config);
}
END_TEST

static void refuses(const char *text, const char *part)
{
	char words[256];

	write_config(text);
	snprintf(words, sizeof(words), "sweet --config=%s", path);
	check_refused(words, part);
}

START_TEST(test_refused)
{
	refuses("[sweet]\n" POOL("a", "suffix=.php") POOL("b", "suffix=.php"),
		"pool \"b\": suffix \".php\" is also of pool \"a\" (");
	/* Once, for however many hosts. */
	refuses("[sweet]\n[host a]\n[host b]\n" POOL("a", "suffix=.php") POOL("b", "suffix=.php"),
		"is also of pool \"a\" (");
	refuses("[sweet]\n[host a]\n" POOL("a", "suffix=.php\nhosts=a")
			POOL("b", "suffix=.php\nhosts=default;a"),
		"suffix \".php\" of host a is also of pool \"a\" (");
	refuses("[sweet]\n" POOL("a", "suffix=.php\nhosts=x"), "there is no [host x]");
	refuses("[sweet]\n" POOL("a", "hosts=default"), "but no suffix");
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_claims);
	tcase_add_test(tcase, test_sources);
	tcase_add_test(tcase, test_off);
	tcase_add_test(tcase, test_refused);
}

RUN_SUITE("config-script", fill)
