/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-grant.c - unit tests of nabc-grant.c and registry.c: the calls for grants,
 * with every wrong argument, and several caches in one process, as their owner and as
 * a member.  A thread does the owners' work.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nabc.h>

#include "grants-fixture.h"
#include "nabc-fixture.h"
#include "process-fixture.h"
#include "suite.h"
#include "unit-holds.h"

static NC_cache *attached; /* this process as a member of the first */

/* --- several caches --------------------------------------------------------------------- */

START_TEST(test_several)
{
	struct NC_cache_stat stat;
	NC_handle handle;
	size_t id[2], mine;

	open_owners();
	attached = join(0, 0);
	/* The first is the default; an id is valid in one cache only. */
	id[0] = insert_in(NULL, 1, 5000, NC_KIND_RECYCLED);
	id[1] = insert_in(second, 2, 6000, NC_KIND_RECYCLED);
	ck_assert(reads(cache, id[0], 1, 5000));
	ck_assert(reads(second, id[1], 2, 6000));
	ck_assert(!reads(second, id[0], 1, 5000));
	/* A handle belongs to one cache, too. */
	ck_assert_int_eq(NC_unit_alloc(second, &handle, 100, 0, NC_KIND_AUTO, 0), 0);
	FAILS(NC_cache_close(second), EBUSY);
	ck_assert_int_eq(NC_free(&handle), 0);
	FAILS(NC_insert(&handle), EINVAL);
	/* A member in the same process. */
	mine = insert_in(attached, 3, 7000, NC_KIND_RECYCLED);
	ck_assert(reads(attached, mine, 3, 7000));
	ck_assert(reads(cache, mine, 3, 7000));
	ck_assert(!reads(second, mine, 3, 7000));
	ck_assert(!reads(attached, id[0], 1, 5000));
	FAILS(NC_destroy(attached, id[0]), EACCES);
	ck_assert_int_ge(NC_cache_fd(attached), 0);
	FAILS(NC_cache_serve(attached, "/tmp/none", NULL), EPERM);
	ck_assert_int_eq(NC_cache_stat(second, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.members, 0);
	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.members, 1);
	ck_assert_int_eq(NC_cache_close(attached), 0);
	check_calls_fail(attached, EINVAL);
	/* Without the first one there is no default, until another is opened. */
	close_owners();
	setenv("NABC_CACHE", "/nonexistent/socket", 1);
	FAILS(hold_id(NULL, 1), ENOENT);
}
END_TEST

