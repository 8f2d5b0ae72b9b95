/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-grant-bad.c - unit tests of the public calls about grants and several caches, with
 * every wrong argument.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>
#include <nabc.h>

#include "grants-fixture.h"
#include "nabc-fixture.h"
#include "suite.h"
#include "unit-holds.h"

/* --- wrong arguments ---------------------------------------------------------------- */

START_TEST(test_no_cache)
{
	NC_cache *was;

	setenv("NABC_CACHE", "/nonexistent/socket", 1);
	check_calls_fail(NULL, ENOENT);
	unsetenv("NABC_CACHE");
	check_calls_fail((NC_cache *)&was, EINVAL);
	open_cache(MIB);
	was = cache;
	close_cache();
	/* This cache is closed, and no other. */
	check_calls_fail(was, EINVAL);
	FAILS(NC_cache_close(was), EINVAL);
	open_cache(MIB);
	check_calls_fail((NC_cache *)1, EINVAL);
	close_cache();
}
END_TEST

START_TEST(test_bad_arguments)
{
	struct NC_stat units[2], stat;
	struct NC_grant_info grants[2];
	struct NC_cache_stat before, after;
	size_t cursor, run = 77, id;
	char bytes[10];

	open_owners();
	id = insert_in(NULL, 1, 5000, NC_KIND_RECYCLED);
	ck_assert_int_eq(hold_id(NULL, id), 0);
	ck_assert_int_eq(NC_cache_stat(NULL, &before, sizeof(before)), 0);
	cursor = 0;
	FAILS(NC_list(NULL, NULL, units, sizeof(*units), 2), EINVAL);
	FAILS(NC_list(NULL, &cursor, NULL, 1, 2), EINVAL);
	FAILS(NC_list(NULL, &cursor, units, sizeof(*units), 0), EINVAL);
	ck_assert_uint_eq(cursor, 0);
	for (unsigned i = 0; i < 64; i++) {
		cursor = SIZE_MAX >> i;
		ck_assert_int_ge(NC_list(NULL, &cursor, units, sizeof(*units), 2), 0);
		cursor = (size_t)1 << i;
		ck_assert_int_ge(NC_list(NULL, &cursor, units, sizeof(*units), 2), 0);
	}
	FAILS(NC_pread(NULL, id, NULL, 1, 0), EINVAL);
	FAILS(NC_pread(NULL, id, bytes, 10, 5001), ERANGE);
	FAILS(NC_pread(NULL, id, bytes, 10, SIZE_MAX), ERANGE);
	FAILS(NC_pread(NULL, id, bytes, SIZE_MAX, SIZE_MAX), ERANGE);
	ck_assert_int_eq(NC_pread(NULL, id, bytes, 10, 4995), 5);
	ck_assert_int_eq(NC_pread(NULL, id, bytes, 10, 5000), 0);
	ck_assert_int_eq(NC_pread(NULL, id, NULL, 0, 0), 0);
	FAILS(NC_pread(NULL, 0, bytes, 10, 0), ENOENT);
	FAILS(NC_pread(NULL, id + 1, bytes, 10, 0), ENOENT);
	FAILS(NC_pread(NULL, SIZE_MAX, bytes, 10, 0), ENOENT);
	NULL_FAILS(data_of_id(NULL, id, 0, NULL), EINVAL);
	NULL_FAILS(data_of_id(NULL, id, 5000, &run), ERANGE);
	NULL_FAILS(data_of_id(NULL, id, SIZE_MAX, &run), ERANGE);
	NULL_FAILS(data_of_id(NULL, 0, 0, &run), EINVAL);
	NULL_FAILS(data_of_id(NULL, id + 1, 0, &run), EINVAL);
	ck_assert_uint_eq(run, 77);
	ck_assert_ptr_nonnull(data_of_id(NULL, id, 4999, &run));
	ck_assert_uint_eq(run, 1);
	for (int principal = -2; principal < 12; principal++) {
		if (principal >= NC_PROCESS && principal <= NC_GROUP)
			continue;
		FAILS(NC_grant(NULL, id, (enum NC_principal)principal, 1), EINVAL);
		FAILS(NC_revoke(NULL, id, (enum NC_principal)principal, 1), EINVAL);
	}
	for (int principal = -2; principal < 12; principal++)
		if (principal != NC_PROCESS && principal != NC_PROCESS_FD && principal != NC_PEER)
			FAILS(NC_access(NULL, id, (enum NC_principal)principal, 1), EINVAL);
	FAILS(NC_access(NULL, id, NC_PROCESS, 0), ESRCH);
	FAILS(NC_access(NULL, id, NC_PROCESS_FD, 0), EBADF);
	FAILS(NC_access(NULL, id, NC_PEER, (id_t)-1), EBADF);
	FAILS(NC_grant(NULL, id, NC_USER, (id_t)-1), EINVAL);
	FAILS(NC_grant(NULL, id, NC_GROUP, (id_t)-1), EINVAL);
	FAILS(NC_grant(NULL, id, NC_PROCESS, 0), ESRCH);
	FAILS(NC_grant(NULL, id, NC_PROCESS, (id_t)-1), ESRCH);
	FAILS(NC_grant(NULL, id, NC_PROCESS_FD, (id_t)-1), EBADF);
	FAILS(NC_grant(NULL, id, NC_PROCESS_FD, 0), EBADF);
	FAILS(NC_revoke(NULL, id, NC_PROCESS_FD, 0), EBADF);
	FAILS(NC_revoke(NULL, id, NC_USER, 1), ENOENT);
	FAILS(NC_grant(NULL, 0, NC_USER, 1), ENOENT);
	FAILS(NC_grant(NULL, SIZE_MAX, NC_USER, 1), ENOENT);
	FAILS(NC_revoke(NULL, 0, NC_USER, 1), ENOENT);
	FAILS(NC_grants(NULL, id, NULL, sizeof(grants[0]), 1), EINVAL);
	FAILS(NC_grants(NULL, id, grants, 0, 1), EINVAL);
	FAILS(NC_grants(NULL, 0, grants, sizeof(grants[0]), 2), ENOENT);
	FAILS(NC_grants(NULL, id + 1, grants, sizeof(grants[0]), 2), ENOENT);
	FAILS(NC_grants(NULL, SIZE_MAX, NULL, 0, 0), ENOENT);
	/* These calls have changed nothing. */
	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.holds, 1);
	ck_assert_int_eq(NC_cache_stat(NULL, &after, sizeof(after)), 0);
	ck_assert_uint_eq(after.used, before.used);
	ck_assert_uint_eq(after.units, before.units);
	ck_assert_int_eq(release_id(NULL, id), 0);
	NULL_FAILS(data_of_id(NULL, id, 0, &run), EINVAL);
	close_owners();
}
END_TEST

