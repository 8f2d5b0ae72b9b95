/* SPDX-License-Identifier: MIT */
/*
 * test-file-cache-read.c - unit tests of file-cache-read.c: steps that do not wait and
 * those that continue from there; files that change in between; descriptors that
 * belong to others; reading past the page cache, and where that is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "files/docroot.h"
#include "files/file-cache-read.h"

#include "page-cache-fixture.h"
#include "suite.h"
#include "unit-holds.h"

/* reading_unit(); its hold is found by the unit's id. */
static int unit_of(struct reading *reading, enum reading_way way, bool wait, size_t *id)
{
	struct NC_hold hold;
	int error = reading_unit(reading, way, wait, id, &hold);

	if (!error)
		remember_hold(NULL, *id, hold);
	return error;
}

#define SIZE ((size_t)100000)
#define MAX ((size_t)1 << 20)

static NC_cache *cache;
static char directory[64];
static struct docroot root;

static void put(const char *name, char letter, size_t size)
{
	char *data = must_alloc(size);
	int fd = openat(root.fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	memset(data, letter, size);
	ck_assert_int_eq(pwrite(fd, data, size, 0), (ssize_t)size);
	ck_assert_int_eq(fsync(fd), 0);
	close(fd);
	free(data);
}

static void await_stable(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 40000000}, NULL);
}

static void open_all(void)
{
	make_directory(directory);
	root.fd = docroot_open(directory);
	ck_assert_int_ge(root.fd, 0);
	cache = NC_cache_open(&(struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = 8 << 20));
	ck_assert_ptr_nonnull(cache);
	put("file", 'a', SIZE);
}

static void close_all(void)
{
	ck_assert_int_eq(NC_cache_close(cache), 0);
	ck_assert_int_eq(unlinkat(root.fd, "file", 0), 0);
	close(root.fd);
	ck_assert_int_eq(rmdir(directory), 0);
}

/* Checks that it consists of the letter, and releases it. */
static void check_unit(size_t id, char letter, size_t size)
{
	char *data = must_alloc(size);

	ck_assert_int_eq(NC_pread(NULL, id, data, size, 0), (ssize_t)size);
	ck_assert(consists_of(data, size, letter));
	free(data);
	ck_assert_int_eq(NC_verify(NULL, id), 0);
	ck_assert_int_eq(release_id(NULL, id), 0);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
}

/*
 * At once where waiting is permitted; else step by step, first without waiting and
 * then, if necessary, with.
 */
START_TEST(test_steps)
{
	struct reading reading = READING_NONE;
	bool now = _i & 1, forget = _i & 2;
	size_t id = 0;
	int error;

	open_all();
	await_stable();
	error = reading_open(&reading, root, "/file", !now);
	if (error == READING_LATER)
		error = reading_open(&reading, root, "/file", true);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(reading_open(&reading, root, "/none", true), 0);
	ck_assert_int_eq(reading_rest(&reading, !now), 0);
	if (forget)
		reading_drop_pages(&reading);
	error = unit_of(&reading, READING_CACHED, !now, &id);
	if (error == READING_LATER) {
		ck_assert(now && reading.filling);
		error = unit_of(&reading, READING_CACHED, true, &id);
	}
	ck_assert_int_eq(error, 0);
	ck_assert(!reading.filling);
	check_unit(id, 'a', SIZE);
	/* And again with the same descriptor. */
	reading.borrowed = true;
	ck_assert_int_eq(unit_of(&reading, READING_CACHED, true, &id), 0);
	check_unit(id, 'a', SIZE);
	reading.borrowed = false;
	reading_end(&reading);
	ck_assert_int_eq(reading.fd, -1);
	close_all();
}
END_TEST

/* A part is in memory: the rest is read behind it. */
START_TEST(test_rest_of_it)
{
	struct reading reading = READING_NONE;
	size_t id = 0;

	open_all();
	await_stable();
	ck_assert_int_eq(reading_open(&reading, root, "/file", true), 0);
	ck_assert_int_eq(NC_alloc(&reading.handle, SIZE, 0), 0);
	ck_assert_int_eq(NC_read(reading.fd, &reading.handle, 0, 5000), 5000);
	reading.filling = true;
	reading.done = 5000;
	reading.borrowed = _i;
	ck_assert_int_eq(unit_of(&reading, READING_CACHED, true, &id), 0);
	check_unit(id, 'a', SIZE);
	reading.borrowed = false;
	reading_end(&reading);
	close_all();
}
END_TEST

START_TEST(test_young)
{
	struct reading reading = READING_NONE;

	open_all();
	put("file", 'b', SIZE);
	ck_assert_int_eq(reading_open(&reading, root, "/file", true), 0);
	/* Unless the machine was slower than the time that a file has to rest. */
	if (!file_version_is_stable(&reading.version))
		ck_assert_int_ne(reading_rest(&reading, false), -EAGAIN);
	ck_assert_int_eq(reading_rest(&reading, true), 0);
	ck_assert(file_version_is_stable(&reading.version));
	ck_assert_int_eq(reading_rest(&reading, false), 0);
	reading_end(&reading);
	close_all();
}
END_TEST

/* Whatever becomes of its name, what was opened is one version. */
START_TEST(test_young_and_replaced)
{
	struct reading reading = READING_NONE;
	size_t id = 0;

	open_all();
	put("file", 'b', SIZE);
	ck_assert_int_eq(reading_open(&reading, root, "/file", true), 0);
	if (_i) {
		put("new", 'c', SIZE);
		ck_assert_int_eq(renameat(root.fd, "new", root.fd, "file"), 0);
	} else {
		ck_assert_int_eq(unlinkat(root.fd, "file", 0), 0);
	}
	ck_assert_int_eq(reading_rest(&reading, true), 0);
	ck_assert_int_eq(unit_of(&reading, READING_CACHED, true, &id), 0);
	check_unit(id, 'b', SIZE);
	reading_end(&reading);
	put("file", 'd', SIZE);
	close_all();
}
END_TEST