/* As many caches as fit; then opening fails until one is closed. */
START_TEST(test_many_caches)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB, .flags = NC_CACHE_NO_URING | NC_CACHE_NO_HUGE);
	NC_cache *caches[64];
	unsigned descriptors = open_descriptors();
	size_t ids[64];

	for (unsigned i = 0; i < 64; i++) {
		caches[i] = NC_cache_open(&options);
		ck_assert_ptr_nonnull(caches[i]);
		ids[i] = insert_in(caches[i], i, 100, NC_KIND_RECYCLED);
	}
	NULL_FAILS(NC_cache_open(&options), EMFILE);
	for (unsigned i = 0; i < 64; i++)
		ck_assert(reads(caches[i], ids[i], i, 100));
	ck_assert_int_eq(NC_cache_close(caches[17]), 0);
	check_calls_fail(caches[17], EINVAL);
	caches[17] = NC_cache_open(&options);
	ck_assert_ptr_nonnull(caches[17]);
	for (unsigned i = 0; i < 64; i++)
		ck_assert_int_eq(NC_cache_close(caches[i]), 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* --- grants ------------------------------------------------------------------------------- */

START_TEST(test_grant_and_revoke)
{
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_SEALED};
	NC_cache *light;
	struct NC_stat stat;
	size_t id, run;

	open_owners();
	attached = join(0, 0);
	light = join(0, NC_ATTACH_LIGHT);
	FAILS(NC_unit_alloc(light, &(NC_handle){{0}}, 100, 0, NC_KIND_RECYCLED, 0), ENOTSUP);
	/* Granted by the owner, and by one member to another: recycled units are copied. */
	for (unsigned i = 0; i < 4; i++) {
		NC_cache *from = i / 2 ? cache : attached;

		id = insert_in(from, i, 9000, kinds[i % 2]);
		FAILS(hold_id(light, id), EACCES);
		FAILS(NC_grant(light, id, NC_USER, getuid()), EACCES);
		FAILS(NC_revoke(light, id, NC_USER, getuid()), EACCES);
		ck_assert_int_eq(NC_grant(from, id, NC_USER, getuid()), 0);
		ck_assert(reads(light, id, i, 9000));
		ck_assert_int_eq(NC_stat(light, id, &stat, sizeof(stat)), 0);
		ck_assert_uint_eq(stat.size, 9000);
		ck_assert_int_eq(hold_id(light, id), 0);
		ck_assert_ptr_nonnull(data_of_id(light, id, 0, &run));
		ck_assert(!writable((char *)data_of_id(light, id, 0, &run)));
		FAILS(NC_destroy(light, id), EACCES);
		ck_assert_int_eq(NC_revoke(from, id, NC_USER, getuid()), 0);
		FAILS(NC_revoke(from, id, NC_USER, getuid()), ENOENT);
		FAILS(hold_id(light, id), EACCES);
		ck_assert_int_eq(release_id(light, id), 0);
		FAILS(release_id(light, id), EINVAL);
		FAILS(hold_id(light, id), EACCES);
		ck_assert_int_eq(NC_grant(from, id, NC_GROUP, getegid()), 0);
		ck_assert(reads(light, id, i, 9000));
		ck_assert_int_eq(NC_destroy(from, id), 0);
		ck_assert_msg(hold_id(light, id) < 0, "%u", i);
		FAILS(hold_id(light, id), EACCES);
		FAILS(NC_grant(from, id, NC_USER, getuid()), i % 2 && i < 2 ? EACCES : ENOENT);
	}
	/*
	 * This process created its units as a member; of the owner's units it may use those
	 * granted.
	 */
	id = insert_in(attached, 9, 9000, NC_KIND_RECYCLED);
	if (!skip_without_pidfds("nabc-grant: access")) {
		ck_assert_int_eq(NC_access(cache, id, NC_PROCESS, getpid()), 0);
		FAILS(NC_access(attached, id, NC_PROCESS, getpid()), EPERM);
		FAILS(NC_access(cache, id + 1, NC_PROCESS, getpid()), ENOENT);
		id = insert_in(cache, 9, 9000, NC_KIND_SEALED);
		FAILS(NC_access(cache, id, NC_PROCESS, getpid()), EACCES);
		ck_assert_int_eq(NC_grant(cache, id, NC_GROUP, getegid()), 0);
		ck_assert_int_eq(NC_access(cache, id, NC_PROCESS, getpid()), 0);
	}
	/* Granted to the owner, by its pid, as in the paper. */
	id = insert_in(attached, 9, 9000, NC_KIND_RECYCLED);
	if (!skip_without_pidfds("nabc-grant: to the owner")) {
		ck_assert_int_eq(NC_grant(attached, id, NC_PROCESS, getpid()), 0);
		id = insert_in(light, 9, 9000, NC_KIND_SEALED);
		ck_assert_int_eq(NC_grant(light, id, NC_PROCESS, getpid()), 0);
	} else {
		FAILS(NC_grant(attached, id, NC_PROCESS, getpid()), ENOSYS);
	}
	ck_assert(reads(cache, id, 9, 9000));
	ck_assert_int_eq(NC_cache_close(light), 0);
	ck_assert_int_eq(NC_cache_close(attached), 0);
	close_owners();
}
END_TEST

/* The newest first, in two steps, as they do not fit into one reply. */
static void check_grants(NC_cache *in, size_t id, unsigned from, unsigned many)
{
	struct NC_grant_info grants[1024];

	memset(grants, 0xee, sizeof(grants));
	ck_assert_int_eq(NC_grants(in, id, NULL, 0, 0), (int)many);
	ck_assert_int_eq(NC_grants(in, id, grants, sizeof(grants[0]), 1024), (int)many);
	for (unsigned i = 0; i < many; i++) {
		ck_assert_int_eq(grants[i].principal, NC_USER);
		ck_assert_uint_eq(grants[i].who, from + many - 1 - i);
	}
}

