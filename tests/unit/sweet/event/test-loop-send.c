/* SPDX-License-Identifier: MIT */
/*
 * test-loop-send.c - unit tests of the event loop: messages of units to sockets that
 * accept them bit by bit.  Every test is run with each kind of loop; the loop has a
 * thread, the test is the reader.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "event/data-path.h"
#include "event/loop.h"

#include "loop-fixture.h"
#include "loop-send-fixture.h"

#include "suite.h"
#include "unit-holds.h"
#define TURN_MAX ((size_t)2 << 20) /* of loop.c */

static void outlet_begin_and_end(void *argument)
{
	struct outlet *outlet = argument;

	outlet_begin(outlet);
	inlet_end(&outlet->inlet);
}

/* Header and ranges of units of every kind, through buffers of two sizes. */
static void check_message(enum NC_kind kind, size_t fraglen, int size, unsigned flags)
{
	static const char header[] = "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n";
	static const struct NC_range parts[RANGES] = {
		{.offset = 0, .length = 100 * KIB + 77}, {.offset = 1000, .length = 50 * KIB},
		{.offset = 4095, .length = 40 * KIB},	 {.offset = 5, .length = 0},
		{.offset = 100 * KIB + 76, .length = 1},
	};
	size_t id[3], total = sizeof(header) - 1, at = total;
	struct outlet outlet;
	char *got;

	outlet_open(&outlet, size, size);
	for (unsigned i = 0; i < 3; i++)
		id[i] = insert_held(i, 100 * KIB + 77, fraglen, kind);
	for (unsigned i = 0; i < RANGES; i++) {
		outlet.ranges[i] = parts[i];
		outlet.ranges[i].id = id[i % 3];
		total += parts[i].length;
	}
	outlet.send.message.header = header;
	outlet.send.message.header_length = sizeof(header) - 1;
	outlet.send.message.range_count = RANGES;
	outlet.send.message.flags |= flags;
	call(&runner, outlet_begin, &outlet);
	got = must_alloc(total);
	read_exactly(outlet.peer, got, total);
	AWAIT(outlet.calls > 0);
	SEEN(outlet.result == 0 && outlet.send.message.skip == total);
	ck_assert_mem_eq(got, header, at);
	for (unsigned i = 0; i < RANGES; i++) {
		ck_assert_uint_eq(pattern_match(got + at, i % 3, parts[i].offset, parts[i].length),
				  parts[i].length);
		at += parts[i].length;
	}
	if (flags & NC_SEND_CLOSE)
		ck_assert_int_eq(read(outlet.peer, got, 1), 0);
	settle(&runner);
	SEEN(outlet.calls == 1 && !outlet.early);
	ck_assert(flags & NC_SEND_CLOSE || !readable(outlet.peer));
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(release_id(NULL, id[i]), 0);
	outlet_close(&outlet);
	free(got);
}

START_TEST(test_message)
{
	static const int sizes[] = {4096, 0, 4 << 20};

	start(_i);
	for (unsigned i = 0; i < 3; i++) {
		check_message(NC_KIND_RECYCLED, 0, sizes[i], 0);
		check_message(NC_KIND_RECYCLED, 1448, sizes[i], NC_SEND_CLOSE);
		check_message(NC_KIND_APPENDED, 0, sizes[i], NC_SEND_CLOSE);
		check_message(NC_KIND_APPENDED, 1448, sizes[i], 0);
	}
	stop();
}
END_TEST

static void send_by_posix(void *argument)
{
	(void)argument;
	loop_send_by(runner.loop, &data_path_posix);
}

/* The same without the library, followed by memory that is no unit. */
START_TEST(test_plain_calls)
{
	size_t length = 2 << 20;
	unsigned char *data = must_alloc(length);
	char *got = must_alloc(length + 4);
	struct outlet outlet;

	start(_i);
	call(&runner, send_by_posix, NULL);
	check_message(NC_KIND_RECYCLED, 1448, 4096, NC_SEND_CLOSE);
	check_message(NC_KIND_APPENDED, 0, 0, 0);
	pattern_fill(data, 8, 0, length);
	outlet_open(&outlet, 16384, 16384);
	outlet.send.message.header = "head";
	outlet.send.message.header_length = 4;
	outlet.send.text = (struct NC_text){.data = data, .length = length};
	outlet.send.message.texts = &outlet.send.text;
	outlet.send.message.text_count = 1;
	call(&runner, outlet_begin, &outlet);
	settle(&runner);
	SEEN(outlet.calls == 0);
	read_exactly(outlet.peer, got, length + 4);
	AWAIT(outlet.calls > 0);
	SEEN(outlet.calls == 1 && outlet.result == 0 && !outlet.early);
	ck_assert_uint_eq(pattern_match(got + 4, 8, 0, length), length);
	outlet_close(&outlet);
	stop();
	free(data);
	free(got);
}
END_TEST

