/* SPDX-License-Identifier: MIT */
/*
 * test-pool-config.c - unit tests of pool-config.c: what a pool requires, the values
 * that are derived, and when processes are kept for another configuration.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "config/pool-config.h"

#include "suite.h"

static struct pool_config *pool_of(enum pool_protocol protocol, const char *command,
				   const char *folder, const char *upstream)
{
	struct pool_config *pool = pool_config_new("p", NULL, NULL);

	pool->protocol = protocol;
	pool->command = g_strdup(command);
	pool->folder = g_strdup(folder);
	pool->upstream = g_strsplit(upstream ? upstream : "", ";", 0);
	return pool;
}

START_TEST(test_needs)
{
	static const struct {
		enum pool_protocol protocol;
		const char *command, *folder, *upstream;
		bool good;
	} cases[] = {
		{POOL_WORKER, "sh -c true", NULL, NULL, true},
		{POOL_WORKER, NULL, NULL, NULL, false},
		{POOL_WORKER, "sh", "/tmp", NULL, false},
		{POOL_WORKER, "sh", NULL, "unix:/s", false},
		{POOL_CGI, NULL, "/tmp", NULL, true},
		{POOL_CGI, NULL, NULL, NULL, false},
		{POOL_CGI, "sh", "/tmp", NULL, false},
		{POOL_CGI, NULL, "/tmp", "unix:/s", false},
		{POOL_FASTCGI, NULL, NULL, "unix:/s;127.0.0.1:9000", true},
		{POOL_FASTCGI, NULL, NULL, "nonsense:", false},
		{POOL_FASTCGI, NULL, NULL, "app:9000;my-app.example.org:9000", true},
		{POOL_FASTCGI, NULL, NULL, "app", false},
		{POOL_FASTCGI, NULL, NULL, "127.0.0.1:443,tls", false},
		{POOL_HTTP, NULL, NULL, "localhost:8001;[::1]:8001", true},
		{POOL_HTTP, NULL, NULL, "localhost:8001;a..b:80", false},
		{POOL_HTTP, NULL, NULL, "app:443,tls", false},
		{POOL_HTTP, NULL, NULL, "unix:/s,tls", false},
		{POOL_FASTCGI, "sh", NULL, NULL, true},
		{POOL_FASTCGI, "sh", NULL, "unix:/s", false},
		{POOL_FASTCGI, NULL, NULL, NULL, false},
		{POOL_FASTCGI, NULL, "/tmp", "unix:/s", false},
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct pool_config *pool = pool_of(cases[i].protocol, cases[i].command,
						   cases[i].folder, cases[i].upstream);
		char *why = NULL;

		ck_assert_msg(pool_config_finish(pool, &why) == cases[i].good, "case %u", i);
		ck_assert(cases[i].good == !why);
		/* One line. */
		ck_assert(!why || !strchr(why, '\n'));
		g_free(why);
		pool_config_unref(pool);
	}
}
END_TEST

/* The user and the limits of a process, if the spawner starts it. */
START_TEST(test_others)
{
	for (unsigned i = 0; i < 20; i++) {
		struct pool_config *pool = i % 4 == 0	? pool_of(POOL_CGI, NULL, "/tmp", NULL)
					   : i % 4 == 1 ? pool_of(POOL_FASTCGI, "sh", NULL, NULL)
					   : i % 4 == 2
						   ? pool_of(POOL_FASTCGI, NULL, NULL, "unix:/s")
						   : pool_of(POOL_WORKER, "sh", NULL, NULL);
		char *why = NULL;

		pool->user = i / 4 == 0 ? g_strdup("nobody") : NULL;
		pool->group = i / 4 == 1 ? g_strdup("nogroup") : NULL;
		pool->directory = i / 4 == 2 ? g_strdup("/") : NULL;
		pool->memory_limit = i / 4 == 3;
		pool->seccomp = i / 4 == 4;
		ck_assert(pool_config_is_other(pool));
		ck_assert_msg(pool_config_finish(pool, &why) == (i % 4 != 2), "case %u", i);
		g_free(why);
		pool_config_unref(pool);
	}
}
END_TEST

/* A worker's segment is a part of its address space. */
START_TEST(test_memory)
{
	static const struct {
		enum pool_protocol protocol;
		size_t memory, limit;
		bool good;
	} cases[] = {{POOL_WORKER, 4096, 0, true},
		     {POOL_WORKER, 4096, 4095, false},
		     {POOL_WORKER, 4096, 4096, false},
		     {POOL_WORKER, 4096, 4097, true},
		     {POOL_FASTCGI, 4096, 4095, true}};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct pool_config *pool = pool_of(cases[i].protocol, "sh", NULL, NULL);
		char *why = NULL;

		pool->memory = cases[i].memory;
		pool->memory_limit = cases[i].limit;
		ck_assert_msg(pool_config_finish(pool, &why) == cases[i].good, "case %u", i);
		ck_assert(cases[i].good || strstr(why, "memory-limit"));
		g_free(why);
		pool_config_unref(pool);
	}
}
END_TEST