/* The creator, the owner and an operator may list the grants. */
START_TEST(test_grants)
{
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_SEALED};
	NC_cache *light, *operator;
	struct NC_grant_info grant;
	size_t id;

	open_owners();
	attached = join(0, 0);
	light = join(0, NC_ATTACH_LIGHT);
	operator= join(0, NC_ATTACH_OPERATOR);
	for (unsigned i = 0; i < 4; i++) {
		NC_cache *from = i / 2 ? cache : attached;
		NC_cache *may[3] = {from, cache, operator};

		id = insert_in(from, i, 9000, kinds[i % 2]);
		for (unsigned k = 0; k < 3; k++)
			ck_assert_int_eq(NC_grants(may[k], id, NULL, 0, 0), 0);
		for (unsigned k = 0; k < 600; k++)
			ck_assert_int_eq(NC_grant(from, id, NC_USER, 70000 + k), 0);
		for (unsigned k = 0; k < 3; k++)
			check_grants(may[k], id, 70000, 600);
		FAILS(NC_grants(light, id, NULL, 0, 0), EACCES);
		if (from == cache)
			FAILS(NC_grants(attached, id, NULL, 0, 0), EACCES);
		/* A grantee may not list the other grants. */
		ck_assert_int_eq(NC_grant(from, id, NC_USER, getuid()), 0);
		ck_assert(reads(light, id, i, 9000));
		FAILS(NC_grants(light, id, NULL, 0, 0), EACCES);
		for (unsigned k = 0; k < 3; k++) {
			ck_assert_int_eq(NC_grants(may[k], id, &grant, sizeof(grant), 1), 601);
			ck_assert_uint_eq(grant.who, getuid());
			/*
			 * The creator imports the unit that it sealed; a process that read the unit
			 * does, too.
			 */
			ck_assert_uint_eq(grant.imports, i == 1 ? 2 : 1);
		}
		ck_assert_int_eq(NC_destroy(from, id), 0);
		FAILS(NC_grants(cache, id, NULL, 0, 0), ENOENT);
		FAILS(NC_grants(operator, id, NULL, 0, 0), ENOENT);
		FAILS(NC_grants(from, id, NULL, 0, 0), i == 1 ? EACCES : ENOENT);
	}
	FAILS(NC_grants(attached, 0, NULL, 0, 0), EACCES);
	ck_assert_int_eq(NC_cache_close(operator), 0);
	ck_assert_int_eq(NC_cache_close(light), 0);
	ck_assert_int_eq(NC_cache_close(attached), 0);
	close_owners();
}
END_TEST

START_TEST(test_list)
{
	NC_cache *operator;
	struct NC_stat units[7];
	size_t cursor, ids[3][20];
	unsigned seen[3];
	int count;

	open_owners();
	attached = join(0, 0);
	operator= join(0, NC_ATTACH_OPERATOR);
	for (unsigned i = 0; i < 20; i++) {
		ids[0][i] = insert_in(cache, i, 100, NC_KIND_RECYCLED);
		ids[1][i] = insert_in(attached, i, 100, NC_KIND_RECYCLED);
		ids[2][i] = insert_in(attached, i, 100, NC_KIND_SEALED);
	}
	/* A member lists its own units; the owner and operators all; each once. */
	for (unsigned who = 0; who < 3; who++) {
		NC_cache *in = who == 0 ? cache : who == 1 ? attached : operator;

		cursor = 0;
		memset(seen, 0, sizeof(seen));
		do {
			count = NC_list(in, &cursor, units, sizeof(*units), 7);
			ck_assert_int_ge(count, 0);
			ck_assert_int_le(count, 7);
			for (int i = 0; i < count; i++)
				for (unsigned kind = 0; kind < 3; kind++)
					for (unsigned k = 0; k < 20; k++)
						seen[kind] += units[i].id == ids[kind][k];
		} while (cursor);
		ck_assert_uint_eq(seen[0], who == 1 ? 0 : 20);
		ck_assert_uint_eq(seen[1], 20);
		ck_assert_uint_eq(seen[2], 20);
	}
	/* An operator may do this without a grant. */
	ck_assert(reads(operator, ids[0][3], 3, 100));
	ck_assert(reads(operator, ids[1][4], 4, 100));
	ck_assert_int_eq(NC_destroy(operator, ids[0][3]), 0);
	FAILS(NC_destroy(operator, ids[0][3]), ENOENT);
	ck_assert_int_eq(NC_destroy(operator, ids[2][5]), 0);
	FAILS(NC_stat(cache, ids[2][5], &units[0], sizeof(units[0])), ENOENT);
	ck_assert_int_eq(NC_cache_close(operator), 0);
	ck_assert_int_eq(NC_cache_close(attached), 0);
	close_owners();
}
END_TEST

