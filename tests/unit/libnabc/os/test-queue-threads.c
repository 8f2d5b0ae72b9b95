/* SPDX-License-Identifier: MIT */
/*
 * test-queue-threads.c - unit tests of queue.c: the sleep protocol with a producer and
 * a consumer thread, and memory that a peer changes meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/queue.h"

#include "queue-fixture.h"
#include "suite.h"

#ifndef __SANITIZE_THREAD__
static _Atomic bool scribbling;

static void *scribble(void *context)
{
	struct ends *ends = context;
	uint64_t state = 52;

	while (atomic_load_explicit(&scribbling, memory_order_relaxed)) {
		volatile unsigned char *data = ends->producer.shared->data;

		data[random_next(&state) % 256] = (unsigned char)random_next(&state);
		atomic_store_explicit(&ends->producer.shared->head, random_next(&state) % 4096,
				      memory_order_relaxed);
		atomic_store_explicit(&ends->producer.shared->tail, random_next(&state) % 4096,
				      memory_order_relaxed);
	}
	return NULL;
}

/* The peer changes everything between any two reads: an intended race. */
START_TEST(test_changing_memory)
{
	char *record = must_alloc(100);
	struct ends ends;
	pthread_t thread;

	memset(record, 0, 100);
	ends_open(&ends, 256);
	atomic_store(&scribbling, true);
	ck_assert_int_eq(pthread_create(&thread, NULL, scribble, &ends), 0);
	for (unsigned i = 0; i < scaled(300000); i++) {
		int64_t got = nc_queue_pop(&ends.consumer, record, 100);

		expect(got == -EPROTO || (got >= 0 && got <= 100));
		(void)nc_queue_push(&ends.producer, record, 50, record, 50);
		ends.consumer.own = i % 512 * 8;
		ends.producer.own = i % 512 * 8;
	}
	atomic_store(&scribbling, false);
	pthread_join(thread, NULL);
	free(record);
	free(ends.memory);
}
END_TEST
#endif

/* Two threads, both of which sleep on pipes whenever possible. */
struct relay {
	struct ends ends;
	unsigned records;
	int data_watch, data_ring, room_watch, room_ring;
	unsigned slept_empty, slept_full;
};

static size_t record_length(uint64_t number)
{
	return 8 + (number * UINT64_C(0x9e3779b97f4a7c15) >> 40) % 120;
}

static void *produce(void *context)
{
	struct relay *relay = context;
	unsigned char data[128];

	for (uint64_t number = 0; number < relay->records; number++) {
		size_t length = record_length(number);

		memcpy(data, &number, sizeof(number));
		memset(data + 8, (int)(number & 0xff), length - 8);
		for (;;) {
			int error = push(&relay->ends, data, length);

			if (error == 0)
				break;
			if (error != -EAGAIN)
				return "push";
			if (nc_queue_arm_room(&relay->ends.producer, length))
				continue;
			relay->slept_full++;
			if (nc_doorbell_wait(relay->room_watch) != 1)
				return "room";
		}
		if (nc_queue_must_ring(&relay->ends.producer))
			nc_doorbell_ring(relay->data_ring);
	}
	return NULL;
}

static void *consume(void *context)
{
	struct relay *relay = context;
	unsigned char data[128];

	for (uint64_t number = 0; number < relay->records;) {
		int64_t got = nc_queue_pop(&relay->ends.consumer, data, sizeof(data));
		uint64_t told;

		if (got == 0) {
			if (nc_queue_arm(&relay->ends.consumer, 1))
				continue;
			relay->slept_empty++;
			if (nc_doorbell_wait(relay->data_watch) != 1)
				return "data";
			continue;
		}
		if (got < 0)
			return "pop";
		if (nc_queue_must_ring_room(&relay->ends.consumer))
			nc_doorbell_ring(relay->room_ring);
		memcpy(&told, data, sizeof(told));
		if (told != number || got != (int64_t)record_length(number))
			return "order";
		for (int64_t i = 8; i < got; i++)
			if (data[i] != (unsigned char)number)
				return "bytes";
		number++;
	}
	return NULL;
}

