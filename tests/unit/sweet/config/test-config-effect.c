/* SPDX-License-Identifier: MIT */
/*
 * test-config-effect.c - unit tests of config-effect.c and effect-of-scope.c: what has an effect for
 * one of the paths that inherit it is not reported, and what has none is, once.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "config/configuration.h"

#include "config-fixture.h"
#include "suite.h"

#define POOL "[pool p]\nprotocol=http\nupstream=127.0.0.1:1\n"
#define SCRIPTS "[pool s]\nprotocol=fastcgi\nupstream=127.0.0.1:1\nsuffix=.s\n"

/* The file has one warning at most: of that line, with that text; line 0: none. */
static void warns(const char *text, unsigned line, const char *part)
{
	struct config *config = must_read_file(text);
	char place[128];

	ck_assert_msg(config->warnings->len == (line > 0), "%s: %u warnings, like %s", text,
		      config->warnings->len,
		      config->warnings->len ? (char *)config->warnings->pdata[0] : "none");
	snprintf(place, sizeof(place), "%s:%u: warning: ", path, line);
	if (line) {
		const char *said = config->warnings->pdata[0];

		ck_assert_msg(g_str_has_prefix(said, place) && strstr(said, part), "%s: %s", text,
			      said);
	}
	config_release(config);
}

static void refuses(const char *text, const char *part)
{
	char words[256];

	write_config(text);
	snprintf(words, sizeof(words), "sweet --config=%s", path);
	check_refused(words, part);
}

START_TEST(test_inheritance)
{
	/* One of many is enough, of another host, too. */
	warns("[sweet]\nauth-file=/a\n[host h]\n[path h/a]\nauth-realm=x\n", 0, NULL);
	warns("[sweet]\ncache=response\n[host h]\n[path h/a]\npool=p\n" POOL, 0, NULL);
	warns("[sweet]\nrequest-burst=3\n[pattern a]\nmatch=x\nrequest-rate=5\n", 0, NULL);
	warns("[sweet]\nrequest-burst=3\n[path /a]\nrequest-burst=4\nrequest-rate=5\n", 2,
	      "request-burst has no effect");
	/* Once, however many paths inherit it. */
	warns("[sweet]\nrequest-burst=3\n[path /a]\ndeny=all\n[path /b]\ndeny=all\n[host h]\n", 2,
	      "there is no request-rate");
	refuses("[sweet]\n[host a]\nauth-file=/x\n[host b]\nauth-realm=x\nauth-file=/x\n",
		"sweet.conf:3: auth-file has no effect");
}
END_TEST

START_TEST(test_led)
{
	refuses("[path /a]\nrewrite=/\npool=p\n" POOL, "pool has no effect: rewrite");
	refuses("[path /a]\nredirect=/b\npool=p\n" POOL, "pool has no effect: redirect");
	refuses("[path /a]\nrewrite=/\npool=p\n[path /b]\nrewrite=/\n" POOL, "sweet.conf:3: pool");
	refuses("[path /a/b]\nrewrite=/a\npool=p\n" POOL, "pool has no effect: rewrite");
	/* Something leads there, or a path below does not inherit it. */
	warns("[path /a]\nrewrite=/a/b\npool=p\n" POOL, 0, NULL);
	warns("[path /a]\nredirect=/b\npool=p\n[path /c]\nrewrite=/a\n" POOL, 0, NULL);
	warns("[path /a]\nredirect=/b\npool=p\n[path /c]\ntry-files=file;/a/x\n" POOL, 0, NULL);
	warns("[path /a]\nrewrite=/b\npool=p\n[path /a/c]\nroot=/\n" POOL, 0, NULL);
	warns("[path /a]\nredirect=/b\npool=p\n[pattern c]\nmatch=c(.*)\nrewrite=/{1}\n" POOL, 0,
	      NULL);
	warns("[path =/a]\nredirect=/b\npool=p\n" POOL, 0, NULL);
	warns("[path /a]\nredirect=tls\npool=p\n" POOL, 0, NULL);
	warns("[path /a]\nredirect=/b\nrewrite=/c\n", 3, "rewrite has no effect");
}
END_TEST

START_TEST(test_answers)
{
	warns("[path /a]\npool=p\nlisting=on\n" POOL, 3, "no folder is answered with files");
	warns("[path /a]\npool=p\ntry-files=file;pool:p\ncharset=x\n" POOL, 0, NULL);
	warns("[path /a]\npool=p\nlisting=off\n" POOL, 0, NULL);
	warns("[sweet]\nvariable=A=b\n" SCRIPTS, 0, NULL);
	warns("[path /a]\npool=off\nvariable=A=b\n" SCRIPTS, 3, "no program that gets variables");
	warns("[sweet]\nworker=/a=true\n[path /a/b]\nlisting=on\n", 4,
	      "no folder is answered with files");
	warns("[sweet]\nworker=/a/b=true\n[path /a]\nlisting=on\ncache=response\n", 0, NULL);
	warns("[path =/a]\nindex=b\n", 2, "its path ends with a slash");
	warns("[path =/]\nindex=b\n", 0, NULL);
}
END_TEST

START_TEST(test_sections)
{
	warns("[path /a]\n", 1, "[path /a] has no effect");
	/* It keeps patterns away. */
	warns("[path =/a]\n", 0, NULL);
	warns(POOL, 1, "[pool p] has no effect");
	warns("[path /a]\ntry-files=file;pool:p\n" POOL, 0, NULL);
	warns("[map m]\nvalues=a b\n", 1, "[map m] has no effect");
	warns("[path /a]\nheader=X: {map:m}\n[map m]\nvalues=a b\n", 0, NULL);
	refuses("[pattern a]\nmatch=x\n[pattern b]\nmatch=x\n", "[pattern a] has the same");
	warns("[host h]\n[pattern a]\nmatch=x\n[pattern h/b]\nmatch=x\n", 0, NULL);
	/* Beside another mistake, nothing else is said. */
	refuses("[sweet]\nrequest-burst=3\nlisting=x\n[path /a]\nauth-file=/x\n", "listing");
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_inheritance);
	tcase_add_test(tcase, test_led);
	tcase_add_test(tcase, test_answers);
	tcase_add_test(tcase, test_sections);
}

RUN_SUITE("config-effect", fill)
