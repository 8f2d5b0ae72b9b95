/* SPDX-License-Identifier: MIT */
/*
 * test-queue.c - unit tests of queue.c: records of all sizes around the end of the
 * data, a peer that writes invalid values, and when it must be woken.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "os/queue.h"

#include "queue-fixture.h"
#include "suite.h"

START_TEST(test_empty)
{
	struct ends ends;
	char record[8];

	ends_open(&ends, 64);
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), 0);
	ck_assert_int_eq(push(&ends, "abc", 3), 0);
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), 3);
	ck_assert_mem_eq(record, "abc", 3);
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), 0);
	free(ends.memory);
}
END_TEST

/* Every size at every place, so each one wraps in every way. */
START_TEST(test_all_sizes_wrap)
{
	enum { SIZE = 256 };
	unsigned char data[SIZE], record[SIZE];
	struct ends ends;

	ends_open(&ends, SIZE);
	for (size_t length = 1; length <= SIZE - 8; length++)
		for (unsigned turn = 0; turn < SIZE / 8 + 1; turn++) {
			size_t head = (length + turn) % (length + 1);

			pattern_fill(data, length * 1000 + turn, 0, length);
			expect(nc_queue_push(&ends.producer, data, head, data + head,
					     length - head) == 0);
			memset(record, 0, sizeof(record));
			expect(nc_queue_pop(&ends.consumer, record, length) == (int64_t)length);
			expect(memcmp(record, data, length) == 0);
			/* Advances one word, so that the next record starts elsewhere. */
			expect(push(&ends, "x", 1) == 0);
			expect(nc_queue_pop(&ends.consumer, record, sizeof(record)) == 1);
		}
	free(ends.memory);
}
END_TEST

START_TEST(test_full)
{
	struct ends ends;
	char record[64] = {0};
	unsigned count = 0;

	ends_open(&ends, 128);
	while (push(&ends, &count, sizeof(count)) == 0)
		count++;
	ck_assert_uint_eq(count, 8);
	ck_assert_int_eq(push(&ends, &count, sizeof(count)), -EAGAIN);
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), sizeof(count));
	ck_assert_int_eq(push(&ends, record, 9), -EAGAIN);
	ck_assert_int_eq(push(&ends, &count, sizeof(count)), 0);
	for (unsigned i = 1; i <= count; i++) {
		unsigned value;

		ck_assert_int_eq(nc_queue_pop(&ends.consumer, &value, sizeof(value)),
				 sizeof(value));
		ck_assert_uint_eq(value, i);
	}
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), 0);
	free(ends.memory);
}
END_TEST

/* A push that leaves space for others fails before theirs do. */
START_TEST(test_leaving)
{
	char record[32] = {0};
	struct ends ends;

	ends_open(&ends, 128);
	ck_assert_int_eq(nc_queue_push_leaving(&ends.producer, record, 8, NULL, 0, 112), 0);
	ck_assert_int_eq(nc_queue_push_leaving(&ends.producer, record, 8, NULL, 0, 97), -EAGAIN);
	ck_assert_int_eq(nc_queue_push_leaving(&ends.producer, record, 8, NULL, 0, 96), 0);
	ck_assert_int_eq(nc_queue_push_leaving(&ends.producer, record, 8, NULL, 0, 113), -EMSGSIZE);
	for (unsigned i = 0; i < 6; i++)
		ck_assert_int_eq(nc_queue_push(&ends.producer, record, 8, NULL, 0), 0);
	ck_assert_int_eq(nc_queue_push(&ends.producer, record, 8, NULL, 0), -EAGAIN);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), 8);
	free(ends.memory);
}
END_TEST

START_TEST(test_never_fits)
{
	char data[300] = {0};
	struct ends ends;

	ends_open(&ends, 256);
	ck_assert_int_eq(push(&ends, data, 0), -EMSGSIZE);
	ck_assert_int_eq(push(&ends, data, 249), -EMSGSIZE);
	ck_assert_int_eq(push(&ends, data, 257), -EMSGSIZE);
	ck_assert_int_eq(nc_queue_push(&ends.producer, data, 200, data, 100), -EMSGSIZE);
	ck_assert_int_eq(nc_queue_push(&ends.producer, data, 1, data, UINT32_MAX), -EMSGSIZE);
	ck_assert_int_eq(push(&ends, data, 248), 0);
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, data, 248), 248);
	free(ends.memory);
}
END_TEST

