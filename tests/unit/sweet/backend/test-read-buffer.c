/* SPDX-License-Identifier: MIT */
/*
 * test-read-buffer.c - unit tests of read-buffer.c: data of a descriptor becomes a
 * unit without a valid id, its runs become ranges, and all is released.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc.h>

#include "backend/read-buffer.h"
#include "base/slice.h"

#include "suite.h"
#include "unit-holds.h"

static NC_cache *cache;
static int ends[2]; /* to read from, to write to */

static void begin(void)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 8 << 20);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	set_nonblocking(ends[0]);
}

/* No unit must be left. */
static void end(void)
{
	struct NC_cache_stat stat;

	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.units, 0);
	ck_assert_int_eq(NC_cache_close(cache), 0);
	close_pair(ends);
}

static void say(const char *bytes, size_t length)
{
	ck_assert_int_eq(write(ends[1], bytes, length), (ssize_t)length);
}

static struct read_buffer *must_read(void)
{
	int error = 1;
	struct read_buffer *buffer = read_buffer_read(ends[0], 0, &error);

	ck_assert_ptr_nonnull(buffer);
	ck_assert_int_eq(error, 0);
	return buffer;
}

START_TEST(test_read)
{
	struct read_buffer *buffer;
	struct NC_stat stat;
	int error = 1;

	begin();
	ck_assert_ptr_null(read_buffer_read(ends[0], 0, &error));
	ck_assert_int_eq(error, -EAGAIN);
	say("some bytes", 10);
	buffer = must_read();
	ck_assert_uint_eq(buffer->length, 10);
	ck_assert_mem_eq(buffer->data, "some bytes", 10);
	ck_assert_uint_eq(buffer->range_count, 0);
	ck_assert_uint_eq(read_buffer_bytes(buffer), 0);
	/* It has been destroyed: only the hold keeps it. */
	ck_assert_int_eq(hold_id(NULL, buffer->id), -1);
	ck_assert_int_eq(NC_stat(NULL, buffer->id, &stat, sizeof(stat)), -1);
	read_buffer_free(buffer);

	close(ends[1]);
	ck_assert_ptr_null(read_buffer_read(ends[0], 0, &error));
	ck_assert_int_eq(error, 0);
	ck_assert_ptr_null(read_buffer_read(-1, 0, &error));
	ck_assert_int_eq(error, -EBADF);
	ends[1] = -1;
	end();
}
END_TEST

/* One read fills at most one buffer; the next read gets the rest. */
START_TEST(test_much)
{
	size_t length = READ_BUFFER_MAX + 1000, at = 0;
	char *bytes = must_alloc(length);
	int pair[2];

	begin();
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
	pattern_fill(bytes, 9, 0, length);
	ck_assert_int_eq(write(pair[0], bytes, length), (ssize_t)length);
	while (at < length) {
		struct read_buffer *buffer;
		int error;

		await(pair[1], POLLIN);
		buffer = read_buffer_read(pair[1], 0, &error);
		ck_assert_ptr_nonnull(buffer);
		ck_assert_uint_le(buffer->length, READ_BUFFER_MAX);
		ck_assert_uint_eq(pattern_match(buffer->data, 9, at, buffer->length),
				  buffer->length);
		at += buffer->length;
		read_buffer_free(buffer);
	}
	ck_assert_uint_eq(at, length);
	close_pair(pair);
	free(bytes);
	end();
}
END_TEST

/* Where little is expected, more may come nevertheless, which the next read gets; or nothing. */
START_TEST(test_little)
{
	char bytes[READ_BUFFER_MIN + 5];
	struct read_buffer *buffer;
	struct NC_stat stat;
	int error = 1;

	begin();
	ck_assert_ptr_null(read_buffer_read(ends[0], 1, &error));
	ck_assert_int_eq(error, -EAGAIN);
	pattern_fill(bytes, 3, 0, sizeof(bytes));
	say(bytes, sizeof(bytes));
	buffer = read_buffer_read(ends[0], READ_BUFFER_MIN, &error);
	ck_assert_ptr_nonnull(buffer);
	ck_assert_uint_eq(buffer->length, READ_BUFFER_MIN);
	ck_assert_mem_eq(buffer->data, bytes, READ_BUFFER_MIN);
	ck_assert_int_eq(hold_id(NULL, buffer->id), -1);
	ck_assert_int_eq(NC_stat(NULL, buffer->id, &stat, sizeof(stat)), -1);
	read_buffer_free(buffer);
	buffer = read_buffer_read(ends[0], READ_BUFFER_MAX, &error);
	ck_assert_ptr_nonnull(buffer);
	ck_assert_uint_eq(buffer->length, 5);
	ck_assert_mem_eq(buffer->data, bytes + READ_BUFFER_MIN, 5);
	read_buffer_free(buffer);
	close(ends[1]);
	ck_assert_ptr_null(read_buffer_read(ends[0], 5, &error));
	ck_assert_int_eq(error, 0);
	ck_assert_ptr_null(read_buffer_read(-1, 5, &error));
	ck_assert_int_eq(error, -EBADF);
	ends[1] = -1;
	end();
}
END_TEST

