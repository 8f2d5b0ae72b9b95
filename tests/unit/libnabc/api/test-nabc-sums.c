/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-sums.c - unit tests of nabc.c: NC_checksum, NC_verify, NC_fragment and
 * NC_stream as the manual describes them.  Tests corrupt bytes through a pointer from
 * before insert; a member is a child that is forked here.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nabc.h>

#include "base/id.h"

#include "nabc-fixture.h"
#include "suite.h"
#include "sums-fixture.h"
#include "unit-holds.h"

/* The sum of RFC 1071 as the manual defines it, the CRC of RFC 3720. */
static uint32_t inet_of(const unsigned char *data, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i++) {
		sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

static void open_with(enum NC_checksum_kind kind, unsigned flags)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .member_size = 256 << 10, .checksum = kind,
				      .flags = NO_THREAD_TO_FORK | flags);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
}

static void open_summing(enum NC_checksum_kind kind)
{
	open_with(kind, 0);
}

static void check_values(size_t id, uint64_t seed, size_t size, enum NC_checksum_kind kept)
{
	unsigned char *data = must_alloc(size);
	uint64_t state = 81;

	pattern_fill(data, seed, 0, size);
	for (unsigned i = 0; i < scaled(60); i++) {
		size_t offset = i ? random_next(&state) % (size + 1) : 0;
		size_t length = i ? random_next(&state) % (size - offset + 1) : size;
		uint32_t inet = inet_of(data + offset, length), crc = crc_of(data + offset, length);

		ck_assert_uint_eq(must_sum(id, NC_CHECKSUM_INET, offset, length), inet);
		ck_assert_uint_eq(must_sum(id, NC_CHECKSUM_CRC32C, offset, length), crc);
		ck_assert_uint_eq(must_sum(id, NC_CHECKSUM_DEFAULT, offset, length),
				  kept == NC_CHECKSUM_CRC32C ? crc : inet);
	}
	free(data);
}

START_TEST(test_checksum)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.checksum = (enum NC_checksum_kind)3);
	static const size_t sizes[] = {1, 1000, 5001, 100000};

	NULL_FAILS(NC_cache_open(&options), EINVAL);
	for (unsigned kind = NC_CHECKSUM_DEFAULT; kind <= NC_CHECKSUM_CRC32C; kind++) {
		open_summing(kind);
		for (unsigned i = 0; i < 4; i++)
			check_values(insert(i, sizes[i]), i, sizes[i], kind);
		close_cache();
	}
}
END_TEST

/* Every way to write, also over bytes that were written before. */
START_TEST(test_unsummed)
{
	const enum NC_kind kinds[] = {NC_KIND_AUTO, NC_KIND_RECYCLED, NC_KIND_APPENDED,
				      NC_KIND_SEALED};
	const size_t size = 20000;
	NC_handle handle;
	char *data = must_alloc(size);

	pattern_fill(data, 7, 0, size);
	open_summing(NC_CHECKSUM_DEFAULT);
	for (unsigned i = 0; i < 4; i++) {
		size_t length, id;

		ck_assert_int_eq(
			NC_unit_alloc(cache, &handle, size, 1000, kinds[i], NC_UNIT_UNSUMMED), 0);
		ck_assert_int_eq(NC_printf(&handle, 0, "%0500d", 5), 500);
		ck_assert_int_eq(NC_write(&handle, data, size, 0), size);
		ck_assert_int_eq(NC_write(&handle, data + 10, 20, 10), 20);
		memcpy(NC_fragment(&handle, 3, &length), data + 3000, 1000);
		ck_assert_int_eq(NC_insert(&handle), 0);
		id = NC_cache_id(&handle);
		check_values(id, 7, size, NC_CHECKSUM_INET);
		FAILS(NC_verify(cache, id), ENODATA);
		ck_assert_int_eq(NC_free(&handle), 0);
	}
	FAILS(NC_unit_alloc(cache, &handle, size, 0, (enum NC_kind)(0x200), 0), EINVAL);
	FAILS(NC_unit_alloc(cache, &handle, size, 0, (enum NC_kind)(NC_KIND_KERNEL + 1),
			    NC_UNIT_UNSUMMED),
	      EINVAL);
	close_cache();
	free(data);
}
END_TEST

