/* SPDX-License-Identifier: MIT */
/*
 * test-config-startup.c - unit tests of config-startup.c: a change of each startup key
 * is detected, and of no other.  Pure.
 */
#include <glib.h>
#include <stddef.h>
#include <stdint.h>
#include <nabc.h>

#include "config/config-startup.h"
#include "config/config-read.h"
#include "config/configuration.h"

#include "suite.h"

/* By a command line: the program's name, and a few options. */
static struct config *config_of(const char *one, const char *other)
{
	char *argv[] = {(char *)(uintptr_t)("sweet"), (char *)(uintptr_t)one,
			(char *)(uintptr_t)other, NULL};
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct config_request request = {0};
	struct config *config = config_read(!one ? 1 : !other ? 2 : 3, argv, &request, errors);

	ck_assert_msg(config, "%s", errors->len ? (char *)errors->pdata[0] : "");
	g_ptr_array_free(errors, TRUE);
	return config;
}

static void check_changes(const char *one, const char *other, const char *expected)
{
	struct config *before = config_of(NULL, NULL), *after = config_of(one, other);
	char *names = config_startup_changes(before, after);

	ck_assert_msg(g_strcmp0(names, expected) == 0, "%s %s: %s", one, other, names);
	g_free(names);
	names = config_startup_changes(after, before);
	ck_assert(g_strcmp0(names, expected) == 0);
	g_free(names);
	names = config_startup_changes(after, after);
	ck_assert_ptr_null(names);
	config_release(before);
	config_release(after);
}

START_TEST(test_each)
{
	check_changes(NULL, NULL, NULL);
	check_changes("--threads=63", NULL, "threads");
	check_changes("--io=epoll", NULL, "io");
	check_changes("--arch=sped", NULL, "arch");
	check_changes("--arch=mp", NULL, "threads, arch");
	check_changes("--data-path=posix", NULL, "data-path");
	check_changes("--registered-memory=off", NULL, "registered-memory");
	check_changes("--cache-size=1G", NULL, "cache-size");
	check_changes("--pin=on", NULL, "pin");
	check_changes("--cache-socket=/a", NULL, "cache-socket");
	check_changes("--user=nobody", NULL, "user");
	check_changes("--group=daemon", NULL, "group");
	check_changes("--read-only=on", NULL, "read-only");
	check_changes("--pid-file=/a", NULL, "pid-file");
	check_changes("--spool-directory=/a", NULL, "spool-directory");
	check_changes("--spool-size=2M", NULL, "spool-size");
	check_changes("--spool-memory=on", NULL, "spool-memory");
	check_changes("--pid-file=/a", "--threads=63", "threads, pid-file");
}
END_TEST

START_TEST(test_no_other)
{
	check_changes("--listen=80", "--root=/tmp", NULL);
	check_changes("--access-log=-", "--keep-alive-timeout=1s", NULL);
	check_changes("--worker=/a=b", "--workers=17", NULL);
	check_changes("--revalidate=1s", "--server-header=off", NULL);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_each);
	tcase_add_test(tcase, test_no_other);
}

RUN_SUITE("config-startup", fill)
