/* SPDX-License-Identifier: MIT */
/*
 * test-site.c - unit tests of site.c and of struct config_ref: folders are opened
 * once, shared by scopes and by generations, and closed with the last user of a
 * configuration.  Owns a folder of folders; single-threaded.
 */
#include <fcntl.h>
#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config-read.h"
#include "config/configuration.h"
#include "core/site.h"
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

static void must_open(struct config *config, const struct config *previous)
{
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);

	ck_assert(site_open(config, previous, &(struct site_options){.max_unit = 1}, errors));
	ck_assert_uint_eq(errors->len, 0);
	g_ptr_array_free(errors, TRUE);
}

static struct file_cache *content_at(const struct config *config, const char *at)
{
	return host_scope(&config->hosts[0], at)->file_cache;
}

START_TEST(test_shared)
{
	struct config *first = read_text("[sweet]\nroot=@/a\n[path /x]\nroot=@/b\n"
					 "[path /y]\nalias=@/a\n[host h]\nroot=@/b/../b\n");
	struct config *second, *third;
	struct file_cache *a, *b;

	must_open(first, NULL);
	a = content_at(first, "/");
	b = content_at(first, "/x");
	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_eq(content_at(first, "/y"), a);
	ck_assert_ptr_eq(first->hosts[1].scopes[0].file_cache, b);
	/* The next generation continues to use it, though the folder was renamed. */
	second = read_text("[sweet]\nroot=@/b\n");
	must_open(second, first);
	ck_assert_ptr_eq(content_at(second, "/"), b);
	/* With different options it is a different content. */
	third = read_text("[sweet]\nroot=@/b\nrevalidate=5\n");
	must_open(third, second);
	ck_assert_ptr_ne(content_at(third, "/"), b);
	config_release(first);
	ck_assert_int_ge(file_cache_root(b).fd, 0);
	ck_assert_int_ge(fcntl(file_cache_root(b).fd, F_GETFD), 0);
	config_release(second);
	config_release(third);
}
END_TEST

START_TEST(test_errors)
{
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct config *config = read_text("[sweet]\nroot=@/none\n[path /x]\nalias=@/sweet.conf\n"
					  "[path /y]\nroot=@/a\n[path /z]\n");

	ck_assert(!site_open(config, NULL, &(struct site_options){.max_unit = 1}, errors));
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

static unsigned released;

static void count(struct config *config)
{
	(void)config;
	released++;
}

/* A transaction ends with the generation with which it began. */
START_TEST(test_generations)
{
	struct config *config = read_text("[sweet]\nroot=@/a\n");
	struct config_ref *present = config_ref_open(config), *held;

	config->release = count;
	held = config_ref_hold(present);
	config_ref_release(present);
	ck_assert_uint_eq(released, 0);
	ck_assert_ptr_eq(held->config, config);
	config_ref_release(held);
	ck_assert_uint_eq(released, 1);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_shared);
	tcase_add_test(tcase, test_errors);
	tcase_add_test(tcase, test_generations);
}

RUN_SUITE("site", fill)
