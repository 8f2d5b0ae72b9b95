/* SPDX-License-Identifier: MIT */
/*
 * test-stream.c - unit tests of stream.c: modes, positions, the end of the
 * unit and of the handle, and a stream against a plain buffer.  Each test
 * owns its cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "base/fragment.h"
#include "cache/index.h"
#include "membership/handle.h"
#include "store/unit.h"
#include "worker/stream.h"

#include "handle-fixture.h"
#include "suite.h"

static FILE *must_open(NC_handle *handle, const char *mode)
{
	int error;
	FILE *file = nc_stream_open(handle, mode, &error);

	ck_assert_ptr_nonnull(file);
	return file;
}

static void check_refused(NC_handle *handle, const char *mode, int expected)
{
	int error = 0;

	ck_assert_ptr_null(nc_stream_open(handle, mode, &error));
	ck_assert_int_eq(error, expected);
}

static void check_content(NC_handle *handle, const char *text, size_t length)
{
	unsigned char *got;
	size_t size = unit_of(handle)->layout.size;

	got = insert_and_copy(handle);
	ck_assert_mem_eq(got, text, length);
	for (size_t i = length; i < size; i++)
		expect(got[i] == 0);
	free(got);
}

/* What every process sees of an inserted unit. */
static void check_held(size_t id, const unsigned char *expected, size_t length)
{
	unsigned char *got = must_alloc(length);
	struct nc_view view;

	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
	ck_assert_uint_eq(view.unit->layout.size, length);
	copy_unit(view.unit, got);
	ck_assert_mem_eq(got, expected, length);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	free(got);
}

