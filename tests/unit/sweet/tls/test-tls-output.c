/* SPDX-License-Identifier: MIT */
/*
 * test-tls-output.c - unit tests of tls-output.c.  Single-threaded.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tls/tls-output.h"

#include "suite.h"

#define MOST (256u << 10)

static struct tls_output output;

static bool add(size_t length, int byte)
{
	unsigned char *room = tls_output_room(&output, length);

	if (!room)
		return false;
	memset(room, byte, length);
	output.to += length;
	return true;
}

/* What is added while a part is sent keeps its order. */
START_TEST(order)
{
	size_t sent = 0;

	for (unsigned i = 0; i < 400; i++) {
		ck_assert(add(1000, (int)i));
		for (unsigned j = 0; j < 900; j++) {
			ck_assert_uint_eq(output.bytes[output.from], (sent / 1000) & 0xff);
			tls_output_sent(&output, 1);
			sent++;
		}
	}
	ck_assert_uint_eq(output.to - output.from, 40000);
	tls_output_sent(&output, 40000);
	ck_assert_ptr_null(output.bytes);
	ck_assert_uint_eq(output.room, 0);
}
END_TEST

START_TEST(bound)
{
	ck_assert(add(MOST - 10, 'a'));
	ck_assert(add(10, 'b'));
	ck_assert(!add(1, 'c'));
	ck_assert_uint_eq(output.to, MOST);
	ck_assert_uint_eq(output.bytes[MOST - 1], 'b');
	/* Once a part was sent, there is room for as much. */
	tls_output_sent(&output, 5);
	ck_assert(!add(6, 'c'));
	ck_assert(add(5, 'c'));
	ck_assert_uint_eq(output.bytes[MOST - 6], 'b');
	tls_output_free(&output);
	ck_assert(!add(MOST + 1, 'a'));
	ck_assert(!add(SIZE_MAX, 'a'));
}
END_TEST

/* Memory for what is expected does not grow meanwhile; for one record it is as without. */
START_TEST(expected)
{
	const unsigned char *bytes;

	tls_output_expect(&output, 16384);
	ck_assert_ptr_null(output.bytes);
	tls_output_expect(&output, 65536);
	bytes = output.bytes;
	ck_assert_ptr_nonnull(bytes);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert(add(16384 + 22, 'a'));
		tls_output_expect(&output, 65536);
		ck_assert_ptr_eq(output.bytes, bytes);
	}
	tls_output_sent(&output, output.to);
	ck_assert_ptr_null(output.bytes);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, order);
	tcase_add_test(tcase, bound);
	tcase_add_test(tcase, expected);
}

RUN_SUITE("tls-output", fill)