START_TEST(test_bad_options)
{
	struct NC_attach_options attach = NC_ATTACH_OPTIONS_INIT(.flags = 0x80);
	struct NC_serve_options serve = NC_SERVE_OPTIONS_INIT(.mode = 010000);
	NC_cache *third;
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = MIB);
	char other[120];
	uid_t user = 1;

	open_owners();
	third = NC_cache_open(&options);
	ck_assert_ptr_nonnull(third);
	NULL_FAILS(NC_cache_attach(NULL, NULL), EINVAL);
	NULL_FAILS(NC_cache_attach("", NULL), EINVAL);
	NULL_FAILS(NC_cache_attach(path[0], &attach), EINVAL);
	attach.flags = UINT32_MAX;
	NULL_FAILS(NC_cache_attach(path[0], &attach), EINVAL);
	snprintf(other, sizeof(other), "%s/other", directory);
	FAILS(NC_cache_serve(third, NULL, NULL), EINVAL);
	FAILS(NC_cache_serve(third, other, &serve), EINVAL);
	serve = (struct NC_serve_options)NC_SERVE_OPTIONS_INIT(.flags = 0x2);
	FAILS(NC_cache_serve(third, other, &serve), EINVAL);
	serve = (struct NC_serve_options)NC_SERVE_OPTIONS_INIT(.user_count = 1);
	FAILS(NC_cache_serve(third, other, &serve), EINVAL);
	serve = (struct NC_serve_options)NC_SERVE_OPTIONS_INIT(.users = &user,
							       .user_count = UINT32_MAX / 2);
	ck_assert_int_lt(access(other, F_OK), 0);
	FAILS(NC_cache_serve(cache, other, NULL), EALREADY);
	serve = (struct NC_serve_options)NC_SERVE_OPTIONS_INIT(.mode = 0620, .users = &user,
							       .user_count = 1);
	ck_assert_int_eq(NC_cache_serve(third, other, &serve), 0);
	ck_assert_int_eq(NC_cache_close(third), 0);
	ck_assert_int_lt(access(other, F_OK), 0);
	close_owners();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_no_cache);
	tcase_add_test(tcase, test_bad_arguments);
	tcase_add_test(tcase, test_bad_options);
}

RUN_SUITE("nabc-grant-bad", fill)
