/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-ids.c - an id names one unit of one cache forever: ids and holds of one
 * cache mean nothing in another one, in a forked child, or after the owner started again.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nabc-fixture.h"
#include "suite.h"

#define UNITS 40u
#define SIZE 3000u

static size_t ids[UNITS];

static void insert_all(NC_cache *in, enum NC_kind kind, size_t all[UNITS])
{
	for (unsigned i = 0; i < UNITS; i++)
		all[i] = insert_as(in, i, SIZE, 0, kind);
}

/* Returns how many of these ids some call takes for one of a unit of the cache. */
static unsigned known(NC_cache *in, const size_t all[UNITS])
{
	unsigned found = 0;

	for (unsigned i = 0; i < UNITS; i++) {
		struct NC_range range = {.id = all[i], .length = 1};
		struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
		struct NC_stat stat;
		struct NC_hold hold;
		char byte;

		found += NC_stat(in, all[i], &stat, sizeof(stat)) == 0 ||
			 NC_hold(in, all[i], &hold) == 0 || NC_pread(in, all[i], &byte, 1, 0) > 0 ||
			 NC_send(in, -1, &message) >= 0 || errno == EBADF ||
			 NC_grant(in, all[i], NC_USER, 1) == 0 || NC_destroy(in, all[i]) == 0;
	}
	return found;
}

static unsigned in_both(const size_t a[UNITS], const size_t b[UNITS])
{
	unsigned equal = 0;

	for (unsigned i = 0; i < UNITS; i++)
		for (unsigned k = 0; k < UNITS; k++)
			equal += a[i] == b[k];
	return equal;
}

static NC_cache *open_one(void)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .flags = NC_CACHE_NO_THREAD);
	NC_cache *one = NC_cache_open(&options);

	ck_assert_ptr_nonnull(one);
	return one;
}

START_TEST(test_two_caches)
{
	NC_cache *one = open_one(), *other = open_one();
	size_t others[UNITS];

	insert_all(one, _i, ids);
	insert_all(other, _i, others);
	ck_assert_uint_eq(in_both(ids, others), 0);
	ck_assert_uint_eq(known(one, others), 0);
	ck_assert_uint_eq(known(other, ids), 0);
	ck_assert_uint_eq(known(one, ids), UNITS);
	ck_assert_int_eq(NC_cache_close(one), 0);
	/* The next one may have the same address. */
	one = open_one();
	ck_assert_uint_eq(known(one, ids), 0);
	insert_all(one, _i, ids);
	ck_assert_uint_eq(in_both(ids, others), 0);
	ck_assert_uint_eq(known(other, ids), 0);
	ck_assert_int_eq(NC_cache_close(one), 0);
	ck_assert_uint_eq(known(other, others), UNITS);
	ck_assert_int_eq(NC_cache_close(other), 0);
}
END_TEST

/* Ids are in no way special numbers, and survive where a program keeps them as a signed one. */
START_TEST(test_plain_numbers)
{
	for (unsigned round = 0; round < 32; round++) {
		NC_cache *one = open_one();

		insert_all(one, NC_KIND_RECYCLED, ids);
		for (unsigned i = 0; i < UNITS; i++)
			ck_assert_int_gt((ssize_t)ids[i], 0);
		ck_assert_int_eq(NC_cache_close(one), 0);
	}
}
END_TEST

static void in_child(void)
{
	size_t own[UNITS];

	/* The first call opens a cache for the child. */
	ck_assert_uint_eq(known(NULL, ids), 0);
	insert_all(NULL, NC_KIND_AUTO, own);
	ck_assert_uint_eq(in_both(ids, own), 0);
	ck_assert_uint_eq(known(NULL, ids), 0);
}

