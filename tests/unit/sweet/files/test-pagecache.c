/* SPDX-License-Identifier: MIT */
/*
 * test-pagecache.c - unit tests of pagecache.c: loaded data can be read without
 * waiting, for any start and end; a file that is shorter.
 */
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "files/pagecache.h"

#include "suite.h"

#define SIZE (2 * PAGECACHE_WINDOW + 1234)

static int file;

static void setup(void)
{
	char folder[64], path[80];
	char *data = must_alloc(SIZE);

	memset(data, 'x', SIZE);
	make_directory(folder);
	snprintf(path, sizeof(path), "%s/file", folder);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(write(file, data, SIZE), (ssize_t)SIZE);
	/* Dirty pages cannot be dropped. */
	ck_assert_int_eq(fsync(file), 0);
	free(data);
	unlink(path);
	rmdir(folder);
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

	for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		size_t from = ranges[i][0], length = ranges[i][1];

		ck_assert_int_eq(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
		ck_assert_int_eq(pagecache_load(file, from, length), 0);
		for (size_t at = 0; at < length; at += 4096)
			ck_assert(there(from + at));
		ck_assert(!length || there(from + length - 1));
	}
	/* The file position belongs to another user. */
	ck_assert_int_eq(lseek(file, 0, SEEK_CUR), (off_t)SIZE);
}
END_TEST

START_TEST(test_has)
{
	/* cachestat(2) needs Linux 6.5 and a file that the caller may write. */
	ck_assert_int_eq(pagecache_load(file, 0, SIZE), 0);
	if (!pagecache_has(file, 0, SIZE, PAGECACHE_READ))
		return;
	ck_assert(pagecache_has(file, 0, SIZE, PAGECACHE_WINDOW));
	ck_assert(pagecache_has(file, SIZE - 1, 1, PAGECACHE_WINDOW));
	/* One page is missing: the coarse check detects it, too. */
	ck_assert_int_eq(fdatasync(file), 0);
	ck_assert_int_eq(posix_fadvise(file, 40960, 4096, POSIX_FADV_DONTNEED), 0);
	if (there(40960))
		return;
	ck_assert(!pagecache_has(file, 0, SIZE, PAGECACHE_READ));
	ck_assert(!pagecache_has(file, 0, SIZE, PAGECACHE_WINDOW));
	ck_assert(pagecache_has(file, 0, 4096, PAGECACHE_WINDOW));
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
