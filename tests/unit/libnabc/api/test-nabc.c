/* SPDX-License-Identifier: MIT */
/*
 * test-nabc.c - unit tests of nabc.c: the exported calls of one process as the
 * manual describes them, errno by errno.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/id.h"

#include "nabc-fixture.h"
#include "suite.h"
#include "unit-holds.h"

START_TEST(test_no_cache)
{
	NC_handle handle = {{0}};

	check_none();
	/* These do not need a cache. */
	FAILS(NC_free(&handle), EINVAL);
	FAILS(NC_insert(&handle), EINVAL);
	errno = 77;
	ck_assert_uint_eq(NC_cache_id(&handle), 0);
	ck_assert_uint_eq(NC_cache_id(NULL), 0);
	ck_assert_int_eq(errno, 77);
}
END_TEST

/* The first call of a program without any setup; _i: $NABC_CACHE is empty. */
START_TEST(test_default)
{
	struct NC_cache_stat stat;
	NC_handle handle;
	NC_cache *other;
	size_t id;
	int pair[2];
	char got[6] = "";

	if (_i)
		setenv("NABC_CACHE", "", 1);
	else
		unsetenv("NABC_CACHE");
	ck_assert_int_eq(NC_alloc(&handle, 5, 0), 0);
	ck_assert_int_eq(NC_printf(&handle, 0, "bytes"), 5);
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ck_assert_int_eq(NC_socksend(pair[0], id, 0, 5), 5);
	ck_assert_int_eq(read(pair[1], got, 5), 5);
	ck_assert_str_eq(got, "bytes");
	close(pair[0]);
	close(pair[1]);
	ck_assert_int_eq(NC_cache_stat(NULL, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.size, 256 * MIB);
	/* The first one stays the default. */
	other = NC_cache_open(NULL);
	ck_assert_ptr_nonnull(other);
	ck_assert(alive(id));
	FAILS(NC_stat(other, id, &(struct NC_stat){0}, sizeof(struct NC_stat)), ENOENT);
	ck_assert_int_eq(NC_cache_close(other), 0);
	ck_assert(alive(id));
}
END_TEST

/* A unit that is shorter than its allocation. */
START_TEST(test_final_length)
{
	static const size_t lengths[] = {1, 999, 1000, 1001, 4096, 9999, 10000};
	static const size_t filled[] = {0, 500, 10000};
	char wanted[10000], got[10000];

	open_cache(4 * MIB);
	for (unsigned i = 0; i < 7 * 3 * 2; i++) {
		size_t length = lengths[i % 7], full = filled[i / 7 % 3], run;
		NC_handle handle;
		struct NC_stat stat;
		uint32_t sum;

		ck_assert_int_eq(NC_unit_alloc(cache, &handle, i % 2 ? 10000 : 100, 1000,
					       i / 21 ? NC_KIND_RECYCLED : NC_KIND_APPENDED, 0),
				 0);
		ck_assert_int_eq(NC_unit_grow(&handle, 10000), 0);
		ck_assert_int_eq(NC_unit_grow(&handle, 100), 0);
		FAILS(NC_unit_grow(&handle, SIZE_MAX), EFBIG);
		memset(wanted, 0, sizeof(wanted));
		pattern_fill(wanted, i, 0, full);
		ck_assert_int_eq(NC_write(&handle, wanted, full, 0), (ssize_t)full);
		ck_assert_ptr_nonnull(NC_fragment(&handle, 9, &run));
		FAILS(NC_unit_insert(&handle, 0), ERANGE);
		FAILS(NC_unit_insert(&handle, 10001), ERANGE);
		ck_assert_int_eq(NC_unit_insert(&handle, length), 0);
		FAILS(NC_unit_insert(&handle, length), EALREADY);
		FAILS(NC_unit_grow(&handle, 20000), EALREADY);
		ck_assert_int_eq(NC_stat(cache, NC_cache_id(&handle), &stat, sizeof(stat)), 0);
		ck_assert_uint_eq(stat.size, length);
		ck_assert_uint_eq(stat.fragments, (length + 999) / 1000);
		ck_assert_int_eq(NC_pread(cache, stat.id, got, sizeof(got), 0), (ssize_t)length);
		ck_assert_mem_eq(got, wanted, length);
		ck_assert_int_eq(NC_verify(cache, stat.id), 0);
		ck_assert_int_eq(NC_checksum(cache, stat.id, &sum, NC_CHECKSUM_INET, length, 0), 0);
		FAILS(NC_checksum(cache, stat.id, &sum, NC_CHECKSUM_INET, length + 1, 0), ERANGE);
		ck_assert_int_eq(NC_destroy(cache, stat.id), 0);
	}
	close_cache();
}
END_TEST

static int print_by_list(NC_handle *handle, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = NC_vprintf(handle, 2, format, arguments);
	va_end(arguments);
	return length;
}

START_TEST(test_vprintf)
{
	NC_handle handle;
	char got[6] = "";

	open_cache(MIB);
	ck_assert_int_eq(NC_alloc(&handle, 5, 0), 0);
	ck_assert_int_eq(print_by_list(&handle, "%d%s", 7, "ab"), 3);
	FAILS(print_by_list(&handle, "%04d", 7), ENOSPC);
	ck_assert_int_eq(NC_insert(&handle), 0);
	ck_assert_int_eq(NC_pread(cache, NC_cache_id(&handle), got, 5, 0), 5);
	ck_assert_mem_eq(got,
			 "\0\0"
			 "7ab",
			 5);
	close_cache();
}
END_TEST

START_TEST(test_open)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = MIB - 1);
	struct rlimit before, none;

	NULL_FAILS(NC_cache_open(&options), EINVAL);
	options = (struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = MIB,
								 .max_unit = MIB / 4 + 1);
	NULL_FAILS(NC_cache_open(&options), EINVAL);
	options = (struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.member_size = 100);
	NULL_FAILS(NC_cache_open(&options), EINVAL);
	options = (struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.flags = 1u << 31);
	NULL_FAILS(NC_cache_open(&options), EINVAL);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	NULL_FAILS(NC_cache_open(NULL), EMFILE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	/* None of the failed calls left a cache behind. */
	check_none();
	cache = NC_cache_open(NULL);
	ck_assert_ptr_nonnull(cache);
	close_cache();
	check_none();
}
END_TEST

