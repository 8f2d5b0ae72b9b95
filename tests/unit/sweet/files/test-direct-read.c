/* SPDX-License-Identifier: MIT */
/*
 * test-direct-read.c - unit tests of direct-read.c: units of every kind and length get
 * the bytes of a file, whose page cache stays empty; files that are shorter or longer
 * than expected; refusals.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nabc.h>

#include "files/direct-read.h"
#include "log/log.h"

#include "page-cache-fixture.h"
#include "suite.h"

#define CACHE (32 << 20)

static NC_cache *cache;
static NC_handle handle;

static void open_cache(unsigned flags)
{
	cache = NC_cache_open(
		&(struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = CACHE, .flags = flags));
	ck_assert_ptr_nonnull(cache);
}

static void alloc_unit(size_t size, enum NC_kind kind)
{
	ck_assert_int_eq(NC_unit_alloc(NULL, &handle, size, 0, kind, 0), 0);
}

static void end(int fd)
{
	close(fd);
	(void)NC_free(&handle);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}

/* Inserts the unit and compares its bytes and checksums. */
static void check_unit(size_t size, size_t file)
{
	unsigned char *data = must_alloc(size);
	size_t id;

	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	ck_assert_int_eq(NC_pread(NULL, id, data, size, 0), (ssize_t)size);
	ck_assert_uint_eq(pattern_match(data, file, 0, size), size);
	ck_assert_int_eq(NC_verify(NULL, id), 0);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	free(data);
}

static const size_t sizes[] = {
	1,    511,  512,    513,     1000,    4095,    4096,	4097,	 8191,
	8192, 8193, 100000, 1 << 20, 1048577, 2097151, 2097153, 6291579,
};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static const enum NC_kind kinds[] = {NC_KIND_AUTO, NC_KIND_RECYCLED, NC_KIND_APPENDED,
				     NC_KIND_SEALED};

static void check_size(const char *folder, size_t size, enum NC_kind kind)
{
	int fd = open_pattern(folder ? folder : ".", size), before = fcntl(fd, F_GETFL), error;
	size_t done = 77;

	if (folder)
		ck_assert(uncache(fd, size));
	alloc_unit(size, kind);
	error = direct_read(fd, &handle, size, &done);
	if (!folder && direct_read_refused(error)) {
		printf("skipped: the file system refuses direct reads: %s\n", strerror(-error));
	} else {
		ck_assert_int_eq(error, 0);
		ck_assert_uint_eq(done, size);
		if (folder)
			ck_assert_msg(pages_cached(fd, size) == 0,
				      "%zu bytes leave %u pages in the page cache", size,
				      pages_cached(fd, size));
		check_unit(size, size);
	}
	/* Other users of the descriptor read as before. */
	ck_assert_int_eq(fcntl(fd, F_GETFL), before);
	(void)NC_free(&handle);
	close(fd);
}

START_TEST(test_sizes)
{
	const char *folder = disk_folder();

	open_cache(_i & 1 ? NC_CACHE_EAGER_SUMS : 0);
	for (unsigned i = 0; i < SIZES; i++)
		check_size(folder, sizes[i], kinds[_i / 2]);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

/* The file was truncated after its size was read: only its bytes are there. */
START_TEST(test_shorter)
{
	static const size_t files[] = {1, 4095, 4096, 4106, 8192, 8193};
	const char *folder = disk_folder();

	if (!folder)
		return;
	open_cache(0);
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		for (size_t more = 1; more < 20000; more = more * 7 + 1) {
			int fd = open_pattern(folder, files[i]);
			size_t done;

			alloc_unit(files[i] + more, NC_KIND_AUTO);
			ck_assert_int_eq(direct_read(fd, &handle, files[i] + more, &done), 0);
			ck_assert_uint_eq(done, files[i]);
			ck_assert_int_eq(NC_free(&handle), 0);
			close(fd);
		}
	end(-1);
}
END_TEST

/* The file has grown: the unit gets no more than its size, nor does its neighbour. */
START_TEST(test_longer)
{
	static const size_t units[] = {1, 100, 4095, 4096, 4097, 8191};
	const char *folder = disk_folder();
	NC_handle next;

	if (!folder)
		return;
	open_cache(0);
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		int fd = open_pattern(folder, 20000);
		size_t done, length;
		char *bytes;

		alloc_unit(units[i], NC_KIND_RECYCLED);
		ck_assert_int_eq(NC_unit_alloc(NULL, &next, 4096, 0, NC_KIND_RECYCLED, 0), 0);
		bytes = NC_fragment(&next, 0, &length);
		ck_assert_int_eq(direct_read(fd, &handle, units[i], &done), 0);
		ck_assert_uint_eq(done, units[i]);
		/* Behind the bytes of the unit, on its last page. */
		if (units[i] % 4096) {
			const char *last = NC_fragment(&handle, (units[i] - 1) / 4096, &length);

			ck_assert_uint_eq(length, units[i] % 4096);
			for (size_t at = length; at < 4096; at++)
				ck_assert_int_eq(last[at], 0);
		}
		for (size_t at = 0; at < 4096; at++)
			ck_assert_int_eq(bytes[at], 0);
		check_unit(units[i], 20000);
		ck_assert_int_eq(NC_free(&next), 0);
		ck_assert_int_eq(NC_free(&handle), 0);
		close(fd);
	}
	end(-1);
}
END_TEST