/* Where much is expected and less comes, the unit takes the memory of that: all fit into the cache. */
START_TEST(test_less)
{
	enum { COUNT = 100, EXPECTED = 100000 };
	struct read_buffer *buffers[COUNT];
	char bytes[5000];

	begin();
	pattern_fill(bytes, 4, 0, sizeof(bytes));
	for (unsigned i = 0; i < COUNT; i++) {
		size_t length = i ? sizeof(bytes) : 1;
		int error;

		say(bytes, length);
		buffers[i] = read_buffer_read(ends[0], EXPECTED, &error);
		ck_assert_ptr_nonnull(buffers[i]);
		ck_assert_uint_eq(buffers[i]->length, length);
		ck_assert_mem_eq(buffers[i]->data, bytes, length);
	}
	for (unsigned i = 0; i < COUNT; i++)
		read_buffer_free(buffers[i]);
	end();
}
END_TEST

/* More ranges than fit into the buffer itself. */
START_TEST(test_ranges)
{
	/* One growth, and two. */
	unsigned count = (_i ? 2 : 1) * READ_BUFFER_RANGES + 1;
	struct read_buffer *buffer;

	begin();
	say("0123456789", 10);
	buffer = must_read();
	for (unsigned i = 0; i < count; i++)
		ck_assert(read_buffer_add(buffer, (struct slice){buffer->data + i % 8, 1 + i % 2}));
	ck_assert_uint_eq(buffer->range_count, count);
	for (unsigned i = 0; i < count; i++) {
		ck_assert_uint_eq(buffer->ranges[i].id, buffer->id);
		ck_assert_uint_eq(buffer->ranges[i].offset, i % 8);
		ck_assert_uint_eq(buffer->ranges[i].length, 1 + i % 2);
	}
	ck_assert_uint_eq(read_buffer_bytes(buffer), count + count / 2);
	read_buffer_free(buffer);
	end();
}
END_TEST

/* Adds a run of `length` bytes from each of `count` places that far apart, and packs the buffer. */
static struct read_buffer *packed(unsigned count, size_t length, size_t apart)
{
	struct read_buffer *buffer;
	int error;

	await(ends[0], POLLIN);
	buffer = read_buffer_read(ends[0], 0, &error);
	ck_assert_ptr_nonnull(buffer);
	ck_assert_uint_ge(buffer->length, count * apart);
	for (unsigned i = 0; i < count; i++)
		ck_assert(
			read_buffer_add(buffer, (struct slice){buffer->data + i * apart, length}));
	ck_assert(read_buffer_pack(buffer));
	return buffer;
}

/* The content of runs of one byte takes a unit of its size, and one range. */
START_TEST(test_tiny_runs)
{
	enum { COUNT = 10000, APART = 6 };
	struct read_buffer *buffer;
	char bytes[COUNT * APART], content[COUNT];

	begin();
	pattern_fill(bytes, 5, 0, sizeof(bytes));
	for (size_t i = 0; i < COUNT; i++)
		content[i] = bytes[i * APART];
	say(bytes, sizeof(bytes));
	buffer = packed(COUNT, 1, APART);
	ck_assert_uint_eq(buffer->range_count, 1);
	ck_assert_ptr_eq(buffer->ranges, buffer->few);
	ck_assert_uint_eq(buffer->ranges[0].id, buffer->id);
	ck_assert_uint_eq(buffer->ranges[0].length, COUNT);
	ck_assert_uint_eq(buffer->length, COUNT);
	ck_assert_mem_eq(buffer->data, content, COUNT);
	ck_assert_uint_eq(read_buffer_memory(buffer), COUNT);
	ck_assert_int_eq(hold_id(NULL, buffer->id), -1);
	read_buffer_free(buffer);
	end();
}
END_TEST

/* Runs of some size stay where they are; their table counts. So do a few, however small. */
START_TEST(test_other_runs)
{
	enum { COUNT = 100 };
	struct read_buffer *buffer;
	char bytes[COUNT * READ_BUFFER_RUN];

	begin();
	pattern_fill(bytes, 6, 0, sizeof(bytes));
	say(bytes, sizeof(bytes));
	buffer = packed(COUNT, READ_BUFFER_RUN, READ_BUFFER_RUN);
	ck_assert_uint_eq(buffer->range_count, COUNT);
	ck_assert_uint_eq(buffer->length, sizeof(bytes));
	ck_assert_uint_ge(read_buffer_memory(buffer),
			  sizeof(bytes) + COUNT * sizeof(struct NC_range));
	read_buffer_free(buffer);

	say(bytes, 6 * READ_BUFFER_RANGES);
	buffer = packed(READ_BUFFER_RANGES, 1, 6);
	ck_assert_uint_eq(buffer->range_count, READ_BUFFER_RANGES);
	ck_assert_uint_eq(read_buffer_memory(buffer), READ_BUFFER_MIN);
	read_buffer_free(buffer);
	end();
}
END_TEST

