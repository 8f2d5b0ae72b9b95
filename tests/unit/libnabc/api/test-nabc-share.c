/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-share.c - sealed units of members beside the owner's files: one member, many
 * members, members that exit, and units in use.  Members attach in the owner's process.
 */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nabc-fixture.h"
#include "suite.h"

#define FILES 200u /* half of the memory */
#define FEW 120u
#define FILE_SIZE ((size_t)40 << 10)
#define PAGE_BYTES ((size_t)32 << 10)
#define MEMORY (16 * MIB)
#define SHARE (MEMORY / 4)

static char directory[64], path[100];
static size_t files[FILES];
static unsigned inserts;

static void open_shared(size_t share)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MEMORY, .flags = NC_CACHE_MEMBERS_THREAD,
				      .member_share = share);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	ck_assert_int_eq(NC_cache_serve(cache, path, NULL), 0);
	memset(files, 0, sizeof(files));
	inserts = 0;
}

static void close_shared(void)
{
	close_cache();
	rmdir(directory);
}

static NC_cache *attach(void)
{
	struct NC_attach_options options = NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_LIGHT);
	NC_cache *member = NC_cache_attach(path, &options);

	ck_assert_ptr_nonnull(member);
	return member;
}

/* As a server does: uses the unit of a file, or reads the file into a new one. */
static void request(unsigned i)
{
	struct NC_hold hold;

	if (files[i] && NC_hold(cache, files[i], &hold) == 0) {
		ck_assert_int_eq(NC_release(&hold), 0);
		return;
	}
	files[i] = insert_as(cache, i, FILE_SIZE, 0, NC_KIND_APPENDED);
	inserts++;
}

/* A member's page, which the owner sends once. */
static size_t page(NC_cache *member, bool used)
{
	size_t id = insert_as(member, 1, PAGE_BYTES, 0, NC_KIND_SEALED);
	struct NC_hold hold;

	if (used) {
		ck_assert_int_eq(NC_hold(cache, id, &hold), 0);
		ck_assert_int_eq(NC_release(&hold), 0);
	}
	return id;
}

static unsigned of_members(void)
{
	struct NC_stat units[64];
	unsigned count = 0;
	size_t cursor = 0;
	int got;

	do {
		got = NC_list(cache, &cursor, units, sizeof(units[0]), 64);
		ck_assert_int_ge(got, 0);
		for (int i = 0; i < got; i++)
			count += units[i].kind == NC_KIND_SEALED;
	} while (cursor);
	return count;
}

/* Pages that are made and used once, or never, do not push out files that are used. */
START_TEST(test_one_member)
{
	NC_cache *member;
	size_t last = 0;

	open_shared(0);
	member = attach();
	for (unsigned i = 0; i < 2500; i++) {
		request(i % FILES);
		last = page(member, _i);
	}
	ck_assert_uint_eq(inserts, FILES);
	ck_assert_uint_ge(of_members(), SHARE / PAGE_BYTES - 1);
	/* The newest one is there. */
	ck_assert_int_eq(NC_stat(cache, last, &(struct NC_stat){0}, sizeof(struct NC_stat)), 0);
	ck_assert_int_eq(NC_cache_close(member), 0);
	close_shared();
}
END_TEST

/* All together have twice as much, and a member that comes late gets its part of it. */
START_TEST(test_many_members)
{
	NC_cache *member[6];
	size_t late[20];

	open_shared(0);
	for (unsigned k = 0; k < 6; k++)
		member[k] = attach();
	for (unsigned i = 0; i < 2500; i++) {
		request(i % FEW);
		(void)page(member[i % 5], true);
	}
	ck_assert_uint_eq(inserts, FEW);
	ck_assert_uint_ge(of_members(), 2 * SHARE / PAGE_BYTES - 1);
	for (unsigned i = 0; i < 20; i++)
		late[i] = page(member[5], true);
	for (unsigned i = 0; i < 20; i++)
		ck_assert(alive(late[i]));
	for (unsigned k = 0; k < 6; k++)
		ck_assert_int_eq(NC_cache_close(member[k]), 0);
	close_shared();
}
END_TEST

/* As CGI programs do: each makes a page and exits.  Their pages stay for a while. */
START_TEST(test_members_that_exit)
{
	open_shared(0);
	for (unsigned i = 0; i < 1200; i++) {
		NC_cache *member = attach();

		request(i % FEW);
		(void)page(member, true);
		ck_assert_int_eq(NC_cache_close(member), 0);
	}
	ck_assert_uint_eq(inserts, FEW);
	ck_assert_uint_ge(of_members(), 2 * SHARE / PAGE_BYTES - 1);
	close_shared();
}
END_TEST

/* Pages in use are not evicted, and others of the member go in their place. */
START_TEST(test_held)
{
	enum { HELD = 20 };
	struct NC_hold holds[HELD];
	size_t ids[HELD];
	NC_cache *member;

	open_shared(1 * MIB);
	member = attach();
	for (unsigned i = 0; i < HELD; i++) {
		ids[i] = page(member, true);
		ck_assert_int_eq(NC_hold(cache, ids[i], &holds[i]), 0);
	}
	for (unsigned i = 0; i < 2000; i++) {
		request(i % FILES);
		(void)page(member, true);
	}
	ck_assert_uint_eq(inserts, FILES);
	for (unsigned i = 0; i < HELD; i++) {
		ck_assert(alive(ids[i]));
		ck_assert_int_eq(NC_release(&holds[i]), 0);
	}
	ck_assert_int_eq(NC_cache_close(member), 0);
	close_shared();
}
END_TEST

/* What nobody else needs, a member has; also the whole memory, whatever its share. */
START_TEST(test_whole)
{
	NC_cache *member;

	open_shared(_i ? MEMORY : 1);
	member = attach();
	for (unsigned i = 0; i < 700; i++)
		(void)page(member, true);
	ck_assert_uint_ge(of_members(), MEMORY / PAGE_BYTES * 3 / 4);
	ck_assert_int_eq(NC_cache_close(member), 0);
	close_shared();
}
END_TEST

START_TEST(test_bad_share)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MEMORY, .member_share = MEMORY + 1);

	NULL_FAILS(NC_cache_open(&options), EINVAL);
	/* A program of version 1.0 does not know the option. */
	options.size -= sizeof(options.member_share);
	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_one_member, 0, 2);
	tcase_add_test(tcase, test_many_members);
	tcase_add_test(tcase, test_members_that_exit);
	tcase_add_test(tcase, test_held);
	tcase_add_loop_test(tcase, test_whole, 0, 2);
	tcase_add_test(tcase, test_bad_share);
}

RUN_SUITE("nabc-share", fill)