/* More pieces than one system call accepts: the maximum of ranges. */
START_TEST(test_many_ranges)
{
	size_t size = 20 * KIB, total = size * NC_RANGES_MAX;
	char *got = must_alloc(total);

	start(_i);
	for (unsigned round = 0; round < 2; round++) {
		struct outlet outlet;
		size_t id = insert_held(7, size, 100, NC_KIND_RECYCLED);

		outlet_open(&outlet, round ? 8 << 20 : 0, round ? 8 << 20 : 0);
		for (unsigned i = 0; i < NC_RANGES_MAX; i++)
			outlet.ranges[i] = (struct NC_range){.id = id, .length = size};
		outlet.send.message.range_count = NC_RANGES_MAX;
		call(&runner, outlet_begin, &outlet);
		read_exactly(outlet.peer, got, total);
		AWAIT(outlet.calls > 0);
		SEEN(outlet.calls == 1 && outlet.result == 0 && !outlet.early);
		for (unsigned i = 0; i < NC_RANGES_MAX; i++)
			ck_assert_uint_eq(pattern_match(got + i * size, 7, 0, size), size);
		ck_assert_int_eq(release_id(NULL, id), 0);
		outlet_close(&outlet);
	}
	stop();
	free(got);
}
END_TEST

/* A long message that would fit at once is sent in turns; its end is not reported before. */
START_TEST(test_turns)
{
	size_t size = 1700 * KIB + 3, length = 3 * size;
	unsigned char *data = must_alloc(length);
	char *got = must_alloc(4 + 2 * length);

	start(_i);
	pattern_fill(data, 8, 0, length);
	for (unsigned round = 0; round < 4; round++) {
		bool posix = round % 2;
		size_t id = insert_held(7, size, 0, NC_KIND_RECYCLED);
		size_t total = 4 + length * (posix ? 2 : 1);
		struct outlet outlet;

		if (posix)
			call(&runner, send_by_posix, NULL);
		outlet_open(&outlet, 16 << 20, 16 << 20);
		for (unsigned i = 0; i < 3; i++)
			outlet.ranges[i] = (struct NC_range){.id = id, .length = size};
		outlet.send.message.range_count = 3;
		outlet.send.message.header = "head";
		outlet.send.message.header_length = 4;
		outlet.send.message.flags |= NC_SEND_CLOSE;
		outlet.send.text = (struct NC_text){data, length, 3};
		outlet.send.message.texts = &outlet.send.text;
		outlet.send.message.text_count = posix;
		if (round < 2) {
			call(&runner, outlet_begin, &outlet);
			read_exactly(outlet.peer, got, total);
			AWAIT(outlet.calls > 0);
			SEEN(outlet.calls == 1 && outlet.result == 0 && !outlet.early);
			ck_assert_mem_eq(got, "head", 4);
			for (unsigned i = 0; i < 3; i++)
				ck_assert_uint_eq(pattern_match(got + 4 + i * size, 7, 0, size),
						  size);
			if (posix)
				ck_assert_uint_eq(pattern_match(got + 4 + length, 8, 0, length),
						  length);
			ck_assert_int_eq(read(outlet.peer, got, 1), 0);
		} else {
			/* Closed between two turns: no callback. */
			call(&runner, outlet_begin_and_end, &outlet);
			settle(&runner);
			SEEN(outlet.calls == 0);
			outlet.closes = true;
		}
		ck_assert_uint_gt(outlet.first, 0);
		ck_assert_uint_le(outlet.first, TURN_MAX);
		ck_assert_int_eq(release_id(NULL, id), 0);
		outlet_close(&outlet);
	}
	stop();
	free(data);
	free(got);
}
END_TEST

#define FLOOD 64 /* messages of 1 MB, each started when the previous one is complete */

/* A socket that always has space, and a task that runs once in a turn. */
struct flood {
	struct outlet outlet; /* must be first */
	struct loop_task turn;
	unsigned left, told, most;
	bool over;
};

static ssize_t take_all(int socket, const struct NC_send *message)
{
	(void)socket;
	return (ssize_t)(message->ranges[0].length - message->skip);
}

static void flood_turn(struct loop_task *task)
{
	struct flood *flood = (struct flood *)((char *)task - offsetof(struct flood, turn));

	if (flood->told > flood->most)
		flood->most = flood->told;
	flood->told = 0;
	if (flood->left)
		loop_post(runner.loop, task);
	else
		EVENT(flood->over = true);
}

static void flood_sent(struct loop_send *op, int result)
{
	struct flood *flood = (struct flood *)op;

	expect(result == 0);
	flood->told++;
	flood->left--;
	op->message.skip = 0;
	if (flood->left)
		loop_send_start(runner.loop, op, flood->outlet.inlet.fd);
}

