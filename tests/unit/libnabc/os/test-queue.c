/* SPDX-License-Identifier: MIT */
/*
 * test-queue.c - unit tests of queue.c: records of all sizes round the end of
 * the data, a peer that writes nonsense, and the protocol of sleeping with a
 * producer and a consumer thread.  The queue's memory is a heap block of its
 * exact size, so that memory checkers see every step outside.
 */
#include <pthread.h>

#include "os/queue.h"

#include "suite.h"

struct ends {
	void *memory;
	struct nc_queue producer, consumer;
};

static void ends_open(struct ends *ends, uint32_t size)
{
	ends->memory = aligned_alloc(64, nc_queue_footprint(size));
	ck_assert_ptr_nonnull(ends->memory);
	memset(ends->memory, 0, nc_queue_footprint(size));
	nc_queue_init(&ends->producer, ends->memory, size);
	nc_queue_init(&ends->consumer, ends->memory, size);
}

static int push(struct ends *ends, const void *data, size_t length)
{
	return nc_queue_push(&ends->producer, data, length, NULL, 0);
}

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
			/* One word on, so that the next begins elsewhere. */
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

/* What leaves room for others is refused sooner than they are. */
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

/* The producer's head is a lie. */
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
	/* One record of 8 bytes is there, so all of these say too much (or nothing). */
	ck_assert_int_eq(push(&ends, "12345678", 8), 0);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memcpy(ends.producer.shared->data, &lengths[i], sizeof(lengths[i]));
		ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), -EPROTO);
	}
	/* True, but more than the reader takes. */
	memcpy(ends.producer.shared->data, &(uint32_t){8}, 4);
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, 7), -EPROTO);
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, 8), 8);
	free(ends.memory);
}
END_TEST

/* The consumer's tail is a lie. */
START_TEST(test_corrupt_tail)
{
	struct ends ends;
	bool room;

	ends_open(&ends, 64);
	ck_assert_int_eq(push(&ends, "a", 1), 0);
	atomic_store(&ends.producer.shared->tail, 17);
	ck_assert_int_eq(push(&ends, "a", 1), -EPROTO);
	/* Waiting for room would be for ever. */
	room = nc_queue_arm_room(&ends.producer, 1);
	ck_assert(room);
	atomic_store(&ends.producer.shared->tail, UINT64_MAX - 100);
	ck_assert_int_eq(push(&ends, "a", 1), -EPROTO);
	/* A tail that promises too little costs the consumer records only. */
	atomic_store(&ends.producer.shared->tail, 16);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(push(&ends, "a", 1), 0);
	ck_assert_int_eq(push(&ends, "a", 1), -EAGAIN);
	free(ends.memory);
}
END_TEST

/* Random memory: whatever is in it, results are in range and the position moves forward. */
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

/* The peer changes everything between any two looks at it: a race by purpose. */
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

START_TEST(test_arm)
{
	struct ends ends;
	char record[8];

	ends_open(&ends, 64);
	ck_assert(!nc_queue_must_ring(&ends.producer));
	ck_assert(!nc_queue_arm(&ends.consumer, 1));
	ck_assert_int_eq(push(&ends, "a", 1), 0);
	/* One sleep costs one ring. */
	ck_assert(nc_queue_must_ring(&ends.producer));
	ck_assert(!nc_queue_must_ring(&ends.producer));
	/* Something is there: no sleep, and no ring for it. */
	ck_assert(nc_queue_arm(&ends.consumer, 1));
	ck_assert(!nc_queue_must_ring(&ends.producer));
	ck_assert_int_eq(nc_queue_pop(&ends.consumer, record, sizeof(record)), 1);
	ck_assert(!nc_queue_arm(&ends.consumer, 1));
	nc_queue_disarm(&ends.consumer);
	ck_assert(!nc_queue_must_ring(&ends.producer));
	free(ends.memory);
}
END_TEST

/* One ring for several records; what is short of that is rung for on demand. */
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
	/* Nothing came since: nobody is woken for it. */
	ck_assert(!nc_queue_arm(&ends.consumer, 3));
	ck_assert(!nc_queue_must_ring_now(&ends.producer));
	ck_assert_int_eq(push(&ends, "a", 1), 0);
	ck_assert(!nc_queue_must_ring(&ends.producer));
	ck_assert(nc_queue_must_ring_now(&ends.producer));
	ck_assert(!nc_queue_must_ring_now(&ends.producer));
	/* Awake: not rung for. */
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

/* Two threads, both of which sleep on pipes whenever they can. */
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
	/* The protocol was put to the test. */
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
	/* However often it rings, nobody is blocked. */
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
	/* It is ringing as loud as it can: not an error, and no wait. */
	ck_assert_int_eq(read(bell, &most, sizeof(most)), sizeof(most));
	most = UINT64_MAX - 1;
	ck_assert_int_eq(write(bell, &most, sizeof(most)), sizeof(most));
	nc_doorbell_ring(bell);
	ck_assert(readable(bell));
	close(bell);
}
END_TEST

enum { CLAIMS = 1000000 };

/* Counts the numbers that it was the one to claim. */
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

/* Each is one side's, and never both sides'. */
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
	tcase_add_test(tcase, test_changing_memory);
#endif
	tcase_add_test(tcase, test_arm);
	tcase_add_test(tcase, test_arm_for_several);
	tcase_add_test(tcase, test_arm_room);
	tcase_add_test(tcase, test_two_threads);
	tcase_add_test(tcase, test_claim);
	tcase_add_test(tcase, test_pipe_doorbell);
	tcase_add_test(tcase, test_eventfd_doorbell);
}

RUN_SUITE("queue", fill)
