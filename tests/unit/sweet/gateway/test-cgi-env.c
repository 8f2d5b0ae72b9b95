/* SPDX-License-Identifier: MIT */
/*
 * test-cgi-env.c - unit tests of cgi-env.c: where the name of a script ends, and the
 * variables that programs of each protocol get.
 */
#include <string.h>

#include "backend/pool.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/site.h"
#include "core/transaction.h"
#include "gateway/cgi-env.h"
#include "gateway/gateway.h"
#include "http/request.h"
#include "program/meta.h"

#include "call-fixture.h"
#include "suite.h"

static struct scope scope;
static struct gateway gateway;
static struct site_scope open_scope = {.folder = (char *)"/srv"};
static struct site site = {.scopes = &open_scope};
static struct config_ref ref = {.site = &site};
static struct request request;
static char block[4096];
static size_t block_length;

static const struct {
	const char *path;
	size_t skip;
	const char *suffix;
	size_t length;
} scripts[] = {
	{"/a.php", 0, ".php", 6},
	{"/a.php/info", 0, ".php", 6},
	{"/a.php.php/b", 0, ".php", 10},
	{"/a.phpx/b.php", 0, ".php", 13},
	{"/a.php/b.php", 0, ".php", 6},
	{"/a.php/b.php", 6, ".php", 12},
	{"/a.phpx", 0, ".php", 0},
	{"/a", 1, ".php", 1},
	{"/a.php", 2, "", 2},
};

START_TEST(test_script_length)
{
	for (unsigned i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		ck_assert_msg(cgi_env_script_length(scripts[i].path, scripts[i].skip,
						    scripts[i].suffix) == scripts[i].length,
			      "%s from %zu on", scripts[i].path, scripts[i].skip);
}
END_TEST

static void write_env(enum pool_protocol protocol, const char *path, size_t skip)
{
	static const char head[] = "GET /x?y HTTP/1.1\r\nHost: h\r\n\r\n";
	long length;

	make_call(0);
	ck_assert_int_eq(request_parse(&request, head, sizeof(head) - 1), 0);
	strcpy(transactions[0].path, path);
	transactions[0].request = &request;
	transactions[0].scope = &scope;
	transactions[0].config_ref = &ref;
	transactions[0].peer.server_addr = "192.0.2.9";
	transactions[0].peer.server_port = 8080;
	settings.protocol = protocol;
	gateway = (struct gateway){.pid = 4711};
	pool.gateway = &gateway;
	length = cgi_env_write(&pool, &transactions[0], skip, block, sizeof(block));
	ck_assert_int_gt(length, 0);
	block_length = (size_t)length;
}

static void check(const char *name, const char *value)
{
	struct slice found = meta_find((struct slice){block, block_length}, name);

	ck_assert_msg(slice_is(found, value), "%s: \"%.*s\" for \"%s\"", name, (int)found.length,
		      found.at, value);
}

static void begin_scope(void)
{
	static char *const index[] = {(char *)"index.html", (char *)"index.php", NULL};

	begin();
	scope = (struct scope){.index = (char **)index};
	settings.script_suffix = (char *)".php";
}

/* A worker does not run for a file. */
START_TEST(test_worker)
{
	begin_scope();
	write_env(POOL_WORKER, "/app/rest", 4);
	check("SCRIPT_NAME", "/app");
	check("PATH_INFO", "/rest");
	check("REMOTE_ADDR", "192.0.2.1");
	check("QUERY_STRING", "y");
	check("DOCUMENT_ROOT", "");
	check("SCRIPT_FILENAME", "");
	check("NABC_SERVER_PID", "");
	end();
}
END_TEST

START_TEST(test_cgi)
{
	begin_scope();
	write_env(POOL_CGI, "/cgi-bin/x.php/info", 14);
	check("SCRIPT_NAME", "/cgi-bin/x.php");
	check("PATH_INFO", "/info");
	check("DOCUMENT_ROOT", "/srv");
	check("SERVER_ADDR", "192.0.2.9");
	check("REQUEST_SCHEME", "http");
	check("REDIRECT_STATUS", "200");
	check("NABC_SERVER_PID", "4711");
	check("SCRIPT_FILENAME", "");
	end();
}
END_TEST

static const struct {
	const char *path;
	size_t skip;
	size_t alias_skip; /* 0: none */
	const char *script, *info, *file;
} fastcgi[] = {
	{"/a.php/b", 0, 0, "/a.php", "/b", "/srv/a.php"},
	/* An index that is a script. */
	{"/", 0, 0, "/index.php", "", "/srv/index.php"},
	{"/d/", 0, 0, "/d/index.php", "", "/srv/d/index.php"},
	/* No script: values that replace it. */
	{"/app/b", 4, 0, "/app", "/b", "/srv/app"},
	/* An alias replaces a part of the path, in which no script is looked for. */
	{"/x.php/a.php", 0, 6, "/x.php/a.php", "", "/srv/a.php"},
	{"/files/a.php/b", 0, 6, "/files/a.php", "/b", "/srv/a.php"},
	{"/files/b", 0, 6, "", "/files/b", "/srv"},
};

START_TEST(test_fastcgi)
{
	for (unsigned i = 0; i < sizeof(fastcgi) / sizeof(fastcgi[0]); i++) {
		begin_scope();
		scope.alias = fastcgi[i].alias_skip ? (char *)"/srv" : NULL;
		scope.alias_skip = fastcgi[i].alias_skip;
		write_env(POOL_FASTCGI, fastcgi[i].path, fastcgi[i].skip);
		check("SCRIPT_NAME", fastcgi[i].script);
		check("PATH_INFO", fastcgi[i].info);
		check("SCRIPT_FILENAME", fastcgi[i].file);
		end();
	}
}
END_TEST

START_TEST(test_no_room)
{
	begin_scope();
	write_env(POOL_CGI, "/a", 2);
	ck_assert_int_eq(cgi_env_write(&pool, &transactions[0], 2, block, block_length),
			 (long)block_length);
	ck_assert_int_eq(cgi_env_write(&pool, &transactions[0], 2, block, block_length - 1), -1);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_script_length);
	tcase_add_test(tcase, test_worker);
	tcase_add_test(tcase, test_cgi);
	tcase_add_test(tcase, test_fastcgi);
	tcase_add_test(tcase, test_no_room);
}

RUN_SUITE("cgi-env", fill)