START_TEST(test_close)
{
	unsigned descriptors = open_descriptors();
	NC_handle handle;
	size_t id;

	FAILS(NC_cache_close(NULL), EINVAL);
	open_cache(MIB);
	FAILS(NC_cache_close(NULL), EINVAL);
	FAILS(NC_cache_close((NC_cache *)&handle), EINVAL);
	ck_assert_int_eq(NC_alloc(&handle, 100, 0), 0);
	FAILS(NC_cache_close(cache), EBUSY);
	/* Unchanged: the handle is still usable. */
	ck_assert_int_eq(NC_printf(&handle, 0, "x"), 1);
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	ck_assert(alive(id));
	/* Neither insertion nor a hold prevents destruction. */
	ck_assert_int_eq(hold_id(NULL, id), 0);
	close_cache();
	check_none();
	ck_assert_int_eq(NC_free(&handle), 0);
	open_cache(MIB);
	FAILS(hold_id(NULL, id), ENOENT);
	ck_assert_int_eq(NC_alloc(&handle, 100, 0), 0);
	FAILS(NC_cache_close(cache), EBUSY);
	ck_assert_int_eq(NC_free(&handle), 0);
	close_cache();
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

START_TEST(test_cache_calls)
{
	char directory[64], path[100], other[100], wrong[200];
	struct NC_cache_stat stat;

	open_cache(MIB);
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/a", directory);
	snprintf(other, sizeof(other), "%s/b", directory);
	FAILS(NC_cache_stat(cache, NULL, 1), EINVAL);
	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.size, MIB);
	ck_assert_str_ne(stat.uring, "");
	memset(&stat, 0, sizeof(stat));
	ck_assert_int_eq(NC_cache_stat(NULL, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.size, MIB);
	ck_assert_int_eq(NC_cache_fd(NULL), NC_cache_fd(cache));
	ck_assert_int_eq(NC_cache_dispatch(NULL), 0);
	ck_assert_int_ge(NC_cache_fd(cache), 0);
	ck_assert(!readable(NC_cache_fd(cache)));
	ck_assert_int_eq(NC_cache_dispatch(cache), 0);
	memset(wrong, 'w', sizeof(wrong));
	wrong[199] = '\0';
	FAILS(NC_cache_serve(cache, NULL, NULL), EINVAL);
	FAILS(NC_cache_serve(cache, wrong, NULL), ENAMETOOLONG);
	FAILS(NC_cache_serve(cache, "/dev/null", NULL), EADDRINUSE);
	ck_assert_int_eq(NC_cache_serve(cache, path, NULL), 0);
	FAILS(NC_cache_serve(cache, path, NULL), EALREADY);
	FAILS(NC_cache_serve(cache, other, NULL), EALREADY);
	close_cache();
	/* The socket file is removed with the cache. */
	FAILS(access(path, F_OK), ENOENT);
	rmdir(directory);
}
END_TEST

START_TEST(test_alloc)
{
	NC_handle handle, more[8];
	unsigned count = 0;

	open_cache(MIB);
	FAILS(NC_alloc(NULL, 10, 0), EINVAL);
	FAILS(NC_alloc(&handle, 0, 0), EINVAL);
	FAILS(NC_alloc(&handle, SIZE_MAX, 0), EINVAL);
	FAILS(NC_alloc(&handle, 10, 5000), EINVAL);
	FAILS(NC_unit_alloc(NULL, &handle, 10, 0, (enum NC_kind)7, 0), EINVAL);
	FAILS(NC_alloc(&handle, MIB / 4 + 1, 0), EFBIG);
	while (count < 8 && NC_alloc(&more[count], MIB / 4, 0) == 0)
		count++;
	ck_assert_uint_eq(count, 4);
	FAILS(NC_alloc(&handle, 1, 0), ENOMEM);
	while (count--)
		ck_assert_int_eq(NC_free(&more[count]), 0);
	close_cache();
}
END_TEST

/* A second unit through a handle does not release the first one. */
START_TEST(test_alloc_in_use)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB, .flags = NC_CACHE_NO_THREAD);
	char text[8] = "";
	NC_cache *other;
	NC_handle handle;

	open_cache(MIB);
	other = NC_cache_open(&options);
	ck_assert_ptr_nonnull(other);
	/* The possible content of an uninitialised handle. */
	memset(&handle, 0xff, sizeof(handle));
	ck_assert_int_eq(NC_alloc(&handle, 7, 0), 0);
	ck_assert_int_eq(NC_write(&handle, "first", 5, 0), 5);
	FAILS(NC_alloc(&handle, 100, 0), EBUSY);
	FAILS(NC_unit_alloc(NULL, &handle, 100, 0, NC_KIND_SEALED, 0), EBUSY);
	FAILS(NC_unit_alloc(other, &handle, 100, 0, NC_KIND_AUTO, 0), EBUSY);
	ck_assert_int_eq(NC_insert(&handle), 0);
	ck_assert_int_eq(NC_pread(NULL, NC_cache_id(&handle), text, 7, 0), 7);
	ck_assert_str_eq(text, "first");
	/* The cache owns that unit now; the next allocation loses nothing. */
	ck_assert_int_eq(NC_alloc(&handle, 100, 0), 0);
	ck_assert_int_eq(NC_free(&handle), 0);
	ck_assert_int_eq(NC_unit_alloc(other, &handle, 100, 0, NC_KIND_AUTO, 0), 0);
	ck_assert_int_eq(NC_free(&handle), 0);
	ck_assert_int_eq(NC_cache_close(other), 0);
	close_cache();
}
END_TEST