/* The producer's head is invalid. */
START_TEST(test_corrupt_head)
{
	static const uint64_t heads[] = {
		1, 7, 264, 512, UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63, UINT64_C(1) << 32};
	char record[256];
	struct ends ends;

	ends_open(&ends, 256);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		atomic_store(&ends.consumer.shared->head, heads[i]);
		ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), -EPROTO);
		ck_assert_uint_eq(ends.consumer.own, 0);
	}
	free(ends.memory);
}
END_TEST

START_TEST(test_corrupt_length)
{
	static const uint32_t lengths[] = {
		0, 9, 17, 248, 249, 256, 65536, UINT32_MAX, UINT32_MAX - 6, 0x80000000u};
	char record[256];
	struct ends ends;

	ends_open(&ends, 256);
	/* One record of 8 bytes is there, so all of these lengths are too large (or zero). */
	ck_assert_int_eq(push(&ends, "12345678", 8), 0);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memcpy(ends.producer.shared->data, &lengths[i], sizeof(lengths[i]));
		ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), -EPROTO);
	}
	/* A valid length, but more than the reader accepts. */
	memcpy(ends.producer.shared->data, &(uint32_t){8}, 4);
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, 7), -EPROTO);
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, 8), 8);
	free(ends.memory);
}
END_TEST

/* The consumer's tail is invalid. */
START_TEST(test_corrupt_tail)
{
	struct ends ends;
	bool room;

	ends_open(&ends, 64);
	ck_assert_int_eq(push(&ends, "a", 1), 0);
	atomic_store(&ends.producer.shared->tail, 17);
	ck_assert_int_eq(push(&ends, "a", 1), -EPROTO);
	/* A wait for space would last forever. */
	room = nc_queue_arm_room(&ends.producer, 1);
	ck_assert(room);
	atomic_store(&ends.producer.shared->tail, UINT64_MAX - 100);
	ck_assert_int_eq(push(&ends, "a", 1), -EPROTO);
	/* A tail that is too low only costs the consumer records. */
	atomic_store(&ends.producer.shared->tail, 16);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(push(&ends, "a", 1), 0);
	ck_assert_int_eq(push(&ends, "a", 1), -EAGAIN);
	free(ends.memory);
}
END_TEST

/* Random memory: for any content, results are in range and the position advances. */
START_TEST(test_random_memory)
{
	uint64_t state = 51;
	char record[100] = {0};
	struct ends ends;

	ends_open(&ends, 256);
	for (unsigned i = 0; i < scaled(200000); i++) {
		unsigned char *at = ends.memory;
		uint64_t before = ends.consumer.own;
		int64_t got;

		for (size_t k = 0; k < 8; k++)
			at[256 + random_next(&state) % 256] =
				(unsigned char)random_next(&state) % 16;
		atomic_store(&ends.consumer.shared->head, before + random_next(&state) % 300);
		got = nc_queue_pop(&ends.consumer, record, sizeof(record));
		expect(got == -EPROTO || (got >= 0 && got <= (int64_t)sizeof(record)));
		expect(ends.consumer.own - before <= 256);
		expect(got > 0 || ends.consumer.own == before);
		ends.producer.own = random_next(&state) % 4096 * 8;
		atomic_store(&ends.producer.shared->tail,
			     ends.producer.own - random_next(&state) % 300);
		(void)nc_queue_push(&ends.producer, record, random_next(&state) % 50, record,
				    random_next(&state) % 50);
	}
	free(ends.memory);
}
END_TEST

START_TEST(test_arm)
{
	struct ends ends;
	char record[8];

	ends_open(&ends, 64);
	ck_assert(!nc_queue_must_ring(&ends.producer));
	ck_assert(!nc_queue_arm(&ends.consumer, 1));
	ck_assert_int_eq(push(&ends, "a", 1), 0);
	/* One sleep causes one ring. */
	ck_assert(nc_queue_must_ring(&ends.producer));
	ck_assert(!nc_queue_must_ring(&ends.producer));
	/* A record is there: no sleep, and no ring for it. */
	ck_assert(nc_queue_arm(&ends.consumer, 1));
	ck_assert(!nc_queue_must_ring(&ends.producer));
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), 1);
	ck_assert(!nc_queue_arm(&ends.consumer, 1));
	nc_queue_disarm(&ends.consumer);
	ck_assert(!nc_queue_must_ring(&ends.producer));
	free(ends.memory);
}
END_TEST

