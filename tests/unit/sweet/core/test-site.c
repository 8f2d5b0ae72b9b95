/* SPDX-License-Identifier: MIT */
/*
 * test-site.c - unit tests of site.c and of struct config_ref: what is open for the parts of a
 * configuration is shared by scopes, kept or made again by the next generation, and closed with the
 * last user.  Owns a folder of folders.
 */
#include <fcntl.h>
#include <glib.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config-read.h"
#include "config/configuration.h"
#include "core/auth.h"
#include "core/site.h"
#include "event/client-limit.h"
#include "files/docroot.h"
#include "files/file-cache.h"

#include "suite.h"

static char directory[64], path[100];

static void set_up(void)
{
	char folder[100];

	make_directory(directory);
	snprintf(path, sizeof(path), "%s/sweet.conf", directory);
	for (const char *name = "ab"; *name; name++) {
		snprintf(folder, sizeof(folder), "%s/%c", directory, *name);
		ck_assert_int_eq(mkdir(folder, 0755), 0);
	}
}

static void tear_down(void)
{
	char folder[100];

	for (const char *name = "ab"; *name; name++) {
		snprintf(folder, sizeof(folder), "%s/%c", directory, *name);
		ck_assert_int_eq(rmdir(folder), 0);
	}
	(void)unlink(path);
	ck_assert_int_eq(rmdir(directory), 0);
}

/* The configuration of a text in which @ is the folder. */
static struct config *read_text(const char *text)
{
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	char **parts = g_strsplit(text, "@", 0), *whole = g_strjoinv(directory, parts);
	char *argv[] = {(char *)(uintptr_t)("sweet"), (char *)(uintptr_t)("--config"), path, NULL};
	struct config_request request;
	struct config *config;

	ck_assert(g_file_set_contents(path, whole, -1, NULL));
	config = config_read(3, argv, &request, errors);
	ck_assert_msg(config, "%s", errors->len ? (char *)errors->pdata[0] : "");
	g_ptr_array_free(errors, TRUE);
	g_strfreev(parts);
	g_free(whole);
	return config;
}

static struct site *must_open_with(struct config *config, const struct site *previous,
				   struct authenticator *authenticator)
{
	const struct site_options options = {.max_unit = 1, .authenticator = authenticator};
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct site *site = site_new(config);

	ck_assert(site_open(site, previous, &options, errors));
	ck_assert_uint_eq(errors->len, 0);
	g_ptr_array_free(errors, TRUE);
	return site;
}

static struct site *must_open(struct config *config, const struct site *previous)
{
	return must_open_with(config, previous, NULL);
}

static const struct site_scope *open_at(const struct site *site, const char *at)
{
	return &site->scopes[host_scope(&site->config->hosts[0], at)->number];
}

static struct file_cache *content_at(const struct site *site, const char *at)
{
	return open_at(site, at)->file_cache;
}

START_TEST(test_shared)
{
	struct site *first, *second, *third;
	struct file_cache *a, *b;

	first = must_open(read_text("[sweet]\nroot=@/a\n[path /x]\nroot=@/b\n"
				    "[path /y]\nalias=@/a\n[host h]\nroot=@/b/../b\n"),
			  NULL);
	a = content_at(first, "/");
	b = content_at(first, "/x");
	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_eq(content_at(first, "/y"), a);
	ck_assert_ptr_eq(first->scopes[first->config->hosts[1].scopes[0].number].file_cache, b);
	ck_assert_uint_eq(first->number, 1);
	/* The next generation continues to use it, though the folder was renamed. */
	second = must_open(read_text("[sweet]\nroot=@/b\n"), first);
	ck_assert_ptr_eq(content_at(second, "/"), b);
	ck_assert_uint_eq(second->number, 2);
	/* With different options it is a different content. */
	third = must_open(read_text("[sweet]\nroot=@/b\nrevalidate=5\n"), second);
	ck_assert_ptr_ne(content_at(third, "/"), b);
	site_release(first);
	ck_assert_int_ge(file_cache_root(b).fd, 0);
	ck_assert_int_ge(fcntl(file_cache_root(b).fd, F_GETFD), 0);
	site_release(second);
	site_release(third);
}
END_TEST

static const struct rate_limit *rate_at(const struct site *site, const char *at)
{
	return open_at(site, at)->rate;
}

/* Paths that inherit a rate count together, also with those of the next generation. */
START_TEST(test_rates)
{
	struct sockaddr_in client = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	const struct sockaddr *from = (const struct sockaddr *)&client;
	struct client_limits *limits = client_limits_open(16);
	struct site *first, *second;

	ck_assert_ptr_nonnull(limits);
	first = must_open(read_text("[sweet]\nroot=@/a\nrequest-rate=10\nrequest-burst=4\n"
				    "[path /x]\n[path /y]\nrequest-rate=20\n"
				    "[path /z]\nrequest-rate=0\n"),
			  NULL);
	ck_assert_uint_eq(rate_at(first, "/")->interval_ns, 100000000);
	ck_assert_uint_eq(rate_at(first, "/")->burst_ns, 400000000);
	ck_assert_uint_eq(rate_at(first, "/y")->interval_ns, 50000000);
	ck_assert_ptr_null(rate_at(first, "/z"));
	for (unsigned i = 0; i < 5; i++)
		ck_assert_uint_eq(
			client_limits_take(limits, rate_at(first, i % 2 ? "/" : "/x"), from, 1), 0);
	second = must_open(read_text("[sweet]\nroot=@/a\nrequest-rate=10\nrequest-burst=4\n"),
			   first);
	site_release(first);
	ck_assert_uint_gt(client_limits_take(limits, rate_at(second, "/"), from, 1), 0);
	site_release(second);
	client_limits_close(limits);
}
END_TEST

