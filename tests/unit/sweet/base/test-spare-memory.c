/* SPDX-License-Identifier: MIT */
/*
 * test-spare-memory.c - unit tests of spare-memory.c: pieces of all lengths can be written to their
 * ends and keep what is in them; what was given back last is taken next; what is kept has a limit.
 */
#include <malloc.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/spare-memory.h"

#include "suite.h"

#ifdef __SANITIZE_ADDRESS__
#define KEEPS false
#else
#define KEEPS true
#endif

static const size_t lengths[] = {0,    1,    63,   64,	 65,   1023, 1024,
				 1025, 2048, 2049, 8191, 8192, 8193, 100000};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static struct spare_memory *spare;

static void begin(void)
{
	spare = spare_memory_new();
	ck_assert_ptr_nonnull(spare);
}

static void end(void)
{
	spare_memory_free(spare);
}

static void check_bytes(const unsigned char *memory, unsigned char value, size_t length)
{
	for (size_t i = 0; i < length; i++)
		ck_assert_uint_eq(memory[i], value);
}

/* Twice, so that the second pieces are those that the first ones were. */
START_TEST(test_lengths)
{
	unsigned char *pieces[LENGTHS];

	for (unsigned turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < LENGTHS; i++) {
			pieces[i] = spare_memory_take(spare, lengths[i]);
			ck_assert_ptr_nonnull(pieces[i]);
			ck_assert_uint_eq((uintptr_t)pieces[i] % alignof(max_align_t), 0);
			memset(pieces[i], (int)i + 1, lengths[i]);
		}
		for (size_t i = 0; i < LENGTHS; i++) {
			check_bytes(pieces[i], (unsigned char)(i + 1), lengths[i]);
			spare_memory_give_back(spare, pieces[i]);
		}
	}
	spare_memory_give_back(spare, NULL);
}
END_TEST

START_TEST(test_last_is_next)
{
	void *first = spare_memory_take(spare, 130), *second = spare_memory_take(spare, 192);

	spare_memory_give_back(spare, first);
	spare_memory_give_back(spare, second);
	if (KEEPS) {
		ck_assert_ptr_eq(spare_memory_take(spare, 129), second);
		ck_assert_ptr_eq(spare_memory_take(spare, 192), first);
		spare_memory_give_back(spare, first);
		spare_memory_give_back(spare, second);
	}
	/* Of other classes: */
	first = spare_memory_take(spare, 128);
	ck_assert_ptr_ne(first, second);
	spare_memory_give_back(spare, first);
}
END_TEST

START_TEST(test_zeroed)
{
	unsigned char *memory = spare_memory_take(spare, 300);

	memset(memory, 0xff, 300);
	spare_memory_give_back(spare, memory);
	memory = spare_memory_take_zeroed(spare, 3, 100);
	check_bytes(memory, 0, 300);
	spare_memory_give_back(spare, memory);
	ck_assert_ptr_null(spare_memory_take_zeroed(spare, SIZE_MAX / 2, 3));
	ck_assert_ptr_null(spare_memory_take(spare, SIZE_MAX - 8));
	ck_assert_ptr_null(spare_memory_take(spare, SIZE_MAX));
}
END_TEST

/* From each length to each other one. */
START_TEST(test_change)
{
	for (size_t i = 0; i < LENGTHS; i++) {
		for (size_t j = 0; j < LENGTHS; j++) {
			unsigned char *memory = spare_memory_change(spare, NULL, lengths[i]);

			memset(memory, 7, lengths[i]);
			memory = spare_memory_change(spare, memory, lengths[j]);
			ck_assert(lengths[j] == 0 ? !memory : memory != NULL);
			check_bytes(memory, 7, lengths[i] < lengths[j] ? lengths[i] : lengths[j]);
			if (memory)
				memset(memory, 8, lengths[j]);
			spare_memory_give_back(spare, memory);
		}
	}
}
END_TEST

START_TEST(test_change_fails)
{
	unsigned char *memory = spare_memory_take(spare, 10);

	memset(memory, 7, 10);
	ck_assert_ptr_null(spare_memory_change(spare, memory, SIZE_MAX));
	check_bytes(memory, 7, 10);
	spare_memory_give_back(spare, memory);
}
END_TEST

/* What is given back beyond the limit is freed. */
START_TEST(test_limit)
{
	enum { COUNT = 4 * SPARE_MEMORY_MOST / 8192 };
	void *pieces[COUNT];
	size_t before = mallinfo2().uordblks;

	for (unsigned i = 0; i < COUNT; i++)
		pieces[i] = spare_memory_take(spare, 8192);
	for (unsigned i = 0; i < COUNT; i++)
		spare_memory_give_back(spare, pieces[i]);
	/* A sanitizer's malloc() counts nothing, and Valgrind's. */
	ck_assert_uint_le(mallinfo2().uordblks, before + SPARE_MEMORY_MOST + (64u << 10));
}
END_TEST

static void fill(TCase *cases)
{
	tcase_add_checked_fixture(cases, begin, end);
	tcase_add_test(cases, test_lengths);
	tcase_add_test(cases, test_last_is_next);
	tcase_add_test(cases, test_zeroed);
	tcase_add_test(cases, test_change);
	tcase_add_test(cases, test_change_fails);
	tcase_add_test(cases, test_limit);
}

RUN_SUITE("spare-memory", fill)