START_TEST(test_fork)
{
	int status;
	pid_t pid;

	unsetenv("NABC_CACHE");
	open_cache(4 * MIB);
	insert_all(NULL, NC_KIND_AUTO, ids);
	pid = fork_alone();
	if (pid == 0) {
		in_child();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(known(NULL, ids), UNITS);
	close_cache();
}
END_TEST

/* Two processes that a third one forked do the same, so their memory has the same addresses. */
static void hold_one(struct NC_hold *hold)
{
	open_cache(MIB);
	ck_assert_int_eq(NC_hold(NULL, insert(1, SIZE), hold), 0);
}

START_TEST(test_hold_of_another_process)
{
	struct NC_hold *shared = mmap(NULL, 2 * sizeof(*shared), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct NC_hold own;
	size_t run;

	ck_assert_ptr_ne(shared, MAP_FAILED);
	for (unsigned i = 0; i < 2; i++) {
		pid_t pid = fork_alone();
		int status;

		if (pid == 0) {
			hold_one(&shared[i]);
			_exit(0);
		}
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_mem_ne(&shared[0], &shared[1], sizeof(*shared));
	hold_one(&own);
	for (unsigned i = 0; i < 2; i++) {
		NULL_FAILS(NC_data(&shared[i], &run, 0), EINVAL);
		FAILS(NC_release(&shared[i]), EINVAL);
	}
	ck_assert_int_eq(NC_release(&own), 0);
	close_cache();
	munmap(shared, 2 * sizeof(*shared));
}
END_TEST

/* --- owners that start again ---------------------------------------------- */

/* Serves until the test closes its end of the pair; *id: of a unit that all may read. */
static pid_t start_owner(const char *path, int *end, size_t *id)
{
	int ends[2];
	pid_t pid;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork_alone();
	if (pid == 0) {
		close(ends[0]);
		cache = open_one();
		ck_assert_int_eq(NC_cache_serve(cache, path, NULL), 0);
		*id = insert(1, SIZE);
		ck_assert_int_eq(NC_grant(NULL, *id, NC_USER, getuid()), 0);
		ck_assert_int_eq(write(ends[1], id, sizeof(*id)), sizeof(*id));
		dispatch_until(ends[1]);
		close_cache();
		_exit(0);
	}
	close(ends[1]);
	read_exactly(ends[0], id, sizeof(*id));
	*end = ends[0];
	return pid;
}

static void end_owner(pid_t pid, int end)
{
	int status;

	close(end);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static NC_cache *attach(const char *path)
{
	struct NC_attach_options options = NC_ATTACH_OPTIONS_INIT(.flags = 0);
	NC_cache *member = NC_cache_attach(path, &options);

	ck_assert_ptr_nonnull(member);
	return member;
}

/* A program attaches again after the owner started again, and still has ids of before. */
START_TEST(test_owner_again)
{
	enum NC_kind kind = _i ? NC_KIND_SEALED : NC_KIND_RECYCLED;
	char directory[64], path[100];
	size_t again[UNITS], first, second;
	struct NC_hold hold;
	NC_cache *member;
	pid_t owner;
	int end;

	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	owner = start_owner(path, &end, &first);
	member = attach(path);
	insert_all(member, kind, ids);
	ck_assert_int_eq(NC_hold(member, first, &hold), 0);
	ck_assert_int_eq(NC_release(&hold), 0);
	ck_assert_int_eq(NC_cache_close(member), 0);
	end_owner(owner, end);

	owner = start_owner(path, &end, &second);
	member = attach(path);
	ck_assert_uint_ne(first, second);
	/* To a member, a unit that is not there is one that it may not use. */
	FAILS(NC_hold(member, first, &hold), EACCES);
	insert_all(member, kind, again);
	ck_assert_uint_eq(in_both(ids, again), 0);
	ck_assert_uint_eq(known(member, ids), 0);
	ck_assert_uint_eq(known(member, again), UNITS);
	ck_assert_int_eq(NC_cache_close(member), 0);
	end_owner(owner, end);
	rmdir(directory);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_two_caches, NC_KIND_RECYCLED, NC_KIND_SEALED + 1);
	tcase_add_test(tcase, test_plain_numbers);
	tcase_add_test(tcase, test_fork);
	tcase_add_test(tcase, test_hold_of_another_process);
	tcase_add_loop_test(tcase, test_owner_again, 0, 2);
}

RUN_SUITE("nabc-ids", fill)