START_TEST(test_refused)
{
	static const char *const wrong[] = {"",	  "x",	 "rw", "r++",	      "w+x",
					    "+w", "abb", "rm", "w,ccs=UTF-8", "wgg"};
	static const char *const right[] = {"r",   "r+",  "w",	  "w+", "a",	"a+",
					    "rb+", "r+b", "wbe+", "wg", "a+gb", "wge"};
	NC_handle handle = {{0}};

	open_cache();
	check_refused(NULL, "w", -EINVAL);
	check_refused(&handle, "w", -EINVAL);
	must_alloc_unit(&handle, 1000, 0, NC_KIND_AUTO);
	check_refused(&handle, NULL, -EINVAL);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		check_refused(&handle, wrong[i], -EINVAL);
	for (unsigned i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		ck_assert_int_eq(fclose(must_open(&handle, right[i])), 0);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	check_refused(&handle, "w", -EALREADY);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	check_refused(&handle, "w", -EINVAL);
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_modes)
{
	NC_handle handle;
	char line[100];
	FILE *file;

	open_cache();
	soil(NC_KIND_RECYCLED, 1000);
	must_alloc_unit(&handle, 1000, 100, NC_KIND_RECYCLED);
	file = must_open(&handle, "w");
	ck_assert_int_eq(fgetc(file), EOF);
	clearerr(file);
	ck_assert_int_eq(fprintf(file, "%s %d\n", "line", 1), 7);
	ck_assert_int_eq(ftell(file), 7);
	ck_assert_int_eq(fclose(file), 0);
	/* Nothing is cut off: the unit keeps its length. */
	file = must_open(&handle, "w");
	ck_assert_int_ge(fputs("LI", file), 0);
	ck_assert_int_eq(fclose(file), 0);
	file = must_open(&handle, "a");
	ck_assert_int_eq(ftell(file), 7);
	ck_assert_int_eq(fseek(file, 0, SEEK_SET), 0);
	ck_assert_int_ge(fputs("line 2\n", file), 0);
	ck_assert_int_eq(fclose(file), 0);
	file = must_open(&handle, "r");
	ck_assert_int_eq(fputc('x', file), EOF);
	clearerr(file);
	ck_assert_str_eq(fgets(line, sizeof(line), file), "LIne 1\n");
	ck_assert_str_eq(fgets(line, sizeof(line), file), "line 2\n");
	/* The end of the filled part, not that of the unit. */
	ck_assert_ptr_null(fgets(line, sizeof(line), file));
	ck_assert(feof(file));
	ck_assert_int_eq(fclose(file), 0);
	file = must_open(&handle, "a+");
	ck_assert_str_eq(fgets(line, sizeof(line), file), "LIne 1\n");
	ck_assert_int_eq(fseek(file, 0, SEEK_CUR), 0);
	ck_assert_int_ge(fputs("line 3\n", file), 0);
	ck_assert_int_eq(ftell(file), 21);
	ck_assert_int_eq(fclose(file), 0);
	file = must_open(&handle, "r+");
	ck_assert_int_eq(fseek(file, -2, SEEK_END), 0);
	ck_assert_int_eq(fgetc(file), '3');
	ck_assert_int_eq(fseek(file, -1, SEEK_CUR), 0);
	ck_assert_int_eq(fputc('4', file), '4');
	ck_assert_int_eq(fclose(file), 0);
	check_content(&handle, "LIne 1\nline 2\nline 4\n", 21);
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_positions)
{
	NC_handle handle;
	FILE *file;

	open_cache();
	soil(NC_KIND_RECYCLED, 1000);
	must_alloc_unit(&handle, 1000, 0, NC_KIND_RECYCLED);
	file = must_open(&handle, "w+");
	ck_assert_int_eq(fseek(file, -1, SEEK_SET), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(fseek(file, 1001, SEEK_SET), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(fseeko(file, INT64_MAX, SEEK_END), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(fseek(file, 1, SEEK_END), 0);
	ck_assert_int_eq(ftell(file), 1);
	ck_assert_int_eq(fseeko(file, INT64_MAX, SEEK_CUR), -1);
	/* Skipped bytes are zero. */
	ck_assert_int_eq(fseek(file, 5, SEEK_SET), 0);
	ck_assert_int_eq(fputc('x', file), 'x');
	ck_assert_int_eq(fseek(file, 1000, SEEK_SET), 0);
	ck_assert_int_eq(fgetc(file), EOF);
	rewind(file);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(fgetc(file), 0);
	ck_assert_int_eq(fgetc(file), 'x');
	ck_assert_int_eq(fgetc(file), EOF);
	ck_assert_int_eq(fclose(file), 0);
	check_content(&handle, "\0\0\0\0\0x", 6);
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_full)
{
	NC_handle handle;
	char data[200];
	FILE *file;

	open_cache();
	memset(data, 'd', sizeof(data));
	must_alloc_unit(&handle, 100, 0, NC_KIND_RECYCLED);
	file = must_open(&handle, "w");
	ck_assert_uint_eq(fwrite(data, 1, 100, file), 100);
	ck_assert_int_eq(fflush(file), 0);
	/* The first byte beyond the end is reported when it leaves the buffer. */
	ck_assert_int_eq(fputc('x', file), 'x');
	errno = 0;
	ck_assert_int_eq(fflush(file), EOF);
	ck_assert_int_eq(errno, ENOSPC);
	ck_assert(ferror(file));
	(void)fclose(file);
	/* The part that fits is written. */
	file = must_open(&handle, "w");
	setvbuf(file, NULL, _IONBF, 0);
	ck_assert_int_eq(fseek(file, 90, SEEK_SET), 0);
	memset(data, 'e', sizeof(data));
	errno = 0;
	ck_assert_uint_eq(fwrite(data, 1, 11, file), 10);
	ck_assert_int_eq(errno, ENOSPC);
	ck_assert_int_eq(fclose(file), 0);
	file = must_open(&handle, "a");
	ck_assert_int_eq(fputc('x', file), 'x');
	errno = 0;
	ck_assert_int_eq(fclose(file), EOF);
	ck_assert_int_eq(errno, ENOSPC);
	memset(data, 'd', 90);
	check_content(&handle, data, 100);
	nc_index_fini(&cache);
}
END_TEST

/* A stream that outlives the filling of its unit. */
START_TEST(test_handle_ends)
{
	NC_handle handle;
	FILE *file, *reader;

	open_cache();
	for (unsigned freed = 0; freed < 2; freed++) {
		int expected = freed ? EINVAL : EALREADY;

		must_alloc_unit(&handle, 100, 0, NC_KIND_RECYCLED);
		ck_assert_int_eq(nc_handle_write(&handle, 0, "abc", 3), 3);
		file = must_open(&handle, "w");
		reader = must_open(&handle, "r");
		ck_assert_int_ge(fputs("never seen", file), 0);
		if (freed)
			ck_assert_int_eq(nc_handle_free(&handle), 0);
		else
			ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
		errno = 0;
		ck_assert_int_eq(fflush(file), EOF);
		ck_assert_int_eq(errno, expected);
		errno = 0;
		ck_assert_int_eq(fgetc(reader), EOF);
		ck_assert(ferror(reader));
		ck_assert_int_eq(errno, expected);
		ck_assert_int_eq(fseek(reader, 0, SEEK_END), -1);
		(void)fclose(file);
		ck_assert_int_eq(fclose(reader), 0);
		if (!freed)
			ck_assert_int_eq(nc_handle_free(&handle), 0);
	}
	nc_index_fini(&cache);
}
END_TEST

/* Writes, reads and seeks at random, with every kind of buffering. */
static void check_random(size_t size, size_t fraglen, int buffering, uint64_t *state)
{
	unsigned char *expected = must_alloc(size), *data = must_alloc(size), *got;
	size_t at = 0, filled = 0;
	NC_handle handle;
	FILE *file;

	memset(expected, 0, size);
	soil(NC_KIND_RECYCLED, size);
	must_alloc_unit(&handle, size, fraglen, NC_KIND_RECYCLED);
	file = must_open(&handle, "r+");
	setvbuf(file, NULL, buffering, buffering == _IONBF ? 0 : 300);
	for (unsigned i = 0; i < 60; i++) {
		size_t length;

		at = random_next(state) % (size + 1);
		length = random_next(state) % (size - at + 1);
		if (random_next(state) % 2)
			length %= 50;
		ck_assert_int_eq(fseek(file, (long)at, SEEK_SET), 0);
		if (random_next(state) % 2) {
			pattern_fill(data, i, at, length);
			memcpy(expected + at, data, length);
			ck_assert_uint_eq(fwrite(data, 1, length, file), length);
			if (length && at + length > filled)
				filled = at + length;
		} else {
			size_t there = at < filled ? filled - at : 0;

			if (there > length)
				there = length;
			ck_assert_uint_eq(fread(data, 1, length, file), there);
			expect(!memcmp(data, expected + at, there));
		}
	}
	ck_assert_int_eq(fclose(file), 0);
	got = insert_and_copy(&handle);
	ck_assert_mem_eq(got, expected, size);
	free(got);
	free(data);
	free(expected);
}

START_TEST(test_random)
{
	static const int buffering[] = {_IOFBF, _IOLBF, _IONBF};
	uint64_t state = 71;

	open_cache();
	for (unsigned i = 0; i < 3; i++)
		for (size_t f = 0; f < FRAGLENS; f++) {
			check_random(10000, fraglens[f], buffering[i], &state);
			check_random(333, fraglens[f], buffering[i], &state);
		}
	nc_index_fini(&cache);
}
END_TEST

/* Lines, until the unit is as long as it may be; all lines before that are in it. */
START_TEST(test_grows)
{
	static const char *const modes[] = {"wg", "ag", "w+g"};
	unsigned char *expected = must_alloc(MIB + PAGE);

	for (unsigned i = 0; i < 3; i++) {
		size_t written = 0, size, filled;
		NC_handle handle;
		FILE *file;
		int error = 0;

		open_cache();
		must_alloc_unit(&handle, 10, i * 1448, NC_KIND_AUTO);
		file = must_open(&handle, modes[i]);
		while (!error) {
			char line[64];
			int length = snprintf(line, sizeof(line), "line at %zu\n", written);

			if (fputs(line, file) < 0 || fflush(file) == EOF) {
				error = errno;
				break;
			}
			memcpy(expected + written, line, (size_t)length);
			written += (size_t)length;
			ck_assert_int_eq(nc_handle_extent(&handle, &size, &filled), 0);
			ck_assert_uint_eq(filled, written);
			ck_assert_uint_le(size, written < MIB / 2 ? 2 * written + 64 : MIB);
		}
		ck_assert_int_eq(error, EFBIG);
		ck_assert_uint_gt(written, MIB - 64);
		(void)fclose(file);
		ck_assert_int_eq(nc_handle_insert(&handle, written), 0);
		check_held(nc_handle_id(&handle), expected, written);
		ck_assert_int_eq(nc_handle_free(&handle), 0);
		nc_index_fini(&cache);
	}
	free(expected);
}
END_TEST

/* Behind the end: zeroes, up to the first byte that is written there. */
START_TEST(test_grows_behind_a_gap)
{
	unsigned char expected[50005] = {0};
	NC_handle handle;
	FILE *file;

	open_cache();
	must_alloc_unit(&handle, 10, 0, NC_KIND_AUTO);
	file = must_open(&handle, "w+g");
	ck_assert_int_eq(fseek(file, (long)MIB + 1, SEEK_SET), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(fseek(file, 50000, SEEK_SET), 0);
	ck_assert_int_eq(fgetc(file), EOF);
	ck_assert_int_eq(fputs("there", file) >= 0, 1);
	ck_assert_int_eq(fclose(file), 0);
	memcpy(expected + 50000, "there", 5);
	ck_assert_int_eq(nc_handle_insert(&handle, 50005), 0);
	check_held(nc_handle_id(&handle), expected, 50005);
	nc_index_fini(&cache);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_modes);
	tcase_add_test(tcase, test_positions);
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_handle_ends);
	tcase_add_test(tcase, test_random);
	tcase_add_test(tcase, test_grows);
	tcase_add_test(tcase, test_grows_behind_a_gap);
}

RUN_SUITE("stream", fill)
