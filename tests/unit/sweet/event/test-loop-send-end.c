/* SPDX-License-Identifier: MIT */
/*
 * test-loop-send-end.c - unit tests of the event loop: messages of units that fail,
 * and the close of a descriptor whose message is pending.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc.h>

#include "event/loop.h"

#include "loop-fixture.h"
#include "loop-send-fixture.h"
#include "suite.h"
#include "unit-holds.h"

START_TEST(test_errors)
{
	struct linger now = {.l_onoff = 1};
	struct outlet outlet;
	size_t id;

	start(_i);
	/* A released hold. */
	outlet_open(&outlet, 0, 0);
	id = insert_held(1, 100, 0, NC_KIND_RECYCLED);
	ck_assert_int_eq(release_id(NULL, id), 0);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	outlet.ranges[0] = (struct NC_range){.id = id, .length = 100};
	outlet.send.message.range_count = 1;
	outlet.send.message.flags = 0;
	call(&runner, outlet_begin, &outlet);
	AWAIT(outlet.calls == 1);
	SEEN(outlet.result == -EINVAL && !outlet.early);
	outlet_close(&outlet);
	/* The peer has closed. */
	outlet_open(&outlet, 0, 0);
	ck_assert_int_eq(setsockopt(outlet.peer, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(outlet.peer);
	outlet.peer = -1;
	AWAIT(outlet.inlet.end != 1);
	outlet.send.message.header = "x";
	outlet.send.message.header_length = 1;
	call(&runner, outlet_begin, &outlet);
	AWAIT(outlet.calls == 1);
	SEEN(outlet.result == -EPIPE && !outlet.early);
	outlet_close(&outlet);
	stop();
}
END_TEST

/* A message of 8 MiB that its reader does not read. */
static void stuff(struct outlet *outlet, size_t id)
{
	outlet_open(outlet, 16384, 16384);
	for (unsigned i = 0; i < 64; i++)
		outlet->ranges[i] = (struct NC_range){.id = id, .length = 128 * KIB};
	outlet->send.message.range_count = 64;
	call(&runner, outlet_begin, outlet);
	settle(&runner);
	SEEN(outlet->calls == 0);
}

/* The peer disconnects in the middle: one error. */
START_TEST(test_reset)
{
	struct linger now = {.l_onoff = 1};
	struct outlet outlet;
	size_t id;

	start(_i);
	id = insert_held(1, 128 * KIB, 0, NC_KIND_APPENDED);
	stuff(&outlet, id);
	ck_assert_int_eq(setsockopt(outlet.peer, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(outlet.peer);
	outlet.peer = -1;
	AWAIT(outlet.calls == 1);
	SEEN(outlet.result == -ECONNRESET || outlet.result == -EPIPE);
	AWAIT(outlet.inlet.end != 1);
	settle(&runner);
	SEEN(outlet.calls == 1 && outlet.inlet.late == 0);
	ck_assert_int_eq(release_id(NULL, id), 0);
	outlet_close(&outlet);
	stop();
}
END_TEST

/* Closed while its message waits for space: no callback; sent bytes arrive. */
START_TEST(test_close_waiting)
{
	char *got = must_alloc(128 * KIB);
	struct outlet outlet;
	size_t id, have = 0;
	ssize_t more;

	start(_i);
	id = insert_held(9, 128 * KIB, 0, NC_KIND_APPENDED);
	stuff(&outlet, id);
	call(&runner, inlet_end, &outlet.inlet);
	outlet.closes = true;
	/* Everything is free now: the unit may be destroyed, and the sender be reused. */
	ck_assert_int_eq(release_id(NULL, id), 0);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	memset(&outlet.send, 0, sizeof(outlet.send));
	while ((more = read(outlet.peer, got, 128 * KIB - have % (128 * KIB))) > 0) {
		ck_assert_uint_eq(pattern_match(got, 9, have % (128 * KIB), (size_t)more), more);
		have += (size_t)more;
	}
	ck_assert_int_eq(more, 0);
	ck_assert_uint_gt(have, 0);
	settle(&runner);
	SEEN(outlet.calls == 0 && outlet.inlet.calls == 0);
	outlet_close(&outlet);
	stop();
	free(got);
}
END_TEST

static void begin_and_close(void *argument)
{
	struct outlet *outlet = argument;

	outlet_begin(outlet);
	loop_close_fd(runner.loop, outlet->inlet.fd);
}

/* Sent, but closed before its callback: it is not called any more; others are. */
static void begin_all(void *argument)
{
	struct outlet *outlets = argument;

	outlet_begin(&outlets[0]);
	begin_and_close(&outlets[1]);
	outlet_begin(&outlets[2]);
	begin_and_close(&outlets[3]);
}

START_TEST(test_close_untold)
{
	struct outlet outlets[5];
	char byte;

	start(_i);
	for (unsigned i = 0; i < 5; i++) {
		outlet_open(&outlets[i], 0, 0);
		outlets[i].send.message.header = "sent";
		outlets[i].send.message.header_length = 4;
	}
	call(&runner, begin_all, outlets);
	/* Afterwards the list of pending callbacks is still valid. */
	call(&runner, outlet_begin, &outlets[4]);
	AWAIT(outlets[4].calls == 1);
	settle(&runner);
	for (unsigned i = 0; i < 5; i++) {
		char got[4];

		read_exactly(outlets[i].peer, got, 4);
		ck_assert_mem_eq(got, "sent", 4);
		outlets[i].closes = i == 1 || i == 3;
		SEEN(outlets[i].calls == !outlets[i].closes);
		if (outlets[i].closes)
			ck_assert_int_eq(read(outlets[i].peer, &byte, 1), 0);
		outlet_close(&outlets[i]);
	}
	stop();
}
END_TEST

/* By the callback itself. */
START_TEST(test_close_itself)
{
	struct outlet outlet;
	char got[5];

	start(_i);
	outlet_open(&outlet, 0, 0);
	outlet.send.message.header = "sent";
	outlet.send.message.header_length = 4;
	outlet.closes = true;
	call(&runner, outlet_begin, &outlet);
	read_exactly(outlet.peer, got, 4);
	ck_assert_int_eq(read(outlet.peer, got, 1), 0);
	settle(&runner);
	SEEN(outlet.calls == 1 && outlet.inlet.calls == 0);
	outlet_close(&outlet);
	stop();
}
END_TEST

/* While a message waits for space, the same socket receives, pauses and resumes. */
static void pause_inlet(void *argument)
{
	loop_receive_pause(runner.loop, ((struct outlet *)argument)->inlet.fd);
}

static void resume_inlet(void *argument)
{
	loop_receive_resume(runner.loop, ((struct outlet *)argument)->inlet.fd);
}

START_TEST(test_both_ways)
{
	size_t total = 64 * 128 * KIB;
	char *got = must_alloc(total);
	struct outlet outlet;
	size_t id;

	start(_i);
	id = insert_held(5, 128 * KIB, 0, NC_KIND_APPENDED);
	stuff(&outlet, id);
	ck_assert_int_eq(write(outlet.peer, "hello", 5), 5);
	AWAIT(outlet.inlet.length == 5);
	call(&runner, pause_inlet, &outlet);
	settle(&runner);
	ck_assert_int_eq(write(outlet.peer, "again", 5), 5);
	read_exactly(outlet.peer, got, total / 2);
	call(&runner, resume_inlet, &outlet);
	AWAIT(outlet.inlet.length == 10);
	/* The peer can still receive after it has ended its own sending. */
	shutdown(outlet.peer, SHUT_WR);
	AWAIT(outlet.inlet.end == 0);
	read_exactly(outlet.peer, got + total / 2, total / 2);
	AWAIT(outlet.calls == 1);
	SEEN(outlet.result == 0 && outlet.inlet.late == 0);
	for (unsigned i = 0; i < 64; i++)
		expect(pattern_match(got + i * 128 * KIB, 5, 0, 128 * KIB) == 128 * KIB);
	ck_assert_int_eq(release_id(NULL, id), 0);
	outlet_close(&outlet);
	stop();
	free(got);
}
END_TEST

static void fill(TCase *tcase)
{
	int first = first_kind();

	tcase_add_loop_test(tcase, test_errors, first, KINDS);
	tcase_add_loop_test(tcase, test_reset, first, KINDS);
	tcase_add_loop_test(tcase, test_close_waiting, first, KINDS);
	tcase_add_loop_test(tcase, test_close_untold, first, KINDS);
	tcase_add_loop_test(tcase, test_close_itself, first, KINDS);
	tcase_add_loop_test(tcase, test_both_ways, first, KINDS);
}

RUN_SUITE("loop-send-end", fill)
