/* SPDX-License-Identifier: MIT */
/*
 * test-pipe-reader.c - unit tests of pipe-reader.c: responses divided at any byte,
 * many at a time, and invalid bytes.  Single-threaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "wire/pipe-reader.h"
#include "wire/wire.h"

#include "suite.h"

#define LIMIT ((size_t)300000)

static int ends[2];
static struct nc_pipe_reader *reader;

static void open_window(void)
{
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	ck_assert_int_gt(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20), 0);
	reader = nc_pipe_reader_open(ends[0], LIMIT);
	ck_assert_ptr_nonnull(reader);
}

static void close_window(void)
{
	nc_pipe_reader_close(reader);
	close(ends[1]);
}

/* Writes a response with that tag, `count` ranges, and header lines; returns its length. */
static size_t build(char *to, uint64_t tag, const size_t *lengths, unsigned count, size_t headers)
{
	struct nc_wire_response wire = {
		.tag = tag, .status = 200, .ranges = count, .headers_length = (uint32_t)headers};
	char *at = to;
	size_t body = 0;

	memcpy(at, &wire, sizeof(wire));
	at += sizeof(wire);
	for (unsigned i = 0; i < count; i++) {
		struct NC_range range = {.id = 1, .offset = 77, .length = lengths[i]};

		memcpy(at, &range, sizeof(range));
		at += sizeof(range);
		body += lengths[i];
	}
	pattern_fill(at, tag + 1, 0, headers);
	pattern_fill(at + headers, tag, 0, body);
	return (size_t)(at - to) + headers + body;
}

static int take(uint64_t tag, size_t body, size_t headers)
{
	struct nc_wire_response wire;
	const char *record;
	size_t length;
	char *data;
	int result = nc_pipe_reader_take(reader, &record, &wire, &data, &length);

	if (result != 1)
		return result;
	ck_assert_uint_eq(wire.tag, tag);
	ck_assert_uint_eq(length, body);
	ck_assert_uint_eq(wire.headers_length, headers);
	ck_assert_uint_eq(pattern_match(nc_wire_headers(record, &wire), tag + 1, 0, headers),
			  headers);
	ck_assert_int_eq(!data, !body);
	if (data)
		ck_assert_uint_eq(pattern_match(data, tag, 0, body), body);
	free(data);
	return 1;
}

static void put(const char *bytes, size_t length)
{
	ck_assert_int_eq(write(ends[1], bytes, length), (ssize_t)length);
}

START_TEST(test_cuts)
{
	static const size_t lengths[] = {5, 0, 30};
	char bytes[400];
	size_t length = build(bytes, 1, lengths, 3, 17);

	length += build(bytes + length, 2, NULL, 0, 0);
	length += build(bytes + length, 3, lengths, 1, 9);
	for (size_t first = 0; first <= length; first++) {
		for (size_t second = first; second <= length; second += 7) {
			unsigned taken = 0;

			open_window();
			for (unsigned part = 0; part < 3; part++) {
				size_t from = part == 0 ? 0 : part == 1 ? first : second;
				size_t to = part == 0 ? first : part == 1 ? second : length;

				put(bytes + from, to - from);
				/* Twice: a pipe that was empty is read again. */
				for (unsigned i = 0; i < 2; i++)
					while (taken < 3 && take(taken + 1,
								 taken == 0   ? 35
								 : taken == 1 ? 0
									      : 5,
								 taken == 0   ? 17
								 : taken == 1 ? 0
									      : 9) == 1)
						taken++;
			}
			ck_assert_uint_eq(taken, 3);
			ck_assert_int_eq(take(0, 0, 0), 0);
			ck_assert(!nc_pipe_reader_ready(reader));
			close_window();
		}
	}
}
END_TEST