/* The library comes before those that the operator preloads. */
START_TEST(test_preload)
{
	static const struct {
		enum pool_protocol protocol;
		const char *preload, *environment;
		const char *entries; /* NULL: refused */
	} cases[] = {
		{POOL_WORKER, "/a/b.so", "", "LD_PRELOAD=/a/b.so"},
		{POOL_WORKER, "/a/b.so", "A=1", "A=1;LD_PRELOAD=/a/b.so"},
		{POOL_WORKER, "/a/b.so", "LD_PRELOAD=/c.so;A=1", "LD_PRELOAD=/a/b.so:/c.so;A=1"},
		{POOL_WORKER, "/a/b.so", "LD_PRELOAD=", "LD_PRELOAD=/a/b.so"},
		{POOL_WORKER, "b.so", "", NULL},
		{POOL_WORKER, "other", "", NULL},
		{POOL_FASTCGI, "fcgi", "", NULL},
	};

	unsetenv("LD_PRELOAD");
	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct pool_config *pool = pool_of(cases[i].protocol, "sh", NULL, NULL);
		char *why = NULL, *entries;

		g_strfreev(pool->environment);
		pool->environment = g_strsplit(cases[i].environment, ";", 0);
		pool->preload = g_strdup(cases[i].preload);
		ck_assert_int_eq(pool_config_finish(pool, &why), cases[i].entries != NULL);
		entries = g_strjoinv(";", pool->environment);
		if (cases[i].entries)
			ck_assert_str_eq(entries, cases[i].entries);
		else
			ck_assert_ptr_nonnull(strstr(why, "preload"));
		g_free(entries);
		g_free(why);
		pool_config_unref(pool);
	}
}
END_TEST

START_TEST(test_preload_fcgi)
{
	struct pool_config *pool = pool_of(POOL_WORKER, "sh", NULL, NULL);
	char *why = NULL;

	pool->preload = g_strdup("fcgi");
	ck_assert(pool_config_finish(pool, &why));
	ck_assert(g_str_has_suffix(pool->preload, "/libnabc-fcgi.so"));
	g_free(pool->preload);
	pool->preload = g_strdup("/nonexistent/library.so");
	ck_assert(!pool_config_check(pool, &why));
	ck_assert_ptr_nonnull(strstr(why, "/nonexistent/library.so"));
	g_free(why);
	pool_config_unref(pool);
}
END_TEST

START_TEST(test_bounds)
{
	static const struct {
		enum pool_protocol protocol;
		const char *command, *upstream;
		bool trust;
		size_t head;
		const char *wrong; /* NULL: nothing */
	} cases[] = {
		{POOL_FASTCGI, NULL, "127.0.0.1:9", true, 32768, NULL},
		{POOL_FASTCGI, "sh", NULL, true, 32768, "trust-cache-ids"},
		{POOL_WORKER, "sh", NULL, true, 32768, "trust-cache-ids"},
		{POOL_WORKER, "sh", NULL, false, 1 << 20, NULL},
		{POOL_WORKER, "sh", NULL, false, (1 << 20) + 1, "max-response-header"},
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct pool_config *pool =
			pool_of(cases[i].protocol, cases[i].command, NULL, cases[i].upstream);
		char *why = NULL;

		pool->trust_cache_ids = cases[i].trust;
		pool->max_response_header = cases[i].head;
		ck_assert_msg(pool_config_finish(pool, &why) == !cases[i].wrong, "case %u", i);
		ck_assert(!cases[i].wrong || strstr(why, cases[i].wrong));
		g_free(why);
		pool_config_unref(pool);
	}
}
END_TEST

START_TEST(test_commands)
{
	static const char *const bad[] = {
		"", "   ", "'", "sh \"unfinished", "sh \\", "''", "# a comment only"};
	static const char *const absent[] = {"no-such-program-anywhere", "/nonexistent/program",
					     "./nonexistent", "/dev/null", "/"};
	struct pool_config *pool =
		pool_of(POOL_WORKER, "/bin/sh -c 'two words' \"a=b\" x\\ y", NULL, NULL);
	char *why = NULL;

	ck_assert(pool_config_finish(pool, &why));
	ck_assert(pool_config_check(pool, &why));
	ck_assert_uint_eq(g_strv_length(pool->argv), 5);
	ck_assert_str_eq(pool->argv[2], "two words");
	ck_assert_str_eq(pool->argv[3], "a=b");
	ck_assert_str_eq(pool->argv[4], "x y");
	pool_config_unref(pool);
	for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
		pool = pool_of(POOL_WORKER, bad[i], NULL, NULL);
		ck_assert_msg(!pool_config_finish(pool, &why) || !pool_config_check(pool, &why),
			      "%s", bad[i]);
		ck_assert_ptr_nonnull(why);
		g_clear_pointer(&why, g_free);
		pool_config_unref(pool);
	}
	for (unsigned i = 0; i < G_N_ELEMENTS(absent); i++) {
		pool = pool_of(POOL_WORKER, absent[i], NULL, NULL);
		ck_assert(pool_config_finish(pool, &why));
		ck_assert_msg(!pool_config_check(pool, &why), "%s", absent[i]);
		ck_assert_ptr_nonnull(strstr(why, absent[i]));
		g_clear_pointer(&why, g_free);
		pool_config_unref(pool);
	}
}
END_TEST

