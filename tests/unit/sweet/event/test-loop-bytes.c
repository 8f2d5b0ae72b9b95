/* SPDX-License-Identifier: MIT */
/*
 * test-loop-bytes.c - unit tests of the bytes of a message: header, units, tail, a file, or pieces
 * of memory; from every offset.  Single-threaded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <nabc.h>

#include "event/loop.h"
#include "event/piece.h"

#include "suite.h"

#define UNIT 5000u

static struct loop_send op;
static char wanted[3 * UNIT];
static size_t length;

static void want(const void *bytes, size_t count)
{
	memcpy(wanted + length, bytes, count);
	length += count;
}

static void check(void)
{
	char *copy = must_alloc(length);

	ck_assert_uint_eq(loop_send_length(&op), length);
	for (size_t at = 0; at < length; at++) {
		size_t run;
		const char *data = loop_send_run(&op, at, &run);

		if (data) {
			ck_assert_uint_gt(run, 0);
			ck_assert_uint_le(run, length - at);
			expect(memcmp(data, wanted + at, run) == 0);
		} else {
			ck_assert_uint_gt(op.file.length, 0);
			ck_assert_uint_ge(at, op.message.header_length);
		}
		if (at % 97 == 0) {
			ck_assert_int_eq(loop_send_copy(&op, at, copy, length - at),
					 (ssize_t)(length - at));
			expect(memcmp(copy, wanted + at, length - at) == 0);
		}
	}
	free(copy);
}

START_TEST(test_units)
{
	static char bytes[UNIT];
	static const struct NC_text texts[] = {
		{"first", 5, 0}, {"between", 7, 1}, {NULL, 0, 1}, {"tail", 4, 2}};
	struct NC_range ranges[2];
	struct NC_hold hold;
	NC_handle handle;

	pattern_fill(bytes, 1, 0, UNIT);
	ck_assert_int_eq(NC_unit_alloc(NULL, &handle, UNIT, 0, NC_KIND_SEALED, 0), 0);
	ck_assert_int_eq(NC_write(&handle, bytes, UNIT, 0), UNIT);
	ck_assert_int_eq(NC_insert(&handle), 0);
	ck_assert_int_eq(NC_hold(NULL, NC_cache_id(&handle), &hold), 0);
	ranges[0] = (struct NC_range){.id = NC_cache_id(&handle), .offset = 10, .length = 20};
	ranges[1] = (struct NC_range){.id = NC_cache_id(&handle), .offset = 0, .length = UNIT};
	op = (struct loop_send){0};
	op.message =
		(struct NC_send)NC_SEND_INIT(.header = "header", .header_length = 6,
					     .ranges = ranges, .range_count = 2, .holds = &hold,
					     .hold_count = 1, .texts = texts, .text_count = 4);
	length = 0;
	want("header", 6);
	want("first", 5);
	want(bytes + 10, 20);
	want("between", 7);
	want(bytes, UNIT);
	want("tail", 4);
	check();
	ck_assert_int_eq(NC_release(&hold), 0);
	ck_assert_int_eq(NC_free(&handle), 0);
}
END_TEST

START_TEST(test_file)
{
	static char bytes[UNIT];
	char name[] = "/tmp/test-loop-bytes-XXXXXX";
	int fd = mkstemp(name);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(unlink(name), 0);
	pattern_fill(bytes, 2, 0, UNIT);
	ck_assert_int_eq(write(fd, bytes, UNIT), UNIT);
	op = (struct loop_send){.file = {.fd = fd, .offset = 100, .length = UNIT - 100}};
	op.message = (struct NC_send)NC_SEND_INIT(.header = "header", .header_length = 6);
	length = 0;
	want("header", 6);
	want(bytes + 100, UNIT - 100);
	check();
	/* It becomes shorter. */
	ck_assert_int_eq(ftruncate(fd, 200), 0);
	ck_assert_int_eq(loop_send_copy(&op, 6, bytes, UNIT - 100), 100);
	ck_assert_int_eq(loop_send_copy(&op, 6 + 100, bytes, 1), -1);
	ck_assert_int_eq(errno, ERANGE);
	close(fd);
}
END_TEST

START_TEST(test_pieces)
{
	char one[] = "one", three[] = "three";
	const struct iovec pieces[] = {{one, 3}, {one, 0}, {three, 5}, {three + 1, 2}};

	op = (struct loop_send){.pieces = pieces, .piece_count = 4};
	op.message = (struct NC_send)NC_SEND_INIT();
	length = 0;
	want("onethreehr", 10);
	check();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_units);
	tcase_add_test(tcase, test_file);
	tcase_add_test(tcase, test_pieces);
}

RUN_SUITE("loop-bytes", fill)