/* The header of the example in the manual. */
START_TEST(test_checksum_of_a_header)
{
	static const unsigned char header[20] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40,
						 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
						 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
	NC_handle handle;

	open_cache(MIB);
	ck_assert_int_eq(NC_alloc(&handle, sizeof(header), 0), 0);
	ck_assert_int_eq(NC_write(&handle, header, sizeof(header), 0), sizeof(header));
	ck_assert_int_eq(NC_insert(&handle), 0);
	/*
	 * With its checksum field, a header sums to zero; the parts before and after the field sum
	 * to the field.
	 */
	ck_assert_uint_eq(must_sum(NC_cache_id(&handle), NC_CHECKSUM_INET, 0, 20), 0xffff);
	ck_assert_uint_eq((must_sum(NC_cache_id(&handle), NC_CHECKSUM_INET, 0, 10) +
			   must_sum(NC_cache_id(&handle), NC_CHECKSUM_INET, 12, 8)) %
				  0xffff,
			  (uint16_t)~0xb861);
	ck_assert_int_eq(NC_free(&handle), 0);
	close_cache();
}
END_TEST

START_TEST(test_checksum_refused)
{
	uint32_t value = 77;
	size_t id;

	setenv("NABC_CACHE", "/nonexistent/socket", 1);
	FAILS(NC_checksum(NULL, 1, &value, NC_CHECKSUM_INET, 0, 0), ENOENT);
	FAILS(NC_verify(NULL, 1), ENOENT);
	open_cache(MIB);
	id = insert(1, 1000);
	FAILS(NC_checksum(NULL, id, NULL, NC_CHECKSUM_INET, 1000, 0), EINVAL);
	FAILS(NC_checksum(NULL, id, &value, (enum NC_checksum_kind)3, 1000, 0), EINVAL);
	FAILS(NC_checksum(NULL, id, &value, (enum NC_checksum_kind) - 1, 1000, 0), EINVAL);
	FAILS(NC_checksum(NULL, id, &value, NC_CHECKSUM_INET, 1001, 0), ERANGE);
	FAILS(NC_checksum(NULL, id, &value, NC_CHECKSUM_INET, 0, 1001), ERANGE);
	FAILS(NC_checksum(NULL, id, &value, NC_CHECKSUM_INET, SIZE_MAX, 1000), ERANGE);
	FAILS(NC_checksum(NULL, id, &value, NC_CHECKSUM_INET, 1000, SIZE_MAX), ERANGE);
	FAILS(NC_checksum(NULL, 0, &value, NC_CHECKSUM_INET, 0, 0), ENOENT);
	FAILS(NC_checksum(NULL, id + 1, &value, NC_CHECKSUM_INET, 0, 0), ENOENT);
	FAILS(NC_checksum(NULL, nc_id(5, 0, 1), &value, NC_CHECKSUM_INET, 0, 0), ENOENT);
	FAILS(NC_verify(NULL, 0), ENOENT);
	FAILS(NC_verify(NULL, id + 1), ENOENT);
	ck_assert_uint_eq(value, 77);
	ck_assert_int_eq(NC_checksum(NULL, id, &value, NC_CHECKSUM_INET, 0, 1000), 0);
	ck_assert_uint_eq(value, 0);
	/* None of these calls left a hold behind. */
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	FAILS(NC_checksum(NULL, id, &value, NC_CHECKSUM_INET, 1000, 0), ENOENT);
	FAILS(NC_verify(NULL, id), ENOENT);
	FAILS(release_id(NULL, id), EINVAL);
	close_cache();
}
END_TEST