/* That of a step that waits, if one that does not has not got all pages. */
static int error_of(struct reading *reading, enum reading_way way, bool wait, size_t *id)
{
	int error = unit_of(reading, way, wait, id);

	return error == READING_LATER ? unit_of(reading, way, true, id) : error;
}

START_TEST(test_changes)
{
	struct reading reading = READING_NONE;
	enum reading_way way = _i == 2 ? READING_DIRECT : READING_CACHED;
	bool wait = _i;
	size_t id = 0;

	open_all();
	await_stable();
	ck_assert_int_eq(reading_open(&reading, root, "/file", true), 0);
	put("file", 'b', SIZE);
	/* Of the same size, and shorter. */
	ck_assert_int_eq(error_of(&reading, way, wait, &id), -EAGAIN);
	ck_assert_int_eq(unlinkat(root.fd, "file", 0), 0);
	put("file", 'c', 10);
	reading_end(&reading);
	await_stable();
	ck_assert_int_eq(reading_open(&reading, root, "/file", true), 0);
	reading.version.size = 11;
	ck_assert_int_eq(error_of(&reading, way, wait, &id), -EAGAIN);
	ck_assert_uint_eq(id, 0);
	reading_end(&reading);
	close_all();
}
END_TEST

/* Opens a file of the letter for which the system has no pages; returns false without a disk. */
static bool open_uncached(struct reading *reading)
{
	const char *folder = disk_folder();
	bool uncached;
	int fd;

	if (!folder)
		return false;
	setenv("TMPDIR", folder, 1);
	open_all();
	await_stable();
	ck_assert_int_eq(reading_open(reading, root, "/file", true), 0);
	ck_assert_int_eq(reading_rest(reading, true), 0);
	fd = openat(root.fd, "file", O_RDONLY | O_CLOEXEC);
	uncached = uncache(fd, SIZE);
	close(fd);
	if (uncached)
		return true;
	/* Valgrind has no openat2(), and reads files that are mapped, as to count their pages. */
	ck_assert(!has_openat2());
	printf("skipped: Valgrind reads the file, and its pages cannot be counted\n");
	reading_end(reading);
	close_all();
	return false;
}

/* The page cache never gets a copy; where that is refused, the bytes come through it. */
START_TEST(test_direct)
{
	struct reading reading = READING_NONE;
	size_t id = 0;

	if (!open_uncached(&reading))
		return;
	if (_i == 1)
		refuse_direct();
	else if (_i == 2)
		refuse_call(SYS_pread64, EINVAL);
	ck_assert_int_eq(unit_of(&reading, READING_DIRECT, true, &id), 0);
	/* Refused for the tail: whole blocks were read before that. */
	if (_i == 0)
		ck_assert_uint_eq(pages_cached(reading.fd, SIZE), 0);
	else
		ck_assert_uint_gt(pages_cached(reading.fd, SIZE), 0);
	reading_drop_pages(&reading);
	ck_assert_uint_eq(pages_cached(reading.fd, SIZE), 0);
	reading_end(&reading);
	check_unit(id, 'a', SIZE);
	close_all();
}
END_TEST

/* A disk that fails is no reason to read in another way. */
START_TEST(test_direct_fails)
{
	struct reading reading = READING_NONE;
	size_t id = 0;

	if (!open_uncached(&reading))
		return;
	refuse_call(SYS_pread64, EIO);
	ck_assert_int_eq(unit_of(&reading, READING_DIRECT, true, &id), -EIO);
	ck_assert_uint_eq(pages_cached(reading.fd, SIZE), 0);
	ck_assert_uint_eq(id, 0);
	ck_assert(!reading.filling && !reading.done);
	reading_end(&reading);
	close_all();
}
END_TEST

START_TEST(test_failures)
{
	struct reading reading = READING_NONE;
	size_t id = 0;
	int error;

	open_all();
	ck_assert_int_eq(reading_open(&reading, root, "/none", true), -ENOENT);
	error = reading_open(&reading, root, "/none", false);
	ck_assert(error == -ENOENT || error == READING_LATER);
	ck_assert_int_eq(reading.fd, -1);
	/* Too large for a loop, and for the cache. */
	ck_assert_int_eq(reading_open(&reading, root, "/file", true), 0);
	reading.version.size = 300000;
	ck_assert_int_eq(unit_of(&reading, READING_CACHED, false, &id), READING_LATER);
	reading.version.size = (off_t)1 << 40;
	ck_assert_int_lt(unit_of(&reading, READING_CACHED, true, &id), 0);
	ck_assert(!reading.filling);
	reading_end(&reading);
	/* A half-finished read releases all. */
	ck_assert_int_eq(reading_open(&reading, root, "/file", true), 0);
	ck_assert_int_eq(NC_alloc(&reading.handle, SIZE, 0), 0);
	reading.filling = true;
	reading_end(&reading);
	ck_assert(!reading.filling);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_steps, 0, 4);
	tcase_add_loop_test(tcase, test_rest_of_it, 0, 2);
	tcase_add_test(tcase, test_young);
	tcase_add_loop_test(tcase, test_young_and_replaced, 0, 2);
	tcase_add_loop_test(tcase, test_changes, 0, 3);
	tcase_add_loop_test(tcase, test_direct, 0, 3);
	tcase_add_test(tcase, test_direct_fails);
	tcase_add_test(tcase, test_failures);
}

RUN_SUITE("file-cache-read", fill)