static void flood_begin(void *argument)
{
	static const struct data_path sink = {
		.name = "sink", .send = take_all, .send_apart = take_all};
	struct flood *flood = argument;

	loop_send_by(runner.loop, &sink);
	flood->turn.run = flood_turn;
	loop_post(runner.loop, &flood->turn);
	loop_send_start(runner.loop, &flood->outlet.send, flood->outlet.inlet.fd);
}

/* A connection with endless messages and a fast client lets others have turns. */
START_TEST(test_flood)
{
	struct flood flood = {.left = FLOOD};

	start(_i);
	outlet_open(&flood.outlet, 0, 0);
	flood.outlet.send.sent = flood_sent;
	flood.outlet.ranges[0].length = 1 << 20;
	flood.outlet.send.message.range_count = 1;
	call(&runner, flood_begin, &flood);
	AWAIT(flood.over);
	ck_assert_uint_ge(flood.most, 1);
	ck_assert_uint_le(flood.most, 2 * TURN_MAX >> 20);
	outlet_close(&flood.outlet);
	stop();
}
END_TEST

static struct outlet both[2];
static unsigned answers, reported; /* at the second answer: results of the first */

/* Answers what has come with a message that is sent at once. */
static void answer(struct loop_receive *op, const char *data, int length)
{
	struct outlet *outlet =
		(struct outlet *)((char *)op - offsetof(struct outlet, inlet.receive));

	(void)data;
	if (length <= 0)
		return;
	if (answers)
		reported = both[outlet == &both[0]].calls;
	outlet_begin(outlet);
	EVENT(answers++);
}

static void ask_both(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(write(both[i].peer, "?", 1), 1);
}

/* The result of one event's message is known before the next event of the turn. */
START_TEST(test_reported)
{
	char byte;

	start(_i);
	answers = reported = 0;
	for (unsigned i = 0; i < 2; i++) {
		outlet_open(&both[i], 0, 0);
		both[i].inlet.receive.received = answer;
		both[i].send.batch = false;
		both[i].send.message.header = "!";
		both[i].send.message.header_length = 1;
	}
	call(&runner, ask_both, NULL);
	for (unsigned i = 0; i < 2; i++)
		read_exactly(both[i].peer, &byte, 1);
	AWAIT(answers == 2 && both[0].calls == 1 && both[1].calls == 1);
	SEEN(reported == 1 && !both[0].early && !both[1].early);
	for (unsigned i = 0; i < 2; i++)
		outlet_close(&both[i]);
	stop();
}
END_TEST

/* An empty message completes like any other: later. */
START_TEST(test_empty)
{
	struct outlet outlet;

	start(_i);
	outlet_open(&outlet, 0, 0);
	for (unsigned i = 1; i < 4; i++) {
		call(&runner, outlet_begin, &outlet);
		AWAIT(outlet.calls == i);
		SEEN(outlet.result == 0 && !outlet.early);
	}
	ck_assert(!readable(outlet.peer));
	outlet_close(&outlet);
	stop();
}
END_TEST

#define ENDLESS 2000000u

/* A message that completes at once, repeated until it is told to stop. */
struct endless {
	struct outlet outlet; /* must be first */
	bool stops;
	bool over;
	unsigned calls;
};

static void endless_sent(struct loop_send *op, int result)
{
	struct endless *endless = (struct endless *)op;

	(void)result;
	if (!endless->stops && ++endless->calls < ENDLESS)
		loop_send_start(runner.loop, op, op->fd);
	else
		EVENT(endless->over = true);
}

static void endless_stop(void *argument)
{
	((struct endless *)argument)->stops = true;
}

/* A connection that sends one message after the other does not delay the others. */
START_TEST(test_endless)
{
	struct endless endless = {.calls = 0};

	start(_i);
	outlet_open(&endless.outlet, 0, 0);
	endless.outlet.send.sent = endless_sent;
	call(&runner, outlet_begin, &endless.outlet);
	call(&runner, endless_stop, &endless);
	AWAIT(endless.over);
	ck_assert_uint_lt(endless.calls, ENDLESS);
	outlet_close(&endless.outlet);
	stop();
}
END_TEST

static void fill(TCase *tcase)
{
	int first = first_kind();

	tcase_add_loop_test(tcase, test_message, first, KINDS);
	tcase_add_loop_test(tcase, test_plain_calls, first, KINDS);
	tcase_add_loop_test(tcase, test_many_ranges, first, KINDS);
	tcase_add_loop_test(tcase, test_turns, first, KINDS);
	tcase_add_loop_test(tcase, test_flood, first, KINDS);
	tcase_add_loop_test(tcase, test_reported, first, KINDS);
	tcase_add_loop_test(tcase, test_empty, first, KINDS);
	tcase_add_loop_test(tcase, test_endless, first, KINDS);
}

RUN_SUITE("loop-send", fill)
