/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-hold.c - holds as objects, and held units as memory and as files: every
 * kind of unit, holds that pass between threads, invalid holds, and holds that a
 * member takes without waiting for the owner.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nabc.h>

#include "nabc-fixture.h"
#include "suite.h"

#define SIZE 10000u

/* Returns whether all of a held unit is the pattern, run by run. */
static bool is_pattern(const struct NC_hold *hold, uint64_t seed)
{
	size_t at = 0, run;

	while (at < SIZE) {
		const void *data = NC_data(hold, &run, at);

		if (!data || run == 0 || run > SIZE - at ||
		    pattern_match(data, seed, at, run) != run)
			return false;
		at += run;
	}
	return true;
}

static unsigned holds(size_t id)
{
	struct NC_stat stat;

	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)), 0);
	return stat.holds;
}

static void *release_there(void *context)
{
	struct NC_hold *hold = context;

	return is_pattern(hold, 1) && NC_release(hold) == 0 ? hold : NULL;
}

/* One thread holds, another reads and releases; a thread without a hold can read nothing. */
START_TEST(test_between_threads)
{
	struct NC_hold hold, none = {0};
	pthread_t thread;
	void *result;
	size_t id, run;

	open_cache(MIB);
	id = insert_as(NULL, 1, SIZE, 0, NC_KIND_AUTO);
	ck_assert_int_eq(NC_hold(NULL, id, &hold), 0);
	ck_assert_uint_eq(holds(id), 1);
	/* A hold of another thread does not permit this one to read. */
	NULL_FAILS(NC_data(&none, &run, 0), EINVAL);
	ck_assert_int_eq(pthread_create(&thread, NULL, release_there, &hold), 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_eq(result, &hold);
	ck_assert_uint_eq(holds(id), 0);
	FAILS(NC_release(&hold), EINVAL);
	close_cache();
}
END_TEST

/*
 * Holds are counted: a unit is released as often as it was held, with any copy of the
 * hold; the bytes outlive the id.
 */
START_TEST(test_counted)
{
	struct NC_hold first, second, copy;
	size_t id, run;

	open_cache(MIB);
	id = insert_as(NULL, 1, SIZE, 0, NC_KIND_AUTO);
	ck_assert_int_eq(NC_hold(NULL, id, &first), 0);
	ck_assert_int_eq(NC_hold(NULL, id, &second), 0);
	ck_assert_mem_eq(&first, &second, sizeof(first));
	ck_assert_uint_eq(holds(id), 2);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	FAILS(NC_hold(NULL, id, &copy), ENOENT);
	copy = second;
	ck_assert_int_eq(NC_release(&first), 0);
	FAILS(NC_release(&first), EINVAL);
	ck_assert(is_pattern(&second, 1));
	ck_assert_int_eq(NC_release(&copy), 0);
	/* The last hold is released; a copy of it is invalid. */
	NULL_FAILS(NC_data(&second, &run, 0), EINVAL);
	FAILS(NC_release(&second), EINVAL);
	close_cache();
}
END_TEST

START_TEST(test_bad_arguments)
{
	struct NC_hold hold, wrong;
	uint64_t position = 77;
	size_t id, run = 77;

	open_cache(MIB);
	id = insert_as(NULL, 1, SIZE, 0, NC_KIND_AUTO);
	FAILS(NC_hold(NULL, id, NULL), EINVAL);
	FAILS(NC_hold_nowait(NULL, id, NULL), EINVAL);
	FAILS(NC_hold((NC_cache *)&hold, id, &hold), EINVAL);
	FAILS(NC_hold(NULL, 0, &hold), ENOENT);
	FAILS(NC_hold_nowait(NULL, id + 1, &hold), ENOENT);
	ck_assert_uint_eq(holds(id), 0);
	ck_assert_int_eq(NC_hold_nowait(NULL, id, &hold), 0);
	FAILS(NC_release(NULL), EINVAL);
	NULL_FAILS(NC_data(NULL, &run, 0), EINVAL);
	NULL_FAILS(NC_data(&hold, NULL, 0), EINVAL);
	NULL_FAILS(NC_data(&hold, &run, SIZE), ERANGE);
	NULL_FAILS(NC_data(&hold, &run, SIZE_MAX), ERANGE);
	FAILS(NC_file(NULL, &position, &run, 0), EINVAL);
	FAILS(NC_file(&hold, NULL, &run, 0), EINVAL);
	FAILS(NC_file(&hold, &position, NULL, 0), EINVAL);
	FAILS(NC_file(&hold, &position, &run, SIZE), ERANGE);
	/* Each word of the hold is wrong. */
	for (unsigned i = 0; i < 3; i++) {
		wrong = hold;
		wrong.nc_private[i] ^= 1;
		NULL_FAILS(NC_data(&wrong, &run, 0), EINVAL);
		FAILS(NC_release(&wrong), EINVAL);
	}
	ck_assert_uint_eq(run, 77);
	ck_assert_uint_eq(position, 77);
	ck_assert_uint_eq(holds(id), 1);
	ck_assert_int_eq(NC_release(&hold), 0);
	close_cache();
}
END_TEST

/* A hold of a closed cache is invalid, also when another cache has its place. */
START_TEST(test_closed_cache)
{
	struct NC_hold hold, other;
	size_t id, run;

	for (unsigned i = 0; i < 8; i++) {
		open_cache(MIB);
		id = insert_as(NULL, 1, SIZE, 0, NC_KIND_AUTO);
		ck_assert_int_eq(NC_hold(NULL, id, &hold), 0);
		close_cache();
		FAILS(NC_release(&hold), EINVAL);
		open_cache(MIB);
		id = insert_as(NULL, 2, SIZE, 0, NC_KIND_AUTO);
		ck_assert_int_eq(NC_hold(NULL, id, &other), 0);
		NULL_FAILS(NC_data(&hold, &run, 0), EINVAL);
		FAILS(NC_release(&hold), EINVAL);
		close_cache();
	}
}
END_TEST

/* As a file: the same bytes, at the returned offset, read-only, as long as the hold. */
static void check_file(const struct NC_hold *hold, uint64_t seed)
{
	unsigned char got[SIZE];
	size_t at = 0, run;
	uint64_t position;
	struct stat stat;
	int fd = -1;

	while (at < SIZE) {
		int again = NC_file(hold, &position, &run, at);

		ck_assert_int_ge(again, 0);
		ck_assert(fd < 0 || fd == again);
		fd = again;
		ck_assert_uint_ge(SIZE - at, run);
		ck_assert_int_eq(pread(fd, got, run, (off_t)position), (ssize_t)run);
		ck_assert_uint_eq(pattern_match(got, seed, at, run), run);
		at += run;
	}
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	FAILS(pwrite(fd, got, 1, (off_t)position), EBADF);
	ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	ck_assert_int_eq(fstat(fd, &stat), 0);
	ck_assert_int_ge(stat.st_size, (off_t)SIZE);
}

START_TEST(test_file)
{
	static const enum NC_kind kinds[] = {NC_KIND_APPENDED, NC_KIND_SEALED};
	struct NC_hold holds[2][3], recycled;
	unsigned before, during;
	uint64_t position;
	size_t run;

	open_cache(8 * MIB);
	before = open_descriptors();
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < 3; i++) {
			size_t id = insert_as(NULL, i, SIZE, i == 1 ? 1448 : 0, kinds[k]);

			ck_assert_int_eq(NC_hold(NULL, id, &holds[k][i]), 0);
			ck_assert_int_eq(NC_destroy(NULL, id), 0);
		}
	during = open_descriptors();
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < 3; i++)
			check_file(&holds[k][i], i);
	/* One descriptor more for each requested segment, not for each unit. */
	ck_assert_uint_eq(open_descriptors(), during + 1 + 3);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < 3; i++)
			ck_assert_int_eq(NC_release(&holds[k][i]), 0);
	/* Sealed units were closed with their segments. */
	ck_assert_uint_le(open_descriptors(), before + 2);
	ck_assert_int_eq(NC_hold(NULL, insert_as(NULL, 7, SIZE, 0, NC_KIND_RECYCLED), &recycled),
			 0);
	FAILS(NC_file(&recycled, &position, &run, 0), EOPNOTSUPP);
	ck_assert(is_pattern(&recycled, 7));
	ck_assert_int_eq(NC_release(&recycled), 0);
	close_cache();
}
END_TEST

