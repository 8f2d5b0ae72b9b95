/* SPDX-License-Identifier: MIT */
/*
 * test-gateway.c - unit tests of gateway.c: what workers are asked for, and
 * which requests are theirs.  No worker is started here; the system tests do
 * that with the whole server.
 */
#include <glib.h>

#include <gateway.h>

#include "suite.h"

static struct server servers[2];
static struct site site = {.threads = 2, .servers = {&servers[0], &servers[1]}};

/* Opens with specs up to NULL. */
static struct gateway *open_with(char **why, const char *const *specs)
{
	*why = NULL;
	return gateway_open(&site, (char **)(void *)specs, 3, 1 << 20, why);
}

#define OPEN(why, ...) open_with(why, (const char *const[]){__VA_ARGS__, NULL})

START_TEST(test_none)
{
	char *why;
	struct gateway *gateway = open_with(&why, (const char *const[]){NULL});

	ck_assert_ptr_nonnull(gateway);
	ck_assert_ptr_null(why);
	ck_assert_ptr_null(gateway_find(gateway, "/"));
	gateway_close(gateway);
	gateway_close(NULL);
}
END_TEST

START_TEST(test_specs)
{
	char *why;
	struct gateway *gateway = OPEN(&why, "/a=sh", "/b/c//=/bin/sh -c 'two words' \"a=b\" x\\ y",
				       "/=/==sh", "//d=sh");

	/* The first "=" ends the prefix. */
	ck_assert_ptr_null(gateway);
	ck_assert_ptr_nonnull(why);
	g_free(why);
	gateway = OPEN(&why, "/a=sh", "/b/c//=/bin/sh -c 'two words' \"a=b\" x\\ y", "//d=sh");
	ck_assert_msg(gateway, "%s", why);
	ck_assert_uint_eq(gateway->pool_count, 3);
	ck_assert_uint_eq(gateway->memory, 1 << 20);
	ck_assert_str_eq(gateway->pools[0].prefix, "/a");
	ck_assert_str_eq(gateway->pools[0].argv[0], "sh");
	ck_assert_ptr_null(gateway->pools[0].argv[1]);
	ck_assert_str_eq(gateway->pools[1].prefix, "/b/c");
	ck_assert_uint_eq(gateway->pools[1].prefix_length, 4);
	ck_assert_uint_eq(g_strv_length(gateway->pools[1].argv), 5);
	ck_assert_str_eq(gateway->pools[1].argv[2], "two words");
	ck_assert_str_eq(gateway->pools[1].argv[3], "a=b");
	ck_assert_str_eq(gateway->pools[1].argv[4], "x y");
	ck_assert_str_eq(gateway->pools[2].prefix, "//d");
	for (unsigned i = 0; i < 3; i++) {
		struct gateway_pool *pool = &gateway->pools[i];

		ck_assert_uint_eq(pool->count, 3);
		for (unsigned k = 0; k < 3; k++) {
			ck_assert_uint_eq(pool->workers[k].number, k);
			ck_assert_int_eq(pool->workers[k].state, WORKER_DOWN);
			ck_assert_ptr_eq(pool->workers[k].pool, pool);
			for (unsigned lane = 0; lane < 2; lane++)
				ck_assert_ptr_eq(pool->workers[k].lanes[lane].server,
						 &servers[lane]);
		}
		for (unsigned lane = 0; lane < 2; lane++) {
			ck_assert_ptr_eq(pool->queues[lane].pool, pool);
			ck_assert_ptr_eq(pool->queues[lane].server, &servers[lane]);
			ck_assert_ptr_eq(pool->queues[lane].last, &pool->queues[lane].first);
		}
	}
	gateway_close(gateway);
}
END_TEST

START_TEST(test_bad_specs)
{
	static const char *const bad[] = {
		"",
		"=",
		"=sh",
		"sh",
		"/a",
		"/=sh",
		"//=sh",
		"////=sh",
		"a=sh",
		"a/b=sh",
		" /a=sh",
		"/a=",
		"/a=   ",
		"/a='",
		"/a=sh \"unfinished",
		"/a=sh \\",
		"/a=no-such-program-anywhere",
		"/a=/nonexistent/program",
		"/a=./nonexistent",
		"/a=/dev/null",
		"/a=/",
		"/a=''",
		"/a=# a comment only",
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		/* Behind a good one, which must be given back. */
		char *why;
		struct gateway *gateway = OPEN(&why, "/good=sh -c true", bad[i]);

		ck_assert_msg(!gateway, "%s", bad[i]);
		ck_assert_ptr_nonnull(why);
		/* One line, that shows what is meant. */
		ck_assert_ptr_null(strchr(why, '\n'));
		ck_assert_int_eq(strncmp(why, "worker \"", 8), 0);
		ck_assert_msg(strncmp(why + 8, bad[i], strlen(bad[i])) == 0, "%s", why);
		ck_assert_uint_gt(strlen(why), strlen(bad[i]) + 15);
		g_free(why);
	}
}
END_TEST

static const struct {
	const char *path;
	const char *prefix; /* NULL: nobody's */
} paths[] = {
	{"/gen", "/gen"},
	{"/gen/", "/gen"},
	{"/gen/x", "/gen"},
	{"/gen/x/y/z", "/gen"},
	{"/gen//", "/gen"},
	{"/gen/deep", "/gen/deep"},
	{"/gen/deep/", "/gen/deep"},
	{"/gen/deep/x", "/gen/deep"},
	{"/gen/deeper", "/gen"},
	{"/gen/dee", "/gen"},
	{"/generate", "/generate"},
	{"/generate/x", "/generate"},
	{"/generates", NULL},
	{"/ge", NULL},
	{"/", NULL},
	{"", NULL},
	{"/x/gen", NULL},
	{"//gen", NULL},
	{"/Gen", NULL},
	{"gen", NULL},
	{"/gen.html", NULL},
	{"/gen?", NULL},
};

START_TEST(test_find)
{
	/* In every order of them. */
	static const char *const orders[][3] = {
		{"/gen=sh", "/gen/deep/=sh", "/generate=sh"},
		{"/generate=sh", "/gen/deep=sh", "/gen/=sh"},
		{"/gen/deep=sh", "/gen=sh", "/generate=sh"},
	};

	for (unsigned order = 0; order < 3; order++) {
		char *why;
		struct gateway *gateway =
			OPEN(&why, orders[order][0], orders[order][1], orders[order][2]);

		ck_assert_msg(gateway, "%s", why);
		for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
			/* Of the exact size, so that a read too far is seen. */
			size_t size = strlen(paths[i].path) + 1;
			char *path = must_alloc(size);
			struct gateway_pool *pool;

			memcpy(path, paths[i].path, size);
			pool = gateway_find(gateway, path);
			free(path);
			ck_assert_msg(!pool == !paths[i].prefix, "%s", paths[i].path);
			if (pool)
				ck_assert_str_eq(pool->prefix, paths[i].prefix);
		}
		gateway_close(gateway);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_none);
	tcase_add_test(tcase, test_specs);
	tcase_add_test(tcase, test_bad_specs);
	tcase_add_test(tcase, test_find);
}

RUN_SUITE("gateway", fill)
