/* SPDX-License-Identifier: MIT */
/*
 * test-record-ring.c - unit tests of record-ring.c: order, a full ring, its end, and two threads.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/record-ring.h"

#include "suite.h"

#define SIZE 1024u

static bool put(struct record_ring *ring, const char *text)
{
	char *record = record_ring_reserve(ring, strlen(text) + 1);

	if (!record)
		return false;
	ck_assert_uint_eq((uintptr_t)record % 8, 0);
	strcpy(record, text);
	record_ring_commit(ring);
	return true;
}

static void take(struct record_ring *ring, const char *text)
{
	ck_assert_str_eq(record_ring_first(ring), text);
	record_ring_drop(ring);
}

START_TEST(test_order)
{
	struct record_ring *ring = record_ring_open(SIZE);

	ck_assert_ptr_null(record_ring_first(ring));
	ck_assert(put(ring, "") && put(ring, "two") && put(ring, "a longer one"));
	ck_assert_uint_eq(record_ring_count(ring), 3);
	take(ring, "");
	take(ring, "two");
	ck_assert(put(ring, "last"));
	take(ring, "a longer one");
	take(ring, "last");
	ck_assert_ptr_null(record_ring_first(ring));
	ck_assert_uint_eq(record_ring_count(ring), 0);
	record_ring_close(ring);
	record_ring_close(NULL);
}
END_TEST

/* A record that was only reserved is not seen, and its memory is given again. */
START_TEST(test_reserved)
{
	struct record_ring *ring = record_ring_open(SIZE);
	void *first = record_ring_reserve(ring, 100);

	ck_assert_ptr_null(record_ring_first(ring));
	ck_assert_ptr_eq(record_ring_reserve(ring, 200), first);
	record_ring_commit(ring);
	ck_assert_ptr_eq(record_ring_first(ring), first);
	record_ring_close(ring);
}
END_TEST

START_TEST(test_full)
{
	struct record_ring *ring = record_ring_open(SIZE);
	unsigned count = 0;

	ck_assert_ptr_null(record_ring_reserve(ring, SIZE));
	ck_assert_ptr_null(record_ring_reserve(ring, SIZE - 7));
	ck_assert_ptr_null(record_ring_reserve(ring, SIZE_MAX));
	ck_assert_ptr_nonnull(record_ring_reserve(ring, SIZE - 8));
	while (put(ring, "1234567"))
		count++;
	ck_assert_uint_eq(count, SIZE / 16);
	ck_assert_ptr_null(record_ring_reserve(ring, 0));
	take(ring, "1234567");
	ck_assert(put(ring, "again"));
	ck_assert(!put(ring, "no"));
	record_ring_close(ring);
}
END_TEST

/* Records of all lengths, with all places of the memory's end among them. */
START_TEST(test_around)
{
	struct record_ring *ring = record_ring_open(SIZE);
	char text[200];

	for (unsigned round = 0; round < 5000; round++) {
		size_t length = round * 7 % sizeof(text);

		memset(text, 'a' + (int)(round % 26), length);
		text[length] = '\0';
		ck_assert(put(ring, text));
		ck_assert(put(ring, "between"));
		take(ring, text);
		take(ring, "between");
		ck_assert_ptr_null(record_ring_first(ring));
	}
	record_ring_close(ring);
}
END_TEST

static void *write_all(void *argument)
{
	unsigned count = scaled(100000);

	for (unsigned i = 0; i < count; i++) {
		unsigned *record, words = 1 + i % 50;

		while (!(record = record_ring_reserve(argument, (words + 1) * sizeof(*record))))
			sched_yield();
		record[0] = words;
		for (unsigned k = 1; k <= words; k++)
			record[k] = i;
		record_ring_commit(argument);
	}
	return NULL;
}

START_TEST(test_threads)
{
	struct record_ring *ring = record_ring_open(SIZE);
	unsigned count = scaled(100000);
	pthread_t writer;

	ck_assert_int_eq(pthread_create(&writer, NULL, write_all, ring), 0);
	for (unsigned i = 0; i < count; i++) {
		const unsigned *record;

		while (!(record = record_ring_first(ring)))
			sched_yield();
		ck_assert_uint_eq(record[0], 1 + i % 50);
		for (unsigned k = 1; k <= record[0]; k++)
			ck_assert_uint_eq(record[k], i);
		record_ring_drop(ring);
	}
	pthread_join(writer, NULL);
	ck_assert_uint_eq(record_ring_count(ring), 0);
	record_ring_close(ring);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_order);
	tcase_add_test(tcase, test_reserved);
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_around);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("record-ring", fill)