/* NC_verify() detects any byte that changes after the sums were computed. */
START_TEST(test_verify)
{
	for (unsigned i = 0; i < 4; i++) {
		unsigned kind = i % 2 ? NC_CHECKSUM_INET : NC_CHECKSUM_CRC32C;
		unsigned char *bytes;
		NC_handle handle;
		size_t id, length;

		open_with((enum NC_checksum_kind)kind, i / 2 ? NC_CACHE_EAGER_SUMS : 0);
		ck_assert_int_eq(NC_unit_alloc(NULL, &handle, 10000, 1000, NC_KIND_RECYCLED, 0), 0);
		bytes = NC_fragment(&handle, 9, &length);
		ck_assert_ptr_nonnull(bytes);
		ck_assert_uint_eq(length, 1000);
		memset(bytes, 'x', length);
		ck_assert_int_eq(NC_printf(&handle, 0, "%s", "text"), 4);
		ck_assert_int_eq(NC_insert(&handle), 0);
		id = NC_cache_id(&handle);
		ck_assert_int_eq(NC_verify(cache, id), 0);
		for (size_t b = 0; b < length; b += 111) {
			bytes[b] ^= 0x20;
			FAILS(NC_verify(cache, id), EBADMSG);
			bytes[b] ^= 0x20;
			ck_assert_int_eq(NC_verify(NULL, id), 0);
		}
		ck_assert_int_eq(NC_free(&handle), 0);
		close_cache();
	}
}
END_TEST

/* The first call computes the sums, of the bytes as they are then; with the flag insert did. */
START_TEST(test_first_needed)
{
	for (unsigned i = 0; i < 4; i++) {
		bool eager = i / 2, sum_first = i % 2;
		unsigned char *bytes;
		NC_handle handle;
		size_t id;

		open_with(NC_CHECKSUM_INET, eager ? NC_CACHE_EAGER_SUMS : 0);
		ck_assert_int_eq(NC_unit_alloc(NULL, &handle, 60000, 0, NC_KIND_RECYCLED, 0), 0);
		bytes = NC_fragment(&handle, 0, NULL);
		ck_assert_ptr_nonnull(bytes);
		ck_assert_int_eq(NC_insert(&handle), 0);
		id = NC_cache_id(&handle);
		bytes[7] = 1;
		if (sum_first)
			ck_assert_uint_eq(must_sum(id, NC_CHECKSUM_INET, 0, 60000), !eager);
		if (eager)
			FAILS(NC_verify(NULL, id), EBADMSG);
		else if (!sum_first)
			ck_assert_int_eq(NC_verify(NULL, id), 0);
		bytes[7] = 0;
		if (eager)
			ck_assert_int_eq(NC_verify(NULL, id), 0);
		else
			FAILS(NC_verify(NULL, id), EBADMSG);
		/* The kept sums count, not the bytes. */
		ck_assert_uint_eq(must_sum(id, NC_CHECKSUM_INET, 0, 60000), !eager);
		ck_assert_int_eq(NC_free(&handle), 0);
		close_cache();
	}
}
END_TEST

/* --- another process's unit ------------------------------------------------ */

static int report_fd;

static int insert_in_child(void)
{
	unsigned char data[9000];
	NC_handle handle;
	uint32_t value;
	size_t id;

	pattern_fill(data, 6, 0, sizeof(data));
	if (NC_alloc(&handle, sizeof(data), 700) < 0 ||
	    NC_write(&handle, data, sizeof(data), 0) < 0 || NC_insert(&handle) < 0)
		return 1;
	id = NC_cache_id(&handle);
	/* For its own use, it keeps sums. */
	if (NC_verify(NULL, id) < 0 ||
	    NC_checksum(NULL, id, &value, NC_CHECKSUM_DEFAULT, 8000, 1) < 0 ||
	    value != inet_of(data + 1, 8000))
		return 1;
	return write(report_fd, &id, sizeof(id)) != sizeof(id) || read(report_fd, &id, 1) != 0;
}

/* A child that attaches and runs a function, until that reports a number. */
static pid_t start_child(int (*run)(void), char directory[64], int *from, size_t *report)
{
	char path[100];
	int ends[2];
	pid_t pid;

	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	ck_assert_int_eq(NC_cache_serve(cache, path, NULL), 0);
	setenv("NABC_CACHE", path, 1);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork_alone();
	if (pid == 0) {
		close(ends[0]);
		report_fd = ends[1];
		_exit(run());
	}
	ck_assert_int_gt(pid, 0);
	close(ends[1]);
	dispatch_until(ends[0]);
	read_exactly(ends[0], report, sizeof(*report));
	*from = ends[0];
	return pid;
}

