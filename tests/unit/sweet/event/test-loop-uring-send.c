/* SPDX-License-Identifier: MIT */
/*
 * test-loop-uring-send.c - unit tests of loop-uring-send.c: small messages that leave
 * together, also when their descriptor or their loop ends first.  The loop has a
 * thread, the test is the reader.
 */
#include "loop-send-fixture.h"
#include "pinned.h"

#define MANY 40u
#define PENDING_MAX 64u		       /* of loop-uring-send.c */
#define BATCHED_MAX ((size_t)12 << 10) /* of loop-send.c */

static struct loop_counts counts_now(void)
{
	const struct loop_counts *counts = loop_counts(runner.loop);

	return (struct loop_counts){.waits = atomic_load(&counts->waits),
				    .sends = atomic_load(&counts->sends),
				    .batched = atomic_load(&counts->batched)};
}

static void set_message(struct outlet *outlet, size_t id, size_t length)
{
	outlet->send.message.header = "head";
	outlet->send.message.header_length = 4;
	outlet->ranges[0] = (struct NC_range){.id = id, .length = length};
	outlet->send.message.range_count = 1;
	outlet->send.message.flags = 0;
}

static void expect_message(int fd, uint64_t seed, size_t length)
{
	char *got = must_alloc(length + 4);

	read_exactly(fd, got, length + 4);
	ck_assert_mem_eq(got, "head", 4);
	ck_assert_uint_eq(pattern_match(got + 4, seed, 0, length), length);
	free(got);
}

static struct outlet many[MANY];

struct burst {
	struct outlet *outlets;
	unsigned count;
};

static void begin_burst(void *argument)
{
	const struct burst *burst = argument;

	for (unsigned i = 0; i < burst->count; i++)
		outlet_begin(&burst->outlets[i]);
}

/* All messages of a turn leave without a system call of their own, each to its socket. */
START_TEST(test_together)
{
	size_t id[MANY];
	struct loop_counts before, after;

	start(0);
	for (unsigned i = 0; i < MANY; i++) {
		outlet_open(&many[i], 0, 0);
		id[i] = insert_held(i, 1000 + i, i % 2 ? 64 : 0, NC_KIND_RECYCLED);
		set_message(&many[i], id[i], 1000 + i);
	}
	before = counts_now();
	call(&runner, begin_burst, &(struct burst){many, MANY});
	for (unsigned i = 0; i < MANY; i++) {
		expect_message(many[i].peer, i, 1000 + i);
		AWAIT(many[i].calls > 0);
	}
	settle(&runner);
	after = counts_now();
	ck_assert_uint_eq(after.batched - before.batched, MANY);
	ck_assert_uint_eq(after.sends, before.sends);
	for (unsigned i = 0; i < MANY; i++) {
		SEEN(many[i].calls == 1 && many[i].result == 0 && !many[i].early);
		ck_assert_uint_eq(many[i].send.message.skip, 1004 + i);
		ck_assert_int_eq(release_id(NULL, id[i]), 0);
		outlet_close(&many[i]);
	}
	stop();
}
END_TEST

/* A turn that starts more than may be pending: the others are sent by calls of their own. */
START_TEST(test_burst)
{
	enum { BURST = 300 };
	struct outlet *outlets = must_alloc(BURST * sizeof(*outlets));
	struct loop_counts before, after;
	struct burst burst = {outlets, BURST};

	start(0);
	for (unsigned i = 0; i < BURST; i++) {
		outlet_open(&outlets[i], 0, 0);
		outlets[i].send.message.header = "head";
		outlets[i].send.message.header_length = 4;
		outlets[i].send.message.flags = 0;
	}
	before = counts_now();
	call(&runner, begin_burst, &burst);
	for (unsigned i = 0; i < BURST; i++) {
		expect_message(outlets[i].peer, 0, 0);
		AWAIT(outlets[i].calls == 1);
		SEEN(outlets[i].result == 0 && !outlets[i].early);
	}
	after = counts_now();
	ck_assert_uint_eq(after.batched - before.batched, PENDING_MAX);
	ck_assert_uint_eq(after.sends - before.sends, BURST - PENDING_MAX);
	for (unsigned i = 0; i < BURST; i++)
		outlet_close(&outlets[i]);
	stop();
	free(outlets);
}
END_TEST