/* Bodies of all sizes, one after the other, as a reader finds them. */
START_TEST(test_sizes)
{
	char *bytes = must_alloc(2 * LIMIT);
	uint64_t state = 3;

	open_window();
	for (unsigned i = 0; i < scaled(300); i++) {
		size_t lengths[NC_WIRE_RANGES_MAX], body = 0, length, put_so_far = 0;
		unsigned count = random_next(&state) % (NC_WIRE_RANGES_MAX + 1);
		size_t headers = random_next(&state) % (NC_WIRE_BLOCK_MAX + 1);
		int got = 0;

		for (unsigned j = 0; j < count; j++) {
			lengths[j] = random_next(&state) % (LIMIT / NC_WIRE_RANGES_MAX);
			body += lengths[j];
		}
		length = build(bytes, i, lengths, count, headers);
		while (got == 0) {
			size_t more = random_next(&state) % 70000;

			if (more > length - put_so_far)
				more = length - put_so_far;
			put(bytes + put_so_far, more);
			put_so_far += more;
			got = take(i, body, headers);
			ck_assert(got == 1 || !nc_pipe_reader_ready(reader));
		}
		ck_assert_int_eq(got, 1);
		ck_assert_uint_eq(put_so_far, length);
	}
	close_window();
	free(bytes);
}
END_TEST

/* An end of file is not a response, at any byte. */
START_TEST(test_end)
{
	static const size_t lengths[] = {100};
	char bytes[200];
	size_t length = build(bytes, 1, lengths, 1, 10);

	for (size_t cut = 0; cut < length; cut++) {
		open_window();
		put(bytes, cut);
		close(ends[1]);
		ends[1] = -1;
		for (unsigned i = 0; i < 3; i++)
			ck_assert_int_eq(take(0, 0, 0), 0);
		nc_pipe_reader_close(reader);
	}
	nc_pipe_reader_close(NULL);
}
END_TEST

START_TEST(test_limits)
{
	static const size_t most[] = {LIMIT - 1, 1}, more[] = {LIMIT, 1};
	static const size_t wraps[] = {SIZE_MAX, 2}, huge[] = {SIZE_MAX / 2};
	static const struct {
		const size_t *lengths;
		unsigned count;
	} bad[] = {{more, 2}, {wraps, 2}, {huge, 1}};
	char *bytes = must_alloc(2 * LIMIT);
	size_t length = build(bytes, 1, most, 2, 0);

	open_window();
	put(bytes, length);
	while (take(1, LIMIT, 0) == 0)
		;
	close_window();
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct nc_wire_response wire = {.status = 200, .ranges = bad[i].count};

		open_window();
		put((char *)&wire, sizeof(wire));
		for (unsigned j = 0; j < bad[i].count; j++) {
			struct NC_range range = {.id = 1, .length = bad[i].lengths[j]};

			put((char *)&range, sizeof(range));
		}
		ck_assert_int_eq(take(0, 0, 0), -EPROTO);
		close_window();
	}
	free(bytes);
}
END_TEST

/* Random input: at most the limit is accepted, and nothing is read past the end. */
START_TEST(test_random)
{
	uint64_t state = 11;

	for (unsigned i = 0; i < scaled(3000); i++) {
		struct nc_wire_response wire = {.status = 200};
		char bytes[2000];
		int result;

		open_window();
		for (unsigned j = 0; j < 5; j++) {
			size_t length = random_next(&state) % sizeof(bytes);

			for (size_t at = 0; at < length; at++)
				bytes[at] = random_next(&state) % 3 ? 0 : (char)random_next(&state);
			if (length > sizeof(wire) && random_next(&state) % 2) {
				wire.ranges = random_next(&state) % 18;
				wire.headers_length = random_next(&state) % 400;
				memcpy(bytes, &wire, sizeof(wire));
			}
			put(bytes, length);
			for (;;) {
				const char *record;
				char *data;

				result =
					nc_pipe_reader_take(reader, &record, &wire, &data, &length);
				if (result != 1)
					break;
				ck_assert_uint_le(length, LIMIT);
				memset(data ? data : bytes, 'd', data ? length : 0);
				free(data);
			}
			if (result < 0)
				break;
		}
		ck_assert(result == 0 || result == -EPROTO);
		close_window();
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_cuts);
	tcase_add_test(tcase, test_sizes);
	tcase_add_test(tcase, test_end);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_random);
}

RUN_SUITE("pipe-reader", fill)