static void *ask_for_file(void *hold)
{
	uint64_t position;
	size_t run;

	return (void *)(intptr_t)NC_file(hold, &position, &run, 0);
}

/* Threads that request it concurrently get one descriptor. */
START_TEST(test_file_of_threads)
{
	pthread_t threads[4];
	struct NC_hold hold;
	void *fds[4];
	size_t id;

	open_cache(MIB);
	for (unsigned round = 0; round < 50; round++) {
		id = insert_as(NULL, round, SIZE, 0, NC_KIND_SEALED);
		ck_assert_int_eq(NC_hold(NULL, id, &hold), 0);
		for (unsigned i = 0; i < 4; i++)
			ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_for_file, &hold), 0);
		for (unsigned i = 0; i < 4; i++) {
			ck_assert_int_eq(pthread_join(threads[i], &fds[i]), 0);
			ck_assert_int_ge((int)(intptr_t)fds[i], 0);
			ck_assert_ptr_eq(fds[i], fds[0]);
		}
		ck_assert_int_eq(NC_release(&hold), 0);
		ck_assert_int_eq(NC_destroy(NULL, id), 0);
	}
	close_cache();
}
END_TEST

/* --- a member that must not wait --------------------------------------------------------- */

static char directory[64], path[100];
static NC_cache *member;