/* What is larger, has options or is no unit is sent by calls of its own. */
START_TEST(test_others)
{
	struct outlet outlet;
	size_t id, length[] = {BATCHED_MAX - 4, BATCHED_MAX - 3, 100, 100};

	start(0);
	outlet_open(&outlet, 0, 0);
	id = insert_held(7, BATCHED_MAX, 0, NC_KIND_RECYCLED);
	for (unsigned i = 0; i < 4; i++) {
		struct loop_counts before = counts_now(), after;

		set_message(&outlet, id, length[i]);
		outlet.send.message.skip = 0;
		outlet.send.message.flags = i == 3 ? NC_SEND_MORE : 0;
		outlet.send.tail = (struct iovec){"tail", i == 2 ? 4 : 0};
		call(&runner, outlet_begin, &outlet);
		AWAIT(outlet.calls == i + 1);
		after = counts_now();
		ck_assert_uint_eq(after.batched - before.batched, i == 0);
		ck_assert_uint_eq(after.sends - before.sends, i > 0);
		if (i < 3)
			expect_message(outlet.peer, 7, length[i]);
		if (i == 2) {
			char tail[4];

			read_exactly(outlet.peer, tail, sizeof(tail));
			ck_assert_mem_eq(tail, "tail", sizeof(tail));
		}
	}
	ck_assert_int_eq(release_id(NULL, id), 0);
	outlet_close(&outlet);
	stop();
}
END_TEST

static unsigned calls_of(const struct outlet *outlet)
{
	unsigned calls;

	EVENT(calls = outlet->calls);
	return calls;
}

/* The socket accepts a part: the rest follows when the reader has made room. */
START_TEST(test_full)
{
	size_t length = 11 * KIB, sent = 0, id;
	struct outlet outlet;
	unsigned full = 0;

	start(0);
	outlet_open(&outlet, 4096, 4096);
	id = insert_held(3, length, 0, NC_KIND_RECYCLED);
	for (unsigned i = 0; full < 3; i++) {
		set_message(&outlet, id, length);
		outlet.send.message.skip = 0;
		call(&runner, outlet_begin, &outlet);
		settle(&runner);
		if (calls_of(&outlet) == i) {
			full++;
			for (; sent <= i; sent++)
				expect_message(outlet.peer, 3, length);
			AWAIT(outlet.calls == i + 1);
		}
		SEEN(outlet.calls == i + 1 && outlet.result == 0);
	}
	ck_assert(!readable(outlet.peer));
	ck_assert_int_eq(release_id(NULL, id), 0);
	outlet_close(&outlet);
	stop();
}
END_TEST

static void begin_and_destroy(void *argument)
{
	struct outlet *outlet = argument;
	size_t id = outlet->ranges[0].id;

	outlet_begin(outlet);
	ck_assert_int_eq(release_id(NULL, id), 0);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	/* In the same memory, if the first unit is no longer held. */
	outlet->ranges[1].id = insert_held(9, 5000, 0, NC_KIND_RECYCLED);
}

/* A unit that is destroyed, and its memory filled again, before the message is submitted. */
START_TEST(test_destroyed)
{
	struct outlet outlet;

	start(0);
	outlet_open(&outlet, 0, 0);
	set_message(&outlet, insert_held(8, 5000, 0, NC_KIND_RECYCLED), 5000);
	call(&runner, begin_and_destroy, &outlet);
	expect_message(outlet.peer, 8, 5000);
	AWAIT(outlet.calls == 1);
	SEEN(outlet.result == 0);
	ck_assert_int_eq(release_id(NULL, outlet.ranges[1].id), 0);
	outlet_close(&outlet);
	stop();
}
END_TEST

static void begin_and_end(void *argument)
{
	struct outlet *outlet = argument;

	outlet_begin(outlet);
	inlet_end(&outlet->inlet);
}

/*
 * A descriptor that is closed at once, by an operation or (once its receive has ended) by a
 * system call: its message leaves, and no callback follows.
 */
START_TEST(test_closed)
{
	struct outlet outlet;
	char byte;
	size_t id;

	start(0);
	id = insert_held(4, 3000, 0, NC_KIND_RECYCLED);
	for (unsigned ended = 0; ended < 2; ended++) {
		outlet_open(&outlet, 0, 0);
		set_message(&outlet, id, 3000);
		if (ended) {
			ck_assert_int_eq(shutdown(outlet.peer, SHUT_WR), 0);
			AWAIT(outlet.inlet.end != 1);
		}
		call(&runner, begin_and_end, &outlet);
		expect_message(outlet.peer, 4, 3000);
		ck_assert_int_eq(read(outlet.peer, &byte, 1), 0);
		settle(&runner);
		SEEN(outlet.calls == 0);
		outlet.closes = true;
		outlet_close(&outlet);
	}
	ck_assert_int_eq(release_id(NULL, id), 0);
	stop();
}
END_TEST