START_TEST(test_filling)
{
	NC_handle handle;
	char byte = 'x';
	int ends[2];

	open_cache(MIB);
	memset(&handle, 0, sizeof(handle));
	FAILS(NC_write(&handle, &byte, 1, 0), EINVAL);
	FAILS(NC_read(0, &handle, 0, 1), EINVAL);
	FAILS(NC_printf(&handle, 0, "x"), EINVAL);
	FAILS(NC_free(&handle), EINVAL);
	FAILS(NC_free(NULL), EINVAL);
	ck_assert_int_eq(NC_alloc(&handle, 10, 0), 0);
	FAILS(NC_write(&handle, &byte, 1, 10), ERANGE);
	FAILS(NC_write(&handle, NULL, 1, 0), EINVAL);
	FAILS(NC_printf(&handle, 0, "%s", "eleven char"), ENOSPC);
	FAILS(NC_printf(&handle, 11, "%s", ""), ERANGE);
	FAILS(NC_read(0, &handle, 5, 6), ERANGE);
	FAILS(NC_read(-1, &handle, 0, 1), EBADF);
	ck_assert_int_eq(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	FAILS(NC_read(ends[0], &handle, 0, 1), EAGAIN);
	ck_assert_int_eq(write(ends[1], &byte, 1), 1);
	ck_assert_int_eq(NC_read(ends[0], &handle, 9, 1), 1);
	close_pair(ends);
	ck_assert_int_eq(NC_insert(&handle), 0);
	FAILS(NC_insert(&handle), EALREADY);
	FAILS(NC_write(&handle, &byte, 1, 0), EALREADY);
	FAILS(NC_printf(&handle, 0, "x"), EALREADY);
	FAILS(NC_read(0, &handle, 0, 1), EALREADY);
	ck_assert_int_eq(NC_free(&handle), 0);
	FAILS(NC_free(&handle), EINVAL);
	close_cache();
}
END_TEST

START_TEST(test_stat)
{
	struct NC_stat stat;
	NC_handle handle;
	size_t id;

	open_cache(MIB);
	ck_assert_int_eq(NC_unit_alloc(NULL, &handle, 5000, 1448, NC_KIND_APPENDED, 0), 0);
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.id, id);
	ck_assert_uint_eq(stat.size, 5000);
	ck_assert_uint_eq(stat.fraglen, 1448);
	ck_assert_uint_eq(stat.fragments, 4);
	ck_assert_int_eq(stat.kind, NC_KIND_APPENDED);
	ck_assert_uint_eq(stat.member, 0);
	ck_assert_uint_eq(stat.holds, 0);
	ck_assert_int_eq(hold_id(NULL, id), 0);
	ck_assert_int_eq(hold_id(NULL, id), 0);
	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.holds, 2);
	ck_assert_int_eq(release_id(NULL, id), 0);
	ck_assert_int_eq(release_id(NULL, id), 0);
	FAILS(NC_stat(NULL, id, NULL, 1), EINVAL);
	FAILS(NC_stat(NULL, 0, &stat, sizeof(stat)), ENOENT);
	FAILS(NC_stat(NULL, id + 1, &stat, sizeof(stat)), ENOENT);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	FAILS(NC_stat(NULL, id, &stat, sizeof(stat)), ENOENT);
	ck_assert_int_eq(NC_free(&handle), 0);
	close_cache();
}
END_TEST