/* A file system, or the file itself, that does not permit it, at each step. */
START_TEST(test_refused)
{
	const char *folder = disk_folder();
	size_t size = 10000, done = 77;
	int fd, before, error;

	if (!folder)
		return;
	open_cache(0);
	fd = open_pattern(folder, size);
	before = fcntl(fd, F_GETFL);
	alloc_unit(size, NC_KIND_AUTO);
	if (_i == 0)
		refuse_direct();
	else if (_i == 1)
		refuse_call(SYS_readv, EINVAL);
	else if (_i == 2)
		refuse_call(SYS_readv, EFAULT);
	else
		refuse_call(SYS_pread64, EINVAL);
	error = direct_read(fd, &handle, size, &done);
	ck_assert_int_eq(error, _i == 2 ? -EFAULT : -EINVAL);
	ck_assert(direct_read_refused(error));
	ck_assert_uint_eq(done, _i == 3 ? 8192 : 0);
	ck_assert_int_eq(fcntl(fd, F_GETFL), before);
	end(fd);
}
END_TEST

/* What the system itself refuses: its own files. */
START_TEST(test_refused_by_system)
{
	int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	size_t done = 77;

	if (fd < 0) {
		printf("skipped: there is no /sys/kernel/notes\n");
		return;
	}
	open_cache(0);
	alloc_unit(100, NC_KIND_AUTO);
	ck_assert_int_eq(direct_read(fd, &handle, 100, &done), -EINVAL);
	ck_assert_uint_eq(done, 0);
	ck_assert_int_eq(NC_read(fd, &handle, 0, 100), 100);
	end(fd);
}
END_TEST

#ifdef STATX_DIOALIGN

/* What the system says of every file, instead of the truth. */
static const struct statement {
	int error;
	unsigned mask, memory, offset;
	int result;
} statements[] = {
	{0, STATX_DIOALIGN, 512, 512, 0},
	{0, STATX_DIOALIGN, 4, 4096, 0},
	{0, STATX_DIOALIGN, 0, 0, -EOPNOTSUPP},
	{0, STATX_DIOALIGN, 512, 0, -EOPNOTSUPP},
	{0, STATX_DIOALIGN, 512, 8192, -EOPNOTSUPP},
	{0, STATX_DIOALIGN, 16384, 512, -EOPNOTSUPP},
	/* It gives no answer: only a read shows it. */
	{0, 0, 0, 0, 0},
	{ENOSYS, 0, 0, 0, 0},
};
#define STATEMENTS ((int)(sizeof(statements) / sizeof(statements[0])))

static const struct statement *stated;

/* Stands before the C library's. */
int statx(int folder, const char *restrict path, int flags, unsigned mask,
	  struct statx *restrict stat)
{
	if (!stated)
		return (int)syscall(SYS_statx, folder, path, flags, mask, stat);
	errno = stated->error;
	*stat = (struct statx){.stx_mask = stated->mask,
			       .stx_dio_mem_align = stated->memory,
			       .stx_dio_offset_align = stated->offset};
	return errno ? -1 : 0;
}

START_TEST(test_stated)
{
	const char *folder = disk_folder();
	size_t done = 77;
	int fd;

	if (!folder)
		return;
	open_cache(0);
	fd = open_pattern(folder, 10000);
	alloc_unit(10000, NC_KIND_AUTO);
	stated = &statements[_i];
	ck_assert_int_eq(direct_read(fd, &handle, 10000, &done), stated->result);
	ck_assert_uint_eq(done, stated->result ? 0 : 10000);
	ck_assert(!stated->result || direct_read_refused(stated->result));
	end(fd);
}
END_TEST

#endif

START_TEST(test_failures)
{
	const char *folder = disk_folder();
	size_t done = 77;
	int fd, error;

	open_cache(0);
	alloc_unit(10000, NC_KIND_AUTO);
	ck_assert_int_eq(direct_read(-1, &handle, 10000, &done), -EBADF);
	ck_assert_uint_eq(done, 0);
	ck_assert(!direct_read_refused(-EBADF));
	ck_assert(!direct_read_refused(-EIO));
	ck_assert(!direct_read_refused(0));
	if (!folder) {
		end(-1);
		return;
	}
	/* Errors of the disk are not refusals. */
	fd = open_pattern(folder, 10000);
	refuse_call(_i ? SYS_pread64 : SYS_readv, EIO);
	error = direct_read(fd, &handle, 10000, &done);
	ck_assert_int_eq(error, -EIO);
	ck_assert_uint_eq(done, _i ? 8192 : 0);
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_DIRECT, 0);
	end(fd);
}
END_TEST

START_TEST(test_report)
{
	char folder[64], path[80], got[1000];
	ssize_t length;
	int fd;

	make_directory(folder);
	snprintf(path, sizeof(path), "%s/log", folder);
	ck_assert_int_eq(log_open(path), 0);
	log_settled();
	direct_read_report("/a/b", -EINVAL);
	direct_read_report("/c", -EFAULT);
	log_close();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = read(fd, got, sizeof(got) - 1);
	ck_assert_int_gt(length, 0);
	got[length] = '\0';
	ck_assert_ptr_nonnull(strstr(got, "page-cache=bypass: cannot read with O_DIRECT: /a/b: "
					  "Invalid argument (such files are read as with "
					  "page-cache=drop; logged once)\n"));
	ck_assert_ptr_eq(strchr(got, '\n'), got + length - 1);
	close(fd);
	unlink(path);
	rmdir(folder);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_sizes, 0, 2 * (int)(sizeof(kinds) / sizeof(kinds[0])));
	tcase_add_test(tcase, test_shorter);
	tcase_add_test(tcase, test_longer);
	tcase_add_loop_test(tcase, test_refused, 0, 4);
	tcase_add_test(tcase, test_refused_by_system);
#ifdef STATX_DIOALIGN
	tcase_add_loop_test(tcase, test_stated, 0, STATEMENTS);
#endif
	tcase_add_loop_test(tcase, test_failures, 0, 2);
	tcase_add_test(tcase, test_report);
}

RUN_SUITE("direct-read", fill)
