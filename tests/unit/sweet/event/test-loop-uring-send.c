/* SPDX-License-Identifier: MIT */
/*
 * test-loop-uring-send.c - unit tests of loop-uring-send.c: small messages that leave
 * together, also when their descriptor or their loop ends first.  The loop has a
 * thread, the test is the reader.
 */
#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "event/loop.h"

#include "loop-fixture.h"
#include "loop-send-fixture.h"
#include "loop-uring-fixture.h"
#include "nabc-fixture.h"
#include "suite.h"
#include "unit-holds.h"

#define MANY 40u
#define PENDING_MAX 64u /* of loop-uring-send.c */

static struct outlet many[MANY];

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

/* One piece of memory that stays as it is leaves from where it is, and the rest follows. */
START_TEST(test_steady)
{
	const size_t length = LOOP_BATCHED_MAX;
	struct loop_counts before, after;
	char *bytes = must_alloc(length), *got = must_alloc(length);
	struct outlet outlet;

	pattern_fill(bytes, 7, 0, length);
	start(0);
	for (unsigned small = 0; small < 2; small++) {
		outlet_open(&outlet, small ? 2048 : 0, small ? 2048 : 0);
		outlet.send.message.header = bytes;
		outlet.send.message.header_length = length;
		outlet.send.message.flags = 0;
		outlet.send.steady = true;
		before = counts_now();
		call(&runner, begin_burst, &(struct burst){&outlet, 1});
		read_exactly(outlet.peer, got, length);
		ck_assert_mem_eq(got, bytes, length);
		AWAIT(outlet.calls == 1);
		settle(&runner);
		after = counts_now();
		SEEN(outlet.calls == 1 && outlet.result == 0 && !outlet.early);
		ck_assert_uint_eq(outlet.send.message.skip, length);
		ck_assert_uint_eq(after.batched - before.batched, 1);
		ck_assert(small ? after.sends > before.sends : after.sends == before.sends);
		outlet_close(&outlet);
	}
	stop();
	free(bytes);
	free(got);
}
END_TEST

static char steady[1000];

/* Starts messages, closes their descriptors in the same turn, and uses the memory again. */
static void begin_close_and_reuse(void *argument)
{
	const struct burst *burst = argument;

	begin_burst(argument);
	for (unsigned i = 0; i < burst->count; i++)
		loop_close_fd(runner.loop, burst->outlets[i].inlet.fd);
	memset(steady, 'x', sizeof(steady));
}

/* Of memory that is used again after the close, nothing is sent. */
START_TEST(test_steady_close)
{
	char got[sizeof(steady)];

	memset(steady, 's', sizeof(steady));
	start(0);
	for (unsigned i = 0; i < MANY; i++) {
		outlet_open(&many[i], 0, 0);
		many[i].send.message.header = steady;
		many[i].send.message.header_length = sizeof(steady);
		many[i].send.message.flags = 0;
		many[i].send.steady = true;
	}
	call(&runner, begin_close_and_reuse, &(struct burst){many, MANY});
	for (unsigned i = 0; i < MANY; i++) {
		ssize_t length = recv(many[i].peer, got, sizeof(got), 0);

		for (ssize_t at = 0; at < length; at++)
			ck_assert_int_eq(got[at], 's');
		SEEN(many[i].calls == 0);
		free(many[i].inlet.got);
		close(many[i].peer);
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
	size_t id, length[] = {LOOP_BATCHED_MAX - 4, LOOP_BATCHED_MAX - 3, 100, 100};

	start(0);
	outlet_open(&outlet, 0, 0);
	id = insert_held(7, LOOP_BATCHED_MAX, 0, NC_KIND_RECYCLED);
	for (unsigned i = 0; i < 4; i++) {
		struct loop_counts before = counts_now(), after;

		set_message(&outlet, id, length[i]);
		outlet.send.message.skip = 0;
		outlet.send.message.flags = i == 3 ? NC_SEND_MORE : 0;
		outlet.send.text = (struct NC_text){"tail", 4, 1};
		outlet.send.message.texts = &outlet.send.text;
		outlet.send.message.text_count = i == 2;
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

static void fill(TCase *tcase)
{
	/* Epoll has no such sends. */
	if (first_kind() != 0)
		return;
	tcase_add_test(tcase, test_together);
	tcase_add_test(tcase, test_steady);
	tcase_add_test(tcase, test_steady_close);
	tcase_add_test(tcase, test_burst);
	tcase_add_test(tcase, test_others);
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_destroyed);
	tcase_add_test(tcase, test_closed);
	tcase_add_test(tcase, test_stopped);
}

RUN_SUITE("loop-uring-send", fill)
