/* SPDX-License-Identifier: MIT */
/*
 * test-scan.c - unit tests of scan.h: a run ends where a lookup of each byte in the
 * table ends it, for any position of bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/scan.h"
#include "base/syntax.h"

#include "suite.h"

#define LENGTH 70

static const struct {
	unsigned class;
	const char *(*scan)(const char *at, const char *end);
} scans[] = {{SYNTAX_VALUE, scan_value}, {SYNTAX_TARGET, scan_target}, {SYNTAX_TOKEN, scan_token}};

static size_t slowly(const char *data, unsigned class)
{
	size_t length = 0;

	while (syntax_is(data[length], class))
		length++;
	return length;
}

/* Memory of the exact length, so that a checker detects a read beyond. */
static void check(unsigned which, const char *data, size_t length)
{
	char *copy = malloc(length);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, data, length);
	ck_assert_uint_eq(scans[which].scan(copy, copy + length) - copy,
			  slowly(data, scans[which].class));
	free(copy);
}

/* Each byte at each place, and each length before the end. */
START_TEST(test_each_byte)
{
	char data[LENGTH];

	for (unsigned byte = 0; byte < 256; byte++)
		for (size_t at = 0; at < LENGTH - 1; at++) {
			memset(data, 'a', sizeof(data));
			data[LENGTH - 1] = '\n';
			data[at] = (char)byte;
			check((unsigned)_i, data, LENGTH);
			data[at] = '\n';
			check((unsigned)_i, data, at + 1);
		}
}
END_TEST

START_TEST(test_random)
{
	uint64_t state = 7;
	char data[LENGTH];

	for (unsigned turn = 0; turn < 20000; turn++) {
		size_t length = 1 + random_next(&state) % LENGTH;

		/* Mostly of the class, otherwise no run would be long. */
		for (size_t i = 0; i < length; i++)
			do {
				data[i] = (char)random_next(&state);
			} while (!syntax_is(data[i], scans[_i].class) && random_next(&state) % 32);
		data[length - 1] = '\n';
		check((unsigned)_i, data, length);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_each_byte, 0, 3);
	tcase_add_loop_test(tcase, test_random, 0, 3);
}

RUN_SUITE("scan", fill)