static void open_both(void)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB, .flags = NC_CACHE_MEMBERS_THREAD);

	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	ck_assert_int_eq(NC_cache_serve(cache, path, NULL), 0);
	member = NC_cache_attach(path, NULL);
	ck_assert_ptr_nonnull(member);
}

static void close_both(void)
{
	ck_assert_int_eq(NC_cache_close(member), 0);
	close_cache();
	rmdir(directory);
}

/* Returns what NC_hold_nowait() returns when it no longer asks the caller to call again. */
static int hold_later(size_t id, struct NC_hold *hold, unsigned *waits)
{
	struct pollfd wait = {.fd = NC_cache_fd(member), .events = POLLIN};
	int result;

	*waits = 0;
	while ((result = NC_hold_nowait(member, id, hold)) < 0 && errno == EAGAIN) {
		++*waits;
		ck_assert_int_eq(poll(&wait, 1, 60000), 1);
		ck_assert_int_eq(NC_cache_dispatch(member), 1);
	}
	return result < 0 ? -errno : 0;
}

START_TEST(test_nowait)
{
	struct pollfd wait = {.events = POLLIN};
	struct NC_hold hold, again;
	size_t ids[100], own;
	unsigned waits;

	open_both();
	wait.fd = NC_cache_fd(member);
	ck_assert_int_ge(wait.fd, 0);
	ck_assert_int_eq(NC_cache_dispatch(member), 0);
	/* Its own units are held at once. */
	own = insert_as(member, 5, SIZE, 0, NC_KIND_RECYCLED);
	ck_assert_int_eq(NC_hold_nowait(member, own, &hold), 0);
	ck_assert(is_pattern(&hold, 5));
	ck_assert_int_eq(NC_release(&hold), 0);
	/* The unit of another process arrives. */
	for (unsigned i = 0; i < 100; i++)
		ids[i] = insert_as(cache, i, SIZE, 0, NC_KIND_SEALED);
	ck_assert_int_eq(NC_grant(cache, ids[0], NC_USER, geteuid()), 0);
	ck_assert_int_eq(hold_later(ids[0], &hold, &waits), 0);
	ck_assert_uint_ge(waits, 1);
	ck_assert(is_pattern(&hold, 0));
	check_file(&hold, 0);
	ck_assert_int_eq(poll(&wait, 1, 0), 0);
	/* From now on it is held at once. */
	ck_assert_int_eq(hold_later(ids[0], &again, &waits), 0);
	ck_assert_uint_eq(waits, 0);
	ck_assert_int_eq(NC_release(&again), 0);
	ck_assert_int_eq(NC_release(&hold), 0);
	FAILS(NC_release(&hold), EINVAL);
	/* A refusal is final for this call; the next call sends a new request. */
	ck_assert_int_eq(hold_later(ids[1], &hold, &waits), -EACCES);
	ck_assert_uint_ge(waits, 1);
	ck_assert_int_eq(NC_grant(cache, ids[1], NC_USER, geteuid()), 0);
	ck_assert_int_eq(hold_later(ids[1], &hold, &waits), 0);
	ck_assert_int_eq(NC_release(&hold), 0);
	ck_assert_int_eq(NC_destroy(cache, ids[1]), 0);
	ck_assert_int_eq(hold_later(ids[1], &hold, &waits), -ENOENT);
	close_both();
}
END_TEST

/* Requests whose caller does not return are evicted by others, and end with the cache. */
START_TEST(test_nowait_forgotten)
{
	struct pollfd wait = {.events = POLLIN};
	struct NC_hold hold;
	unsigned waits;
	size_t id = 0;

	open_both();
	wait.fd = NC_cache_fd(member);
	for (unsigned i = 0; i < 200; i++) {
		id = insert_as(cache, i, SIZE, 0, NC_KIND_SEALED);
		ck_assert_int_eq(NC_grant(cache, id, NC_USER, geteuid()), 0);
		while (NC_hold_nowait(member, id, &hold) < 0 && errno == ENOBUFS) {
			ck_assert_int_eq(poll(&wait, 1, 60000), 1);
			(void)NC_cache_dispatch(member);
		}
		ck_assert_int_eq(errno, EAGAIN);
	}
	ck_assert_int_eq(hold_later(id, &hold, &waits), 0);
	ck_assert(is_pattern(&hold, 199));
	ck_assert_int_eq(NC_release(&hold), 0);
	close_both();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_between_threads);
	tcase_add_test(tcase, test_counted);
	tcase_add_test(tcase, test_bad_arguments);
	tcase_add_test(tcase, test_closed_cache);
	tcase_add_test(tcase, test_file);
	tcase_add_test(tcase, test_file_of_threads);
	tcase_add_test(tcase, test_nowait);
	tcase_add_test(tcase, test_nowait_forgotten);
}

RUN_SUITE("nabc-hold", fill)