/* Without memory for the copy, the buffer stays as it was. */
enum { MOST = 1000 };

/* Takes all memory of the cache; returns the number of handles, which the caller frees. */
static unsigned fill_cache(NC_handle full[MOST])
{
	unsigned count = 0;

	for (size_t size = 1 << 20; size >= 64; size /= 2)
		while (count < MOST && NC_alloc(&full[count], size, 0) == 0)
			count++;
	return count;
}

/* What came stays with the system until there is memory for it. */
START_TEST(test_no_memory_to_read)
{
	static const size_t expected[] = {0, 1, 100000};
	NC_handle full[MOST];

	begin();
	for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		unsigned count = fill_cache(full);
		struct read_buffer *buffer;
		int error = 1;

		say("some bytes", 10);
		ck_assert_ptr_null(read_buffer_read(ends[0], expected[i], &error));
		ck_assert_int_eq(error, -ENOMEM);
		while (count)
			NC_free(&full[--count]);
		buffer = read_buffer_read(ends[0], expected[i], &error);
		ck_assert_ptr_nonnull(buffer);
		ck_assert_uint_eq(buffer->length, 10);
		ck_assert_mem_eq(buffer->data, "some bytes", 10);
		read_buffer_free(buffer);
	}
	end();
}
END_TEST

START_TEST(test_no_memory_to_pack)
{
	enum { COUNT = 4000 };
	struct read_buffer *buffer;
	char bytes[2 * COUNT];
	NC_handle full[MOST];
	unsigned count;

	begin();
	memset(bytes, 'x', sizeof(bytes));
	say(bytes, sizeof(bytes));
	buffer = must_read();
	for (unsigned i = 0; i < COUNT; i++)
		ck_assert(read_buffer_add(buffer, (struct slice){buffer->data + 2 * i, 1}));
	count = fill_cache(full);
	ck_assert(!read_buffer_pack(buffer));
	ck_assert_uint_eq(buffer->range_count, COUNT);
	ck_assert_uint_eq(read_buffer_bytes(buffer), COUNT);
	while (count)
		NC_free(&full[--count]);
	ck_assert(read_buffer_pack(buffer));
	ck_assert_uint_eq(buffer->range_count, 1);
	read_buffer_free(buffer);
	end();
}
END_TEST

START_TEST(test_of_unit)
{
	struct read_buffer *buffer;
	NC_handle handle;
	int error = 1;

	begin();
	ck_assert_int_eq(NC_alloc(&handle, 100, 0), 0);
	ck_assert_int_eq(NC_write(&handle, "written", 7, 0), 7);
	buffer = read_buffer_of(&handle, 7, &error);
	ck_assert_ptr_nonnull(buffer);
	ck_assert_int_eq(error, 0);
	ck_assert_uint_eq(buffer->length, 7);
	ck_assert_mem_eq(buffer->data, "written", 7);
	read_buffer_free(buffer);
	/* It cannot have more bytes than its unit. */
	ck_assert_int_eq(NC_alloc(&handle, 100, 0), 0);
	ck_assert_ptr_null(read_buffer_of(&handle, 1 << 20, &error));
	ck_assert_int_eq(error, -ENOMEM);
	end();
}
END_TEST

START_TEST(test_stored)
{
	struct read_buffer *buffer = read_buffer_stored(12345);

	ck_assert_ptr_nonnull(buffer);
	ck_assert_uint_eq(buffer->id, 0);
	ck_assert_uint_eq(buffer->offset, 12345);
	ck_assert_uint_eq(buffer->stored, 0);
	ck_assert_uint_eq(read_buffer_bytes(buffer), 0);
	read_buffer_free(buffer);
	read_buffer_free(NULL);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_read);
	tcase_add_test(tcase, test_much);
	tcase_add_test(tcase, test_little);
	tcase_add_test(tcase, test_less);
	tcase_add_loop_test(tcase, test_ranges, 0, 2);
	tcase_add_test(tcase, test_tiny_runs);
	tcase_add_test(tcase, test_other_runs);
	tcase_add_test(tcase, test_no_memory_to_read);
	tcase_add_test(tcase, test_no_memory_to_pack);
	tcase_add_test(tcase, test_of_unit);
	tcase_add_test(tcase, test_stored);
}

RUN_SUITE("read-buffer", fill)