static void check_end(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	unsetenv("NABC_CACHE");
}

START_TEST(test_member)
{
	char directory[64];
	size_t id;
	pid_t pid;
	int from;

	open_summing(NC_CHECKSUM_CRC32C);
	pid = start_child(insert_in_child, directory, &from, &id);
	check_values(id, 6, 9000, NC_CHECKSUM_CRC32C);
	FAILS(NC_verify(cache, id), ENODATA);
	close(from);
	check_end(pid);
	close_cache();
	rmdir(directory);
}
END_TEST

/* Reports the errno of the first verification of a unit that changed after insert. */
static int change_in_child(void)
{
	struct NC_attach_options options = NC_ATTACH_OPTIONS_INIT();
	NC_cache *member = NC_cache_attach(getenv("NABC_CACHE"), &options);
	unsigned char *bytes;
	NC_handle handle;
	size_t report;

	if (!member || NC_unit_alloc(member, &handle, 30000, 0, NC_KIND_RECYCLED, 0) < 0)
		return 1;
	bytes = NC_fragment(&handle, 0, NULL);
	if (!bytes || NC_insert(&handle) < 0)
		return 2;
	*bytes = 'x';
	report = NC_verify(member, NC_cache_id(&handle)) < 0 ? (size_t)errno : 0;
	return write(report_fd, &report, sizeof(report)) != sizeof(report) ||
	       read(report_fd, &report, 1) != 0;
}

/* Members compute sums as the owner of the cache does. */
START_TEST(test_member_eager)
{
	for (unsigned eager = 0; eager < 2; eager++) {
		char directory[64];
		size_t report;
		pid_t pid;
		int from;

		open_with(NC_CHECKSUM_INET, eager ? NC_CACHE_EAGER_SUMS : 0);
		pid = start_child(change_in_child, directory, &from, &report);
		ck_assert_uint_eq(report, eager ? EBADMSG : 0);
		close(from);
		check_end(pid);
		close_cache();
		rmdir(directory);
	}
}
END_TEST

static int insert_without_owner(void)
{
	size_t length = 0;
	NC_handle handle;

	if (NC_unit_alloc(NULL, &handle, 9000, 0, NC_KIND_SEALED, 0) < 0 ||
	    NC_printf(&handle, 0, "text") != 4 || write(report_fd, &length, sizeof(length)) < 0 ||
	    read(report_fd, &length, 1) != 0)
		return 1;
	/* Frozen, and no process takes it: it can be freed or inserted, not filled. */
	if (NC_insert(&handle) == 0 || NC_write(&handle, "x", 1, 0) != -1 || errno != EALREADY ||
	    NC_read(0, &handle, 0, 1) != -1 || errno != EALREADY ||
	    NC_printf(&handle, 0, "x") != -1 || errno != EALREADY ||
	    NC_fragment(&handle, 0, &length) || errno != EALREADY || NC_insert(&handle) == 0 ||
	    NC_cache_id(&handle) != 0)
		return 2;
	return NC_free(&handle);
}

START_TEST(test_insert_that_failed)
{
	char directory[64];
	size_t report;
	pid_t pid;
	int from;

	open_summing(NC_CHECKSUM_INET);
	pid = start_child(insert_without_owner, directory, &from, &report);
	close_cache();
	close(from);
	check_end(pid);
	rmdir(directory);
}
END_TEST

/* --- pointers and streams -------------------------------------------------- */