/* One ring for several records; fewer are announced on demand. */
START_TEST(test_arm_for_several)
{
	struct ends ends;
	char record[8];

	ends_open(&ends, 256);
	ck_assert(!nc_queue_arm(&ends.consumer, 3));
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(push(&ends, "a", 1), 0);
		ck_assert_int_eq(nc_queue_must_ring(&ends.producer), i == 2);
	}
	ck_assert(!nc_queue_must_ring(&ends.producer));
	ck_assert(!nc_queue_must_ring_now(&ends.producer));
	ck_assert(nc_queue_arm(&ends.consumer, 3));
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), 1);
	/* No record was added: no ring. */
	ck_assert(!nc_queue_arm(&ends.consumer, 3));
	ck_assert(!nc_queue_must_ring_now(&ends.producer));
	ck_assert_int_eq(push(&ends, "a", 1), 0);
	ck_assert(!nc_queue_must_ring(&ends.producer));
	ck_assert(nc_queue_must_ring_now(&ends.producer));
	ck_assert(!nc_queue_must_ring_now(&ends.producer));
	/* Awake: no ring. */
	ck_assert_int_eq(push(&ends, "a", 1), 0);
	ck_assert(!nc_queue_must_ring_now(&ends.producer));
	for (unsigned i = 0; i < 2; i++) {
		ck_assert(!nc_queue_is_taken(&ends.producer));
		ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), 1);
	}
	ck_assert(nc_queue_is_taken(&ends.producer));
	free(ends.memory);
}
END_TEST

START_TEST(test_arm_room)
{
	struct ends ends;
	char record[16];

	ends_open(&ends, 64);
	ck_assert(nc_queue_arm_room(&ends.producer, 56));
	ck_assert(!nc_queue_must_ring_room(&ends.consumer));
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(push(&ends, "a", 1), 0);
	ck_assert(!nc_queue_arm_room(&ends.producer, 1));
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), 1);
	ck_assert(nc_queue_must_ring_room(&ends.consumer));
	ck_assert(!nc_queue_must_ring_room(&ends.consumer));
	ck_assert(!nc_queue_arm_room(&ends.producer, 9));
	ck_assert(nc_queue_arm_room(&ends.producer, 8));
	free(ends.memory);
}
END_TEST

/* What one thread of several announces remains when another one finds work or space. */
START_TEST(test_arm_shared)
{
	struct ends ends;
	char record[16];

	ends_open(&ends, 64);
	ck_assert(!nc_queue_arm_shared(&ends.consumer, 1));
	ck_assert_int_eq(push(&ends, "a", 1), 0);
	ck_assert(nc_queue_arm_shared(&ends.consumer, 1));
	ck_assert(nc_queue_must_ring(&ends.producer));
	ck_assert(!nc_queue_must_ring(&ends.producer));
	ck_assert(nc_queue_arm_shared(&ends.consumer, 1));
	ck_assert(nc_queue_must_ring(&ends.producer));
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(push(&ends, "a", 1), 0);
	ck_assert(!nc_queue_has_room(&ends.producer, 1));
	ck_assert(!nc_queue_arm_room_shared(&ends.producer, 1));
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), 1);
	ck_assert(nc_queue_has_room(&ends.producer, 8));
	ck_assert(nc_queue_arm_room_shared(&ends.producer, 8));
	ck_assert(nc_queue_must_ring_room(&ends.consumer));
	free(ends.memory);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_empty);
	tcase_add_test(tcase, test_all_sizes_wrap);
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_leaving);
	tcase_add_test(tcase, test_never_fits);
	tcase_add_test(tcase, test_corrupt_head);
	tcase_add_test(tcase, test_corrupt_length);
	tcase_add_test(tcase, test_corrupt_tail);
	tcase_add_test(tcase, test_random_memory);
#ifndef __SANITIZE_THREAD__
#endif
	tcase_add_test(tcase, test_arm);
	tcase_add_test(tcase, test_arm_for_several);
	tcase_add_test(tcase, test_arm_room);
	tcase_add_test(tcase, test_arm_shared);
}

RUN_SUITE("queue", fill)
