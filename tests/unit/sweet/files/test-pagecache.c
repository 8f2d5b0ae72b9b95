/* SPDX-License-Identifier: MIT */
/*
 * test-pagecache.c - unit tests of pagecache.c: loaded data can be read without
 * waiting, for any start and end; a file that is shorter.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "files/pagecache.h"

#include "page-cache-fixture.h"
#include "suite.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

#define SIZE (2 * PAGECACHE_WINDOW + 1234)
/* The kernel may take back a page at any moment: then all is loaded again. */
#define ATTEMPTS 1000

static int file;

static void setup(void)
{
	const char *folder = disk_folder();

	file = open_pattern(folder ? folder : "/tmp", SIZE);
	/* Dirty pages cannot be dropped. */
	ck_assert_int_eq(fsync(file), 0);
}

static void teardown(void)
{
	close(file);
}

/* Returns whether the byte at offset can be read without waiting. */
static bool there(size_t offset)
{
	char byte;
	struct iovec iov = {&byte, 1};

	return preadv2(file, &iov, 1, (off_t)offset, RWF_NOWAIT) == 1;
}

static bool range_there(size_t from, size_t length)
{
	for (size_t at = 0; at < length; at += 4096)
		if (!there(from + at))
			return false;
	return !length || there(from + length - 1);
}

static bool load_succeeds(size_t from, size_t length)
{
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		ck_assert_int_eq(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
		ck_assert_int_eq(pagecache_load(file, from, length), 0);
		if (range_there(from, length))
			return true;
	}
	return false;
}

START_TEST(test_load)
{
	static const size_t ranges[][2] = {
		{0, 1},
		{4095, 2},
		{0, SIZE},
		{1, PAGECACHE_WINDOW},
		{PAGECACHE_WINDOW - 1, PAGECACHE_WINDOW + 2},
		{SIZE - 1, 1},
		{77, 0},
	};

	if (!disk_folder())
		return;
	for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		ck_assert(load_succeeds(ranges[i][0], ranges[i][1]));
	/* The file position belongs to another user. */
	ck_assert_int_eq(lseek(file, 0, SEEK_CUR), 0);
}
END_TEST

static bool has_all(void)
{
	return pagecache_has(file, 0, SIZE, PAGECACHE_READ) &&
	       pagecache_has(file, 0, SIZE, PAGECACHE_WINDOW) &&
	       pagecache_has(file, SIZE - 1, 1, PAGECACHE_WINDOW);
}

static bool seen_after_load(void)
{
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		ck_assert_int_eq(pagecache_load(file, 0, SIZE), 0);
		if (has_all())
			return true;
	}
	return false;
}

/* Only whole folios can be dropped, up to the size of a window; some systems drop none. */
static bool gap_is_seen(size_t step)
{
	bool dropped = false;

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		ck_assert_int_eq(pagecache_load(file, 0, SIZE), 0);
		ck_assert_int_eq(posix_fadvise(file, PAGECACHE_WINDOW, 0, POSIX_FADV_DONTNEED), 0);
		if (!pagecache_has(file, 0, SIZE, step) && pagecache_has(file, 0, 4096, step))
			return true;
		dropped = dropped || !there(SIZE - 1);
	}
	return !dropped;
}

START_TEST(test_has)
{
	struct pages_count {
		uint64_t of[5];
	} count;
	uint64_t range[2] = {0, SIZE};

	/* It needs cachestat(2): Linux 6.5, and a file that the caller may write. */
	if (!disk_folder() || syscall(SYS_cachestat, file, range, &count, 0) < 0)
		return;
	ck_assert(seen_after_load());
	ck_assert(gap_is_seen(PAGECACHE_READ));
	ck_assert(gap_is_seen(PAGECACHE_WINDOW));
}
END_TEST

START_TEST(test_shorter)
{
	ck_assert_int_eq(pagecache_load(file, SIZE - 10, 11), -ERANGE);
	ck_assert_int_eq(pagecache_load(file, SIZE, 1), -ERANGE);
	ck_assert_int_eq(ftruncate(file, 0), 0);
	ck_assert_int_eq(pagecache_load(file, 0, 1), -ERANGE);
}
END_TEST

START_TEST(test_bad)
{
	unsigned before = open_descriptors();

	ck_assert_int_eq(pagecache_load(-1, 0, 1), -EBADF);
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_load);
	tcase_add_test(tcase, test_has);
	tcase_add_test(tcase, test_shorter);
	tcase_add_test(tcase, test_bad);
}

RUN_SUITE("pagecache", fill)