START_TEST(test_two_threads)
{
	struct relay relay = {.records = scaled(200000)};
	pthread_t producer, consumer;
	void *complaint;

	ends_open(&relay.ends, 1024);
	ck_assert_int_eq(nc_doorbell_open_pipe(&relay.data_watch, &relay.data_ring), 0);
	ck_assert_int_eq(nc_doorbell_open_pipe(&relay.room_watch, &relay.room_ring), 0);
	ck_assert_int_eq(pthread_create(&consumer, NULL, consume, &relay), 0);
	ck_assert_int_eq(pthread_create(&producer, NULL, produce, &relay), 0);
	pthread_join(producer, &complaint);
	ck_assert_msg(!complaint, "producer: %s", (const char *)complaint);
	pthread_join(consumer, &complaint);
	ck_assert_msg(!complaint, "consumer: %s", (const char *)complaint);
	/* The protocol was exercised. */
	ck_assert_uint_gt(relay.slept_empty + relay.slept_full, 0);
	close(relay.data_watch);
	close(relay.data_ring);
	close(relay.room_watch);
	close(relay.room_ring);
	free(relay.ends.memory);
}
END_TEST

START_TEST(test_pipe_doorbell)
{
	int watch, ring;

	ck_assert_int_eq(nc_doorbell_open_pipe(&watch, &ring), 0);
	ck_assert_int_eq(fcntl(watch, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(ring, F_GETFD), FD_CLOEXEC);
	ck_assert(!readable(watch));
	nc_doorbell_ring(ring);
	ck_assert(readable(watch));
	ck_assert_int_eq(nc_doorbell_wait(watch), 1);
	ck_assert(!readable(watch));
	/* Any number of rings blocks no process. */
	for (unsigned i = 0; i < 20000; i++)
		nc_doorbell_ring(ring);
	ck_assert_int_eq(nc_doorbell_wait(watch), 1);
	close(ring);
	while (nc_doorbell_wait(watch) == 1)
		;
	ck_assert_int_eq(nc_doorbell_wait(watch), 0);
	close(watch);
	ck_assert_int_eq(nc_doorbell_wait(watch), -EBADF);
}
END_TEST

START_TEST(test_eventfd_doorbell)
{
	uint64_t most = UINT64_MAX - 1;
	int bell = nc_doorbell_open();

	ck_assert_int_ge(bell, 0);
	ck_assert_int_eq(fcntl(bell, F_GETFD), FD_CLOEXEC);
	ck_assert(!readable(bell));
	nc_doorbell_ring(bell);
	ck_assert(readable(bell));
	/* The counter of the doorbell is at its maximum: no error, and no wait. */
	ck_assert_int_eq(read(bell, &most, sizeof(most)), sizeof(most));
	most = UINT64_MAX - 1;
	ck_assert_int_eq(write(bell, &most, sizeof(most)), sizeof(most));
	nc_doorbell_ring(bell);
	ck_assert(readable(bell));
	close(bell);
}
END_TEST

enum { CLAIMS = 1000000 };

/* Counts the numbers that this thread claimed. */
static void *claim_all(void *context)
{
	struct nc_queue *side = context;
	uint64_t from = 0;
	uintptr_t claimed = 0;

	while (from < CLAIMS) {
		if (nc_queue_claim(side, &from, from + 1)) {
			from++;
			claimed++;
		}
	}
	return (void *)claimed;
}

/* Exactly one side claims each number. */
START_TEST(test_claim)
{
	alignas(64) static char claimed[sizeof(struct nc_queue_shared) + 64];
	struct nc_queue one, other;
	pthread_t thread;
	void *ours, *theirs;
	uint64_t from = 5;

	memset(claimed, 0, sizeof(claimed));
	nc_queue_init(&one, claimed, 64);
	nc_queue_init(&other, claimed, 64);
	ck_assert(!nc_queue_claim(&one, &from, 6));
	ck_assert_uint_eq(from, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, claim_all, &other), 0);
	ours = claim_all(&one);
	ck_assert_int_eq(pthread_join(thread, &theirs), 0);
	ck_assert_uint_eq((uintptr_t)ours + (uintptr_t)theirs, CLAIMS);
	ck_assert_uint_eq(nc_queue_claims(&one), CLAIMS);
}
END_TEST

static void fill(TCase *tcase)
{
#ifndef __SANITIZE_THREAD__
	tcase_add_test(tcase, test_changing_memory);
#endif
	tcase_add_test(tcase, test_two_threads);
	tcase_add_test(tcase, test_claim);
	tcase_add_test(tcase, test_pipe_doorbell);
	tcase_add_test(tcase, test_eventfd_doorbell);
}

RUN_SUITE("queue-threads", fill)
