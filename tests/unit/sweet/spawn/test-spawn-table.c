/* SPDX-License-Identifier: MIT */
/*
 * test-spawn-table.c - unit tests of spawn-table.c: which pools have programs that the
 * spawner knows, and as which user it starts them.
 */
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <nabc.h>

#include "config/configuration.h"
#include "config/pool-config.h"
#include "process/privileges.h"
#include "rules/variable.h"
#include "spawn/spawn-table.h"

#include "suite.h"

static const struct privileges nobody_special = {0};

static struct pool_config *pool(unsigned protocol, const char *folder, const char *user)
{
	struct pool_config *made = pool_config_new(folder ? folder : "none", NULL, NULL);

	made->protocol = protocol;
	made->folder = g_strdup(folder);
	made->user = g_strdup(user);
	return made;
}

static bool open_with(struct spawn_table **table, const struct pool_config **pools, unsigned count,
		      char **why)
{
	const struct config config = {.threads = 1, .pools = pools, .pool_count = count};

	return spawn_table_open(table, &config, 1, &nobody_special, why);
}

START_TEST(test_none)
{
	const struct pool_config *pools[] = {pool(POOL_FASTCGI, NULL, NULL)};
	struct spawn_table *table;
	char *why;

	ck_assert(open_with(&table, pools, 1, &why));
	ck_assert_ptr_null(table);
	ck_assert_int_eq(spawn_table_find(NULL, pools[0]), -1);
	ck_assert(open_with(&table, NULL, 0, &why));
	ck_assert_ptr_null(table);
	spawn_table_close(NULL);
	/* No process was forked for that. */
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	pool_config_unref(pools[0]);
}
END_TEST

START_TEST(test_find)
{
	const struct pool_config *pools[] = {pool(POOL_CGI, "/tmp", NULL),
					     pool(POOL_FASTCGI, NULL, NULL),
					     pool(POOL_CGI, "/usr", NULL)};
	struct pool_config *same = pool(POOL_CGI, "/usr", NULL), *other = pool(POOL_CGI, "/", NULL);
	struct spawn_table *table;
	char *why;

	ck_assert(open_with(&table, pools, 3, &why));
	ck_assert_ptr_nonnull(table);
	ck_assert_int_eq(spawn_table_find(table, pools[0]), 0);
	ck_assert_int_eq(spawn_table_find(table, pools[1]), -1);
	ck_assert_int_eq(spawn_table_find(table, pools[2]), 1);
	/* As after a reload, perhaps with other limits. */
	same->answer_ms = 7;
	ck_assert_int_eq(spawn_table_find(table, same), 1);
	ck_assert_int_eq(spawn_table_find(table, other), -1);
	for (unsigned i = 0; i < 3; i++)
		pool_config_unref(pools[i]);
	ck_assert_int_eq(spawn_table_find(table, same), 1);
	spawn_table_close(table);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	pool_config_unref(same);
	pool_config_unref(other);
}
END_TEST

/* A worker is a child of the server itself, unless it has other credentials. */
START_TEST(test_workers)
{
	struct pool_config *made[] = {pool(POOL_WORKER, NULL, NULL), pool(POOL_WORKER, NULL, NULL),
				      pool(POOL_WORKER, NULL, NULL)};
	const struct pool_config *pools[] = {made[0], made[1], made[2]};
	struct spawn_table *table;
	char *why;

	for (unsigned i = 0; i < 3; i++) {
		made[i]->command = g_strdup_printf("sh -c 'exit %u'", i);
		ck_assert(pool_config_finish(made[i], &why));
	}
	ck_assert(open_with(&table, pools, 3, &why));
	ck_assert_ptr_null(table);
	made[1]->directory = g_strdup("/");
	made[2]->memory_limit = 1 << 30;
	ck_assert(open_with(&table, pools, 3, &why));
	ck_assert_int_eq(spawn_table_find(table, pools[0]), -1);
	ck_assert_int_eq(spawn_table_find(table, pools[1]), 0);
	ck_assert_int_eq(spawn_table_find(table, pools[2]), 1);
	spawn_table_close(table);
	for (unsigned i = 0; i < 3; i++)
		pool_config_unref(pools[i]);
}
END_TEST

/* A reload may set those whose names say that they are of a request, for CGI programs no others. */
START_TEST(test_variables)
{
	static char *of_pool[] = {"OWN=1", "HTTP_A=1", NULL}, *of_path[] = {"PATHS=2", NULL};
	static char *more[] = {"PATHS=2", "HTTP_B=3", NULL}, *other[] = {"PATHS=3", NULL};
	struct pool_config *made = pool(POOL_CGI, "/tmp", NULL);
	const struct pool_config *pools[] = {made};
	struct scope scope = {.prefix = "", .pool = pools[0], .variables.list = of_path};
	struct host host = {.scopes = &scope, .scope_count = 1};
	struct config config = {
		.threads = 1, .pools = pools, .pool_count = 1, .hosts = &host, .host_count = 1};
	struct spawn_table *table;
	char *why;

	made->variables.list = g_strdupv(of_pool);
	ck_assert(spawn_table_open(&table, &config, 1, &nobody_special, &why));
	ck_assert(spawn_table_knows_variables(table, &config, &why));
	scope.variables.list = more;
	ck_assert(spawn_table_knows_variables(table, &config, &why));
	scope.variables.list = other;
	ck_assert(!spawn_table_knows_variables(table, &config, &why));
	ck_assert_msg(strstr(why, "/tmp") && strstr(why, "PATHS=3"), "%s", why);
	g_free(why);
	ck_assert(spawn_table_knows_variables(NULL, &config, &why));
	/* It leads to no program. */
	scope.pool = NULL;
	ck_assert(spawn_table_knows_variables(table, &config, &why));
	scope.variables.list = NULL;
	made->variables.list[0][4] = '2';
	ck_assert(!spawn_table_knows_variables(table, &config, &why));
	ck_assert_msg(strstr(why, "OWN=2"), "%s", why);
	g_free(why);
	spawn_table_close(table);
	pool_config_unref(pools[0]);
}
END_TEST

START_TEST(test_bad)
{
	const struct pool_config *pools[] = {pool(POOL_CGI, "/tmp", NULL),
					     pool(POOL_CGI, "/usr", "no-such-user")};
	struct spawn_table *table;
	char *why;

	ck_assert(!open_with(&table, pools, 2, &why));
	ck_assert_ptr_null(table);
	ck_assert_msg(strstr(why, "no-such-user") && strstr(why, "/usr"), "%s", why);
	g_free(why);
	pool_config_unref(pools[0]);
	pool_config_unref(pools[1]);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_none);
	tcase_add_test(tcase, test_find);
	tcase_add_test(tcase, test_workers);
	tcase_add_test(tcase, test_variables);
	tcase_add_test(tcase, test_bad);
}

RUN_SUITE("spawn-table", fill)