static struct outlet last;

/* In the last turn, after its submissions. */
static void begin_and_stop(struct loop_receive *op, const char *data, int length)
{
	(void)op;
	(void)data;
	if (length > 0) {
		outlet_begin(&last);
		loop_stop(runner.loop);
	}
}

static void prepare_last(void *argument)
{
	set_message(&last, *(const size_t *)argument, 2000);
	last.inlet.receive.received = begin_and_stop;
}

/* The loop ends first: the message leaves, and nothing of it is left behind. */
START_TEST(test_stopped)
{
	size_t id;

	start(0);
	outlet_open(&last, 0, 0);
	id = insert_held(5, 2000, 0, NC_KIND_RECYCLED);
	call(&runner, prepare_last, &id);
	ck_assert_int_eq(write(last.peer, "x", 1), 1);
	expect_message(last.peer, 5, 2000);
	ck_assert_int_eq(release_id(NULL, id), 0);
	pthread_join(runner.thread, NULL);
	loop_close(runner.loop);
	close(runner.ends[0]);
	close(runner.ends[1]);
	/* With a pending message this would fail. */
	ck_assert_int_eq(NC_cache_close(cache), 0);
	ck_assert_uint_eq(last.calls, 0);
	close(last.inlet.fd);
	last.closes = true;
	outlet_close(&last);
}
END_TEST

/* --- without a copy ---------------------------------------------------------------- */

#define LARGE (100 * KIB)
#define ROOM (1 << 20)

/* As on a route where zero-copy costs the least.  False: this kernel has none. */
static bool use_zerocopy(void)
{
	if (NC_route_set(cache, "*", NC_METHOD_ZEROCOPY) == 0)
		return true;
	printf("loop-uring-send: no zero-copy sends: %s\n", strerror(errno));
	return false;
}

/* Large messages leave together as well, and no unit is held once the kernel has finished. */
START_TEST(test_zerocopy)
{
	struct loop_counts before, after;
	size_t id[MANY / 4];

	start(0);
	if (!use_zerocopy()) {
		stop();
		return;
	}
	for (unsigned i = 0; i < MANY / 4; i++) {
		outlet_open(&many[i], ROOM, ROOM);
		id[i] = insert_held(i, LARGE + i, 0, i % 2 ? NC_KIND_APPENDED : NC_KIND_RECYCLED);
		set_message(&many[i], id[i], LARGE + i);
	}
	before = counts_now();
	call(&runner, begin_burst, &(struct burst){many, MANY / 4});
	for (unsigned i = 0; i < MANY / 4; i++) {
		/* Its memory is filled again as soon as the kernel permits it. */
		AWAIT(many[i].calls > 0);
		ck_assert_int_eq(release_id(NULL, id[i]), 0);
		ck_assert_int_eq(NC_destroy(NULL, id[i]), 0);
		id[i] = insert_held(99, LARGE + i, 0, NC_KIND_RECYCLED);
		expect_message(many[i].peer, i, LARGE + i);
	}
	settle(&runner);
	after = counts_now();
	ck_assert_uint_eq(after.batched - before.batched, MANY / 4);
	ck_assert_uint_eq(after.sends, before.sends);
	for (unsigned i = 0; i < MANY / 4; i++) {
		SEEN(many[i].calls == 1 && many[i].result == 0 && !many[i].early);
		ck_assert_int_eq(release_id(NULL, id[i]), 0);
		outlet_close(&many[i]);
	}
	stop();
}
END_TEST

/* The socket accepts a part; the loop sends the rest while the kernel has the first. */
START_TEST(test_zerocopy_full)
{
	struct outlet outlet;
	size_t id;

	start(0);
	if (use_zerocopy()) {
		outlet_open(&outlet, 8192, 8192);
		id = insert_held(6, LARGE, 0, NC_KIND_RECYCLED);
		for (unsigned i = 0; i < 10; i++) {
			set_message(&outlet, id, LARGE);
			outlet.send.message.skip = 0;
			call(&runner, outlet_begin, &outlet);
			expect_message(outlet.peer, 6, LARGE);
			AWAIT(outlet.calls == i + 1);
			SEEN(outlet.result == 0);
		}
		ck_assert_int_eq(release_id(NULL, id), 0);
		outlet_close(&outlet);
	}
	stop();
}
END_TEST