/* Paths with one password file have the same users; the next generation reads the file again. */
START_TEST(test_users)
{
	struct client_limits *limits = client_limits_open(16);
	struct authenticator *authenticator = authenticator_open(limits);
	struct site *first, *second;
	char users[100];

	ck_assert_ptr_nonnull(authenticator);
	snprintf(users, sizeof(users), "%s/users", directory);
	ck_assert(g_file_set_contents(users, "u:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=\n", -1, NULL));
	first = must_open_with(read_text("[sweet]\nroot=@/a\n"
					 "[path /x]\nauth-realm=X\nauth-file=@/users\n"
					 "[path /y]\nauth-realm=Y\nauth-file=@/users\n"),
			       NULL, authenticator);
	ck_assert_ptr_null(open_at(first, "/")->auth);
	ck_assert_ptr_nonnull(open_at(first, "/x")->auth);
	ck_assert_ptr_eq(open_at(first, "/x")->auth, open_at(first, "/y")->auth);
	second = must_open_with(read_text("[sweet]\nroot=@/a\nauth-realm=X\nauth-file=@/users\n"),
				first, authenticator);
	ck_assert_ptr_nonnull(open_at(second, "/")->auth);
	ck_assert_ptr_ne(open_at(second, "/")->auth, open_at(first, "/x")->auth);
	site_release(first);
	site_release(second);
	authenticator_close(authenticator);
	client_limits_close(limits);
	ck_assert_int_eq(unlink(users), 0);
}
END_TEST

START_TEST(test_errors)
{
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct config *config = read_text("[sweet]\nroot=@/none\n[path /x]\nalias=@/sweet.conf\n"
					  "[path /y]\nroot=@/a\n[path /z]\n");

	site_check(config, errors);
	ck_assert_uint_eq(errors->len, 2);
	for (unsigned i = 0; i < errors->len; i++) {
		const char *why = errors->pdata[i];

		ck_assert_msg(strstr(why, strstr(why, "alias") ? ":4: cannot serve the alias \""
							       : ":2: cannot serve the root \""),
			      "%s", why);
	}
	config_release(config);
	g_ptr_array_free(errors, TRUE);
}
END_TEST

static const struct gateway_pool *ended[3];
static unsigned ended_count;

static void end_pool(struct gateway_pool *pool)
{
	ended[ended_count++] = pool;
}

/* What runs for a pool is found by its number, and is released once: by the last reference. */
START_TEST(test_pools)
{
	struct config *config = read_text("[sweet]\nroot=@/a\n"
					  "[pool p]\nprotocol=fastcgi\nupstream=127.0.0.1:1\n"
					  "[pool q]\nprotocol=fastcgi\nupstream=127.0.0.1:2\n"
					  "[pool r]\nprotocol=fastcgi\nupstream=127.0.0.1:3\n"
					  "[path /x]\npool=q\n[path /y]\npool=r\n");
	struct site *site = must_open(config, NULL);
	struct config_ref *ref = config_ref_open(site_hold(site));
	char places[2]; /* only the addresses count */

	site->release_pool = end_pool;
	/* The third cannot be started. */
	site->pools[0] = (struct gateway_pool *)&places[0];
	site->pools[1] = (struct gateway_pool *)&places[1];
	ck_assert_ptr_eq(site_pool(ref, config->pools[0]), site->pools[0]);
	ck_assert_ptr_eq(site_pool(ref, host_scope(&config->hosts[0], "/x")->pool), site->pools[1]);
	ck_assert_ptr_null(site_pool(ref, host_scope(&config->hosts[0], "/y")->pool));
	site_release(site);
	ck_assert_uint_eq(ended_count, 0);
	config_ref_release(ref);
	ck_assert_uint_eq(ended_count, 2);
	ck_assert_ptr_eq(ended[0], &places[0]);
	ck_assert_ptr_eq(ended[1], &places[1]);
}
END_TEST

/* A transaction ends with the generation with which it began; then nothing stays open. */
START_TEST(test_generations)
{
	unsigned before = open_descriptors();
	struct site *site = must_open(read_text("[sweet]\nroot=@/a\n"), NULL);
	struct config_ref *present = config_ref_open(site_hold(site)), *held;

	site_release(site);
	held = config_ref_hold(present);
	config_ref_release(present);
	ck_assert_uint_eq(open_descriptors(), before + 1);
	ck_assert_ptr_eq(held->site, site);
	ck_assert_ptr_eq(held->config, site->config);
	config_ref_release(held);
	ck_assert_uint_eq(open_descriptors(), before);
	site_release(NULL);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_shared);
	tcase_add_test(tcase, test_rates);
	tcase_add_test(tcase, test_users);
	tcase_add_test(tcase, test_errors);
	tcase_add_test(tcase, test_pools);
	tcase_add_test(tcase, test_generations);
}

RUN_SUITE("site", fill)
