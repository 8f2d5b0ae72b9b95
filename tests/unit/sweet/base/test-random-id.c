/* SPDX-License-Identifier: MIT */
/*
 * test-random-id.c - unit tests of random-id.c: different ids, from different sources, and their
 * digits.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/random-id.h"

#include "suite.h"

#define COUNT 1000u

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* No id occurs twice, and each bit is set in about half of them. */
START_TEST(test_different)
{
	struct random_id one = {0}, other = {0};
	uint64_t ids[2 * COUNT];
	unsigned bits[64] = {0};

	for (unsigned i = 0; i < COUNT; i++) {
		ids[2 * i] = random_id_next(&one);
		ids[2 * i + 1] = random_id_next(&other);
	}
	ck_assert_mem_ne(one.key, other.key, sizeof(one.key));
	for (unsigned i = 0; i < 2 * COUNT; i++)
		for (unsigned bit = 0; bit < 64; bit++)
			bits[bit] += ids[i] >> bit & 1;
	for (unsigned bit = 0; bit < 64; bit++)
		ck_assert(bits[bit] > COUNT / 2 && bits[bit] < 2 * COUNT - COUNT / 2);
	qsort(ids, 2 * COUNT, sizeof(*ids), compare);
	for (unsigned i = 1; i < 2 * COUNT; i++)
		ck_assert(ids[i - 1] != ids[i]);
}
END_TEST

START_TEST(test_digits)
{
	char text[20] = "";

	*random_id_write(text, UINT64_C(0x0123456789abcdef), 16) = '\0';
	ck_assert_str_eq(text, "0123456789abcdef");
	*random_id_write(text, UINT64_C(0x0123456789abcdef), 2) = '\0';
	ck_assert_str_eq(text, "ef");
	ck_assert_ptr_eq(random_id_write(text, 1, 0), text);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_different);
	tcase_add_test(tcase, test_digits);
}

RUN_SUITE("random-id", fill)
