/* SPDX-License-Identifier: MIT */
/*
 * test-loop-uring-send-zerocopy.c - unit tests of loop-uring-send.c: large messages that leave
 * together without a copy, from memory as it is or registered with the loop's ring.  The loop
 * has a thread, the test is the reader.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <nabc.h>

#include "event/loop.h"

#include "loop-fixture.h"
#include "loop-send-fixture.h"
#include "loop-uring-fixture.h"
#include "nabc-fixture.h"
#include "pinned.h"
#include "suite.h"
#include "unit-holds.h"

#define MANY 10u

static struct outlet many[MANY];

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
	size_t id[MANY];

	start(0);
	if (!use_zerocopy()) {
		stop();
		return;
	}
	for (unsigned i = 0; i < MANY; i++) {
		outlet_open(&many[i], ROOM, ROOM);
		id[i] = insert_held(i, LARGE + i, 0, i % 2 ? NC_KIND_APPENDED : NC_KIND_RECYCLED);
		set_message(&many[i], id[i], LARGE + i);
	}
	before = counts_now();
	call(&runner, begin_burst, &(struct burst){many, MANY});
	for (unsigned i = 0; i < MANY; i++) {
		/* Its memory is filled again as soon as the kernel permits it. */
		AWAIT(many[i].calls > 0);
		ck_assert_int_eq(release_id(NULL, id[i]), 0);
		ck_assert_int_eq(NC_destroy(NULL, id[i]), 0);
		id[i] = insert_held(99, LARGE + i, 0, NC_KIND_RECYCLED);
		expect_message(many[i].peer, i, LARGE + i);
	}
	settle(&runner);
	after = counts_now();
	ck_assert_uint_eq(after.batched - before.batched, MANY);
	ck_assert_uint_eq(after.sends, before.sends);
	for (unsigned i = 0; i < MANY; i++) {
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
	tcase_add_test(tcase, test_zerocopy);
	tcase_add_test(tcase, test_zerocopy_full);
	tcase_add_test(tcase, test_zerocopy_closed);
	tcase_add_test(tcase, test_not_settled);
	tcase_add_test(tcase, test_registered);
}

RUN_SUITE("loop-uring-send-zerocopy", fill)