/* The descriptor is closed with the submission, or the loop ends: nothing is left behind. */
START_TEST(test_zerocopy_closed)
{
	struct outlet outlet;
	char byte;
	size_t id;

	start(0);
	if (use_zerocopy()) {
		outlet_open(&outlet, ROOM, ROOM);
		id = insert_held(4, LARGE, 0, NC_KIND_RECYCLED);
		set_message(&outlet, id, LARGE);
		call(&runner, begin_and_end, &outlet);
		expect_message(outlet.peer, 4, LARGE);
		ck_assert_int_eq(read(outlet.peer, &byte, 1), 0);
		SEEN(outlet.calls == 0);
		ck_assert_int_eq(release_id(NULL, id), 0);
		outlet.closes = true;
		outlet_close(&outlet);
	}
	stop();
}
END_TEST

static uint64_t registered_bytes(void)
{
	struct NC_cache_stat stat;

	ck_assert_int_eq(NC_cache_stat(NULL, &stat, sizeof(stat)), 0);
	return stat.registered_bytes;
}

/* Its task of clearing, if there is one, runs before the answer. */
static void turn(void *argument)
{
	(void)argument;
}

/*
 * Memory that is sent from often is registered with the loop's ring: header and body are linked,
 * also when the descriptor is closed at once.  When another thread has closed the segment, the
 * loop unpins it.
 */
START_TEST(test_registered)
{
	size_t before, size = 6 * MIB, id;
	struct outlet outlet;

	start_with(0, NC_CACHE_NO_HUGE | NC_CACHE_NO_THREAD);
	if (!may_pin() || !use_zerocopy()) {
		stop();
		return;
	}
	before = pinned();
	/* In a segment of its own. */
	id = insert_held(7, size, 0, NC_KIND_APPENDED);
	outlet_open(&outlet, ROOM, ROOM);
	for (unsigned i = 0; i < 600; i++) {
		set_message(&outlet, id, LARGE);
		outlet.send.message.skip = 0;
		call(&runner, outlet_begin, &outlet);
		expect_message(outlet.peer, 7, LARGE);
		AWAIT(outlet.calls == i + 1);
		SEEN(outlet.result == 0);
	}
	/* One block, by the loop's ring: the library's own was not used. */
	ck_assert_uint_eq(registered_bytes(), 2 * MIB);
	ck_assert_uint_eq(pinned(), before + 2 * MIB);
	set_message(&outlet, id, LARGE);
	outlet.send.message.skip = 0;
	call(&runner, begin_and_end, &outlet);
	expect_message(outlet.peer, 7, LARGE);
	SEEN(outlet.calls == 600);
	outlet.closes = true;
	outlet_close(&outlet);
	settle(&runner);
	ck_assert_int_eq(release_id(NULL, id), 0);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	call(&runner, turn, NULL);
	ck_assert_uint_eq(registered_bytes(), 0);
	await_pinned(before);
	stop();
	await_pinned(before);
}
END_TEST

/* One that the library would send in another way, or wants to measure, is sent by a call. */
START_TEST(test_not_settled)
{
	struct loop_counts before, after;
	struct outlet outlet;
	size_t id;

	start(0);
	outlet_open(&outlet, ROOM, ROOM);
	id = insert_held(2, LARGE, 0, NC_KIND_RECYCLED);
	before = counts_now();
	for (unsigned i = 0; i < 20; i++) {
		set_message(&outlet, id, LARGE);
		outlet.send.message.skip = 0;
		call(&runner, outlet_begin, &outlet);
		expect_message(outlet.peer, 2, LARGE);
		AWAIT(outlet.calls == i + 1);
	}
	after = counts_now();
	ck_assert_uint_eq(after.batched, before.batched);
	ck_assert_uint_ge(after.sends - before.sends, 20);
	ck_assert_int_eq(release_id(NULL, id), 0);
	outlet_close(&outlet);
	stop();
}
END_TEST

static void fill(TCase *tcase)
{
	/* Epoll has no such sends. */
	if (first_kind() != 0)
		return;
	tcase_add_test(tcase, test_together);
	tcase_add_test(tcase, test_burst);
	tcase_add_test(tcase, test_others);
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_destroyed);
	tcase_add_test(tcase, test_closed);
	tcase_add_test(tcase, test_stopped);
	tcase_add_test(tcase, test_zerocopy);
	tcase_add_test(tcase, test_zerocopy_full);
	tcase_add_test(tcase, test_zerocopy_closed);
	tcase_add_test(tcase, test_not_settled);
	tcase_add_test(tcase, test_registered);
}

RUN_SUITE("loop-uring-send", fill)