START_TEST(test_fragment)
{
	size_t length = 77, size = 10000;
	NC_handle handle = {{0}};
	unsigned char *bytes;

	open_cache(MIB);
	NULL_FAILS(NC_fragment(NULL, 0, &length), EINVAL);
	NULL_FAILS(NC_fragment(&handle, 0, &length), EINVAL);
	ck_assert_int_eq(NC_alloc(&handle, size, 1448), 0);
	NULL_FAILS(NC_fragment(&handle, 7, &length), ERANGE);
	NULL_FAILS(NC_fragment(&handle, SIZE_MAX, &length), ERANGE);
	ck_assert_uint_eq(length, 77);
	ck_assert_ptr_nonnull(NC_fragment(&handle, 6, NULL));
	for (size_t i = 7, at; i--;) {
		at = i * 1448;
		bytes = NC_fragment(&handle, i, &length);
		ck_assert_ptr_nonnull(bytes);
		ck_assert_uint_eq((uintptr_t)bytes % 64, 0);
		ck_assert_uint_eq(length, i == 6 ? size - at : 1448);
		pattern_fill(bytes, 4, at, length);
	}
	ck_assert_int_eq(NC_insert(&handle), 0);
	NULL_FAILS(NC_fragment(&handle, 0, &length), EALREADY);
	check_values(NC_cache_id(&handle), 4, size, NC_CHECKSUM_INET);
	ck_assert_int_eq(NC_verify(cache, NC_cache_id(&handle)), 0);
	ck_assert_int_eq(NC_free(&handle), 0);
	close_cache();
}
END_TEST

START_TEST(test_stream)
{
	NC_handle handle = {{0}};
	FILE *file;

	open_cache(MIB);
	NULL_FAILS(NC_stream(NULL, "w"), EINVAL);
	NULL_FAILS(NC_stream(&handle, "w"), EINVAL);
	ck_assert_int_eq(NC_alloc(&handle, 6, 0), 0);
	NULL_FAILS(NC_stream(&handle, NULL), EINVAL);
	NULL_FAILS(NC_stream(&handle, "z"), EINVAL);
	file = NC_stream(&handle, "w");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fprintf(file, "%d", 123456), 6);
	/* Closing writes the buffered data, and inserts nothing. */
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_uint_eq(NC_cache_id(&handle), 0);
	ck_assert_int_eq(NC_insert(&handle), 0);
	NULL_FAILS(NC_stream(&handle, "w"), EALREADY);
	ck_assert_uint_eq(must_sum(NC_cache_id(&handle), NC_CHECKSUM_INET, 0, 6),
			  inet_of((const unsigned char *)"123456", 6));
	ck_assert_int_eq(NC_free(&handle), 0);
	close_cache();
}
END_TEST

/* --- invalid arguments ----------------------------------------------------- */

/* Every call after the unit was inserted: refused, and the id stays. */
START_TEST(test_inserted)
{
	NC_handle handle;
	char byte = 0;
	size_t id;

	open_cache(MIB);
	ck_assert_int_eq(NC_alloc(&handle, 100, 0), 0);
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	FAILS(NC_read(0, &handle, 0, 0), EALREADY);
	FAILS(NC_write(&handle, &byte, 1, 0), EALREADY);
	FAILS(NC_printf(&handle, 0, "x"), EALREADY);
	NULL_FAILS(NC_fragment(&handle, 0, NULL), EALREADY);
	NULL_FAILS(NC_stream(&handle, "r"), EALREADY);
	FAILS(NC_insert(&handle), EALREADY);
	ck_assert_uint_eq(NC_cache_id(&handle), id);
	ck_assert_int_eq(NC_verify(cache, id), 0);
	ck_assert_int_eq(NC_free(&handle), 0);
	ck_assert_int_eq(NC_verify(cache, id), 0);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_checksum);
	tcase_add_test(tcase, test_unsummed);
	tcase_add_test(tcase, test_checksum_of_a_header);
	tcase_add_test(tcase, test_checksum_refused);
	tcase_add_test(tcase, test_verify);
	tcase_add_test(tcase, test_first_needed);
	tcase_add_test(tcase, test_member);
	tcase_add_test(tcase, test_member_eager);
	tcase_add_test(tcase, test_insert_that_failed);
	tcase_add_test(tcase, test_fragment);
	tcase_add_test(tcase, test_stream);
	tcase_add_test(tcase, test_inserted);
}

RUN_SUITE("nabc-sums", fill)