START_TEST(test_holds)
{
	size_t id;

	open_cache(MIB);
	id = insert(1, 100);
	FAILS(hold_id(NULL, 0), ENOENT);
	FAILS(hold_id(NULL, nc_id(5, 0, 1)), ENOENT);
	FAILS(release_id(NULL, id), EINVAL);
	FAILS(release_id(NULL, 0), EINVAL);
	FAILS(release_id(NULL, nc_id(5, 0, 1)), EINVAL);
	FAILS(NC_destroy(NULL, 0), ENOENT);
	ck_assert_int_eq(hold_id(NULL, id), 0);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	FAILS(NC_destroy(NULL, id), ENOENT);
	FAILS(hold_id(NULL, id), ENOENT);
	ck_assert_int_eq(release_id(NULL, id), 0);
	FAILS(release_id(NULL, id), EINVAL);
	close_cache();
}
END_TEST

START_TEST(test_sends)
{
	struct NC_range ranges[NC_RANGES_MAX + 1] = {0};
	struct NC_send message = NC_SEND_INIT(.ranges = ranges, .range_count = 1);
	struct NC_hold hold;
	char got[1000];
	int pair[2], file;
	size_t id;

	open_cache(MIB);
	id = insert(9, 1000);
	tcp_pair(pair);
	ck_assert_int_eq(NC_socksend(pair[0], id, 100, 900), 900);
	read_exactly(pair[1], got, 900);
	ck_assert_uint_eq(pattern_match(got, 9, 100, 900), 900);
	ck_assert_int_eq(NC_socksend(pair[0], id, 1000, 0), 0);
	FAILS(NC_socksend(pair[0], id, 100, 901), ERANGE);
	FAILS(NC_socksend(pair[0], id, SIZE_MAX, 2), ERANGE);
	FAILS(NC_socksend(pair[0], id + 1, 0, 1), ENOENT);
	FAILS(NC_socksend(-1, id, 0, 1), EBADF);
	file = memfd_create("test", MFD_CLOEXEC);
	FAILS(NC_socksend(file, id, 0, 1), ENOTSOCK);
	close(file);
	FAILS(NC_send(NULL, pair[0], NULL), EINVAL);
	message.range_count = NC_RANGES_MAX + 1;
	FAILS(NC_send(NULL, pair[0], &message), EINVAL);
	message.range_count = 1;
	/* Held: its id is invalid, its holder can still use it. */
	ranges[0] = (struct NC_range){.id = id, .length = 1000};
	ck_assert_int_eq(hold_id(NULL, id), 0);
	use_holds(&message, &hold);
	message.hold_count = NC_RANGES_MAX + 1;
	FAILS(NC_send(NULL, pair[0], &message), EINVAL);
	message.hold_count = 1;
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	FAILS(NC_socksend(pair[0], id, 0, 1), ENOENT);
	ck_assert_int_eq(NC_send(NULL, pair[0], &message), 1000);
	ck_assert_int_eq(release_id(NULL, id), 0);
	FAILS(NC_send(NULL, pair[0], &message), EINVAL);
	message.holds = NULL;
	FAILS(NC_send(NULL, pair[0], &message), EINVAL);
	message.hold_count = 0;
	FAILS(NC_send(NULL, pair[0], &message), ENOENT);
	set_nonblocking(pair[0]);
	id = insert(1, 1000);
	while (NC_socksend(pair[0], id, 0, 1000) > 0)
		;
	ck_assert_int_eq(errno, EAGAIN);
	/* Unread data turns the peer's end into a reset. */
	close(pair[1]);
	FAILS(NC_socksend(pair[0], id, 0, 1000), ECONNRESET);
	FAILS(NC_socksend(pair[0], id, 0, 1000), EPIPE);
	close(pair[0]);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_no_cache);
	tcase_add_loop_test(tcase, test_default, 0, 2);
	tcase_add_test(tcase, test_final_length);
	tcase_add_test(tcase, test_vprintf);
	tcase_add_test(tcase, test_open);
	tcase_add_test(tcase, test_close);
	tcase_add_test(tcase, test_cache_calls);
	tcase_add_test(tcase, test_alloc);
	tcase_add_test(tcase, test_alloc_in_use);
	tcase_add_test(tcase, test_filling);
	tcase_add_test(tcase, test_stat);
	tcase_add_test(tcase, test_holds);
	tcase_add_test(tcase, test_sends);
}

RUN_SUITE("nabc", fill)
