/* SPDX-License-Identifier: MIT */
/*
 * test-endpoints.c - unit tests of endpoints.c: what a change keeps, opens and closes,
 * and that a failed one has no effect.  Single-threaded, on the loopback interface and
 * in a folder of its own.
 */
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "process/endpoint.h"
#include "process/endpoints.h"

#include "suite.h"

static struct endpoints endpoints;
static GPtrArray *errors;

static struct endpoint *at(unsigned i)
{
	ck_assert_uint_lt(i, endpoints.all->len);
	return endpoints.all->pdata[i];
}

static bool plan(struct endpoints_change *change, const char *text)
{
	char **listen = g_strsplit(text, ";", 0);
	struct endpoints_wanted wanted = {.listen = listen, .given = true};
	bool good = endpoints_plan(&endpoints, &wanted, change, errors);

	g_strfreev(listen);
	return good;
}

/* fresh and gone: the expected numbers. */
static void change(const char *text, unsigned fresh, unsigned gone)
{
	struct endpoints_change step;

	ck_assert(plan(&step, text));
	ck_assert_uint_eq(step.fresh->len, fresh);
	ck_assert_uint_eq(step.gone->len, gone);
	endpoints_commit(&endpoints, &step);
	ck_assert_uint_eq(errors->len, 0);
}

static bool is_open(const struct endpoint *endpoint)
{
	int fd = socket(endpoint->bound.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool good = connect(fd, (const struct sockaddr *)&endpoint->bound.address,
			    endpoint->bound.length) == 0;

	close(fd);
	return good;
}

START_TEST(test_steps)
{
	struct endpoint *kept;
	unsigned id;

	change("127.0.0.1:0;127.0.0.2:0", 2, 0);
	ck_assert_uint_ne(at(0)->id, at(1)->id);
	kept = at(1);
	id = kept->id;
	change("127.0.0.2:0;127.0.0.3:0", 1, 1);
	ck_assert_uint_eq(endpoints.all->len, 2);
	ck_assert_ptr_eq(at(0), kept);
	ck_assert_uint_eq(at(0)->id, id);
	ck_assert_uint_gt(at(1)->id, id);
	ck_assert(is_open(at(0)) && is_open(at(1)));
	/* The order is irrelevant, and a repeated address counts twice. */
	change("127.0.0.3:0;127.0.0.2:0", 0, 0);
	change("127.0.0.3:0;127.0.0.3:0;127.0.0.2:0", 1, 0);
	change("127.0.0.3:0", 0, 2);
	change("", 0, 1);
}
END_TEST

/* After an error all is unchanged, also sockets that were opened before it. */
START_TEST(test_failures)
{
	static const char *const bad[] = {"127.0.0.4:0;nonsense", "127.0.0.4:0;192.0.2.1:0", NULL};
	struct endpoints_change step;
	unsigned descriptors;
	char text[300];

	change("127.0.0.1:0", 1, 0);
	descriptors = open_descriptors();
	for (unsigned i = 0; bad[i]; i++) {
		ck_assert(!plan(&step, bad[i]));
		ck_assert_uint_eq(errors->len, 1);
		g_ptr_array_set_size(errors, 0);
	}
	/* Each error has its line. */
	ck_assert(!plan(&step, "nonsense;192.0.2.1:0;unix:/no/such/folder/socket"));
	ck_assert_uint_eq(errors->len, 3);
	ck_assert_ptr_nonnull(strstr(errors->pdata[0], "\"nonsense\""));
	ck_assert_ptr_nonnull(strstr(errors->pdata[1], "192.0.2.1:0"));
	ck_assert_ptr_nonnull(strstr(errors->pdata[2], "unix:/no/such/folder/socket"));
	ck_assert(!step.in_use);
	g_ptr_array_set_size(errors, 0);
	/* Its own port with another notation is in use. */
	snprintf(text, sizeof(text), "127.0.0.1:0;%s", at(0)->bound.text);
	ck_assert(!plan(&step, text));
	ck_assert(step.in_use);
	g_ptr_array_set_size(errors, 0);
	/* A step that would have to wait does not if it fails anyway. */
	for (unsigned i = 0; i < 2; i++) {
		const char *other = i ? "nonsense" : "192.0.2.1:0";

		snprintf(text, sizeof(text), "127.0.0.1:0;%s;%s", i ? at(0)->bound.text : other,
			 i ? other : at(0)->bound.text);
		ck_assert(!plan(&step, text));
		ck_assert(!step.in_use);
		ck_assert_uint_eq(errors->len, 2);
		g_ptr_array_set_size(errors, 0);
	}
	ck_assert_uint_eq(endpoints.all->len, 1);
	ck_assert(is_open(at(0)));
	/* Or abandoned after all. */
	ck_assert(plan(&step, "127.0.0.5:0"));
	endpoints_abandon(&step);
	ck_assert_uint_eq(endpoints.all->len, 1);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

START_TEST(test_inherited)
{
	struct endpoints_change step;
	struct listen_address address;
	char *listen[] = {(char *)(uintptr_t)("127.0.0.1:8080"), NULL}, text[200];
	int fd, pair[2];

	ck_assert_int_eq(pipe(pair), 0);
	ck_assert_int_eq(endpoints_adopt(&endpoints, pair[0]), -EINVAL);
	close_pair(pair);
	ck_assert(address_parse("127.0.0.1:0", &address));
	fd = endpoint_bind(&address, false);
	ck_assert_int_eq(endpoints_adopt(&endpoints, fd), 0);
	/* Inherited sockets replace a default, which is not opened. */
	ck_assert(endpoints_plan(&endpoints, &(struct endpoints_wanted){.listen = listen}, &step,
				 errors));
	ck_assert_uint_eq(step.fresh->len, 0);
	endpoints_commit(&endpoints, &step);
	/* A configured one is not opened again, and one that is not configured stays. */
	snprintf(text, sizeof(text), "%s;127.0.0.2:0", at(0)->bound.text);
	change(text, 1, 0);
	change("127.0.0.2:0", 0, 0);
	change("127.0.0.3:0", 1, 1);
	ck_assert_uint_eq(endpoints.all->len, 2);
	ck_assert(at(0)->inherited && is_open(at(0)));
}
END_TEST

START_TEST(test_files)
{
	struct endpoints_change step;
	struct stat before, after;
	char folder[64], path[80], text[200];

	make_directory(folder);
	snprintf(path, sizeof(path), "%s/socket", folder);
	snprintf(text, sizeof(text), "unix:%s,mode=600", path);
	change(text, 1, 0);
	ck_assert_int_eq(stat(path, &before), 0);
	snprintf(text, sizeof(text), "unix:%s,mode=666", path);
	ck_assert(plan(&step, text));
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_uint_eq(after.st_mode & 0777, 0600);
	endpoints_commit(&endpoints, &step);
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_uint_eq(after.st_mode & 0777, 0666);
	ck_assert_uint_eq(after.st_ino, before.st_ino);
	change("127.0.0.1:0", 1, 1);
	ck_assert_int_lt(stat(path, &after), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

static void set_up(void)
{
	endpoints_init(&endpoints, 3, false);
	errors = g_ptr_array_new_with_free_func(g_free);
}

static void tear_down(void)
{
	endpoints_clear(&endpoints);
	endpoints_clear(&endpoints);
	g_ptr_array_free(errors, TRUE);
}

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_steps);
	tcase_add_test(tcase, test_failures);
	tcase_add_test(tcase, test_inherited);
	tcase_add_test(tcase, test_files);
}

RUN_SUITE("endpoints", fill)