START_TEST(test_folders)
{
	struct pool_config *pool = pool_of(POOL_CGI, NULL, "/nonexistent", NULL);
	char *why = NULL;

	ck_assert(!pool_config_check(pool, &why));
	ck_assert_ptr_nonnull(strstr(why, "/nonexistent"));
	g_clear_pointer(&why, g_free);
	g_free(pool->folder);
	pool->folder = g_strdup("/");
	ck_assert(pool_config_check(pool, &why));
	pool->directory = g_strdup("/dev/null");
	ck_assert(!pool_config_check(pool, &why));
	g_free(why);
	pool_config_unref(pool);
}
END_TEST

START_TEST(test_environment)
{
	static const char *const values[] = {"A=1", "A=", "A", "=1", "", NULL};
	static const bool good[] = {true, true, false, false, false};

	for (unsigned i = 0; values[i]; i++) {
		struct pool_config *pool = pool_of(POOL_WORKER, "sh", NULL, NULL);
		char *why = NULL;

		pool->environment = g_new0(char *, 2);
		pool->environment[0] = g_strdup(values[i]);
		ck_assert_msg(pool_config_finish(pool, &why) == good[i], "%s", values[i]);
		g_free(why);
		pool_config_unref(pool);
	}
}
END_TEST

/* The program that started the application at an address sets its variables. */
START_TEST(test_environment_of_others)
{
	for (unsigned i = 0; i < 4; i++) {
		bool elsewhere = i % 2, given = i / 2;
		struct pool_config *pool = pool_of(POOL_FASTCGI, elsewhere ? NULL : "sh", NULL,
						   elsewhere ? "unix:/s" : NULL);
		char *why = NULL;

		pool->environment = g_strsplit(given ? "A=1" : "", ";", 0);
		ck_assert_msg(pool_config_finish(pool, &why) == !(elsewhere && given), "case %u",
			      i);
		ck_assert(!why || (strstr(why, "environment") && strstr(why, "upstream")));
		g_free(why);
		pool_config_unref(pool);
	}
}
END_TEST

START_TEST(test_names)
{
	static const struct {
		const char *upstream;
		bool has;
	} cases[] = {
		{NULL, false},
		{"unix:/a;127.0.0.1:80;[::1]:80;8001", false},
		{"unix:/a;app:80", true},
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct pool_config *pool = pool_of(POOL_HTTP, NULL, NULL, cases[i].upstream);

		ck_assert(pool_config_has_names(pool) == cases[i].has);
		pool_config_unref(pool);
	}
}
END_TEST

START_TEST(test_same)
{
	struct pool_config *one = pool_of(POOL_FASTCGI, NULL, NULL, "unix:/a;unix:/b");
	struct pool_config *other = pool_of(POOL_FASTCGI, NULL, NULL, "unix:/a;unix:/b");

	ck_assert(pool_config_same(one, other));
	other->environment = g_new0(char *, 2);
	ck_assert(pool_config_same(one, other));
	other->environment[0] = g_strdup("A=1");
	ck_assert(!pool_config_same(one, other));
	ck_assert(!pool_config_same(other, one));
	one->environment = g_strdupv(other->environment);
	ck_assert(pool_config_same(one, other));
	other->answer_ms++;
	ck_assert(!pool_config_same(one, other));
	other->answer_ms--;
	other->keep_ms++;
	ck_assert(!pool_config_same(one, other));
	other->keep_ms--;
	other->resolve_ms++;
	ck_assert(!pool_config_same(one, other));
	other->resolve_ms--;
	other->stream_ahead++;
	ck_assert(!pool_config_same(one, other));
	other->stream_ahead--;
	other->slow_ms++;
	ck_assert(!pool_config_same(one, other));
	other->slow_ms--;
	other->user = g_strdup("nobody");
	ck_assert(!pool_config_same(one, other));
	one->user = g_strdup("nobody");
	g_clear_pointer(&other->upstream[1], g_free);
	ck_assert(!pool_config_same(one, other));
	pool_config_unref(one);
	pool_config_unref(other);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_needs);
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_others);
	tcase_add_test(tcase, test_memory);
	tcase_add_test(tcase, test_preload);
	tcase_add_test(tcase, test_preload_fcgi);
	tcase_add_test(tcase, test_bounds);
	tcase_add_test(tcase, test_commands);
	tcase_add_test(tcase, test_folders);
	tcase_add_test(tcase, test_environment);
	tcase_add_test(tcase, test_environment_of_others);
	tcase_add_test(tcase, test_same);
}

RUN_SUITE("pool-config", fill)