/* The quota, and the fate of units whose creator has exited. */
START_TEST(test_quota)
{
	struct NC_cache_stat before, after;
	NC_handle handle;
	size_t first = 0, id = 0;
	unsigned made = 0;

	open_owners();
	attached = join(0, NC_ATTACH_LIGHT);
	ck_assert_int_eq(NC_cache_stat(cache, &before, sizeof(before)), 0);
	for (;;) {
		ck_assert_int_eq(NC_unit_alloc(attached, &handle, 64 << 10, 0, NC_KIND_SEALED, 0),
				 0);
		if (NC_insert(&handle) < 0)
			break;
		id = NC_cache_id(&handle);
		first = first ? first : id;
		ck_assert_int_eq(NC_free(&handle), 0);
		made++;
	}
	ck_assert_int_eq(errno, EDQUOT);
	ck_assert_uint_eq(made, 16);
	FAILS(NC_cache_close(attached), EBUSY);
	/* With one unit fewer it fits. */
	ck_assert_int_eq(NC_destroy(attached, first), 0);
	ck_assert_int_eq(NC_insert(&handle), 0);
	ck_assert_int_eq(NC_free(&handle), 0);
	ck_assert_int_eq(NC_cache_stat(cache, &after, sizeof(after)), 0);
	ck_assert_uint_eq(after.used, before.used + MIB);
	ck_assert_int_eq(NC_cache_close(attached), 0);
	do {
		ck_assert_int_eq(NC_cache_stat(cache, &after, sizeof(after)), 0);
	} while (after.members);
	ck_assert_int_eq(hold_id(NULL, id), 0);
	ck_assert_int_eq(release_id(NULL, id), 0);
	close_owners();
}
END_TEST

/* An owner that closes: every call of its members reports that, and they can close. */
START_TEST(test_owner_gone)
{
	size_t sealed, recycled, cursor = 0;
	struct NC_stat unit;
	NC_handle handle;

	open_owners();
	attached = join(1, 0);
	sealed = insert_in(attached, 1, 5000, NC_KIND_SEALED);
	recycled = insert_in(attached, 2, 5000, NC_KIND_RECYCLED);
	close_owners();
	/* Existing mappings stay. */
	ck_assert(reads(attached, recycled, 2, 5000));
	ck_assert(!reads(attached, sealed, 9, 5000));
	FAILS(hold_id(attached, sealed + 1), EPIPE);
	FAILS(NC_list(attached, &cursor, &unit, sizeof(unit), 1), EPIPE);
	FAILS(NC_grant(attached, recycled, NC_USER, 1), EPIPE);
	FAILS(NC_grants(attached, recycled, NULL, 0, 0), EPIPE);
	FAILS(NC_destroy(attached, sealed), EPIPE);
	ck_assert_int_eq(NC_unit_alloc(attached, &handle, 100, 0, NC_KIND_SEALED, 0), 0);
	FAILS(NC_insert(&handle), EPIPE);
	ck_assert_int_eq(NC_free(&handle), 0);
	ck_assert_int_eq(NC_cache_close(attached), 0);
}
END_TEST

/* A child has no cache of its parent, and no membership of one. */
START_TEST(test_fork)
{
	int status;
	pid_t pid;

	open_owners();
	attached = join(0, 0);
	stop_dispatching();
	pid = fork_alone();
	if (pid == 0) {
		setenv("NABC_CACHE", "/nonexistent/socket", 1);
		check_calls_fail(cache, EINVAL);
		check_calls_fail(second, EINVAL);
		check_calls_fail(attached, EINVAL);
		check_calls_fail(NULL, ENOENT);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	start_dispatching();
	ck_assert_int_eq(NC_cache_close(attached), 0);
	close_owners();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_several);
	tcase_add_test(tcase, test_many_caches);
	tcase_add_test(tcase, test_grant_and_revoke);
	tcase_add_test(tcase, test_grants);
	tcase_add_test(tcase, test_list);
	tcase_add_test(tcase, test_quota);
	tcase_add_test(tcase, test_owner_gone);
	tcase_add_test(tcase, test_fork);
}

RUN_SUITE("nabc-grant", fill)
