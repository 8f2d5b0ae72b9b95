/* SPDX-License-Identifier: MIT */
/*
 * test-send-window.c - unit tests of send-window.c: what a worker may send when, and a
 * great many workers that send anything.  Single-threaded.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <nabc-worker.h>

#include "base/hash-table.h"
#include "wire/send-window.h"
#include "wire/wire.h"

#include "suite.h"

#define KEEP NC_RESPONSE_KEEP
#define MORE NC_RESPONSE_MORE
#define PIECE NC_RESPONSE_PIECE
#define ABORTED NC_RESPONSE_ABORTED
#define TAKEN NC_RESPONSE_TAKEN
#define PASS NC_SEND_WINDOW_PASS
#define DROP NC_SEND_WINDOW_DROP

static struct nc_send_windows windows;

static int judge(uint64_t tag, unsigned flags)
{
	struct nc_wire_response record = {
		.tag = tag, .flags = flags, .status = flags & (PIECE | ABORTED | TAKEN) ? 0 : 200};

	return nc_send_windows_judge(&windows, &record);
}

START_TEST(test_order)
{
	/* In one record, any number of times: the tag is the caller's responsibility. */
	ck_assert_int_eq(judge(1, 0), PASS);
	ck_assert_int_eq(judge(1, KEEP), PASS);
	ck_assert(!nc_send_windows_any(&windows));
	/* In pieces. */
	ck_assert_int_eq(judge(1, PIECE), -EPROTO);
	ck_assert_int_eq(judge(1, MORE), PASS);
	ck_assert_int_eq(judge(2, PIECE | MORE), -EPROTO);
	ck_assert_int_eq(judge(1, 0), -EPROTO);
	ck_assert_int_eq(judge(1, MORE), -EPROTO);
	ck_assert_int_eq(judge(1, PIECE | MORE | KEEP), PASS);
	ck_assert_int_eq(judge(2, 0), PASS);
	ck_assert_int_eq(judge(1, PIECE), PASS);
	ck_assert_uint_eq(windows.table.count, 0);
	ck_assert_int_eq(judge(1, PIECE), -EPROTO);
	/* Interim responses, before the response begins. */
	ck_assert_int_eq(judge(1, NC_RESPONSE_INTERIM), PASS);
	ck_assert_ptr_null(nc_send_windows_find(&windows, 1));
	ck_assert_int_eq(nc_send_windows_open(&windows, 1, 1), 0);
	ck_assert_int_eq(judge(1, NC_RESPONSE_INTERIM), PASS);
	ck_assert_int_eq(judge(1, MORE), PASS);
	ck_assert_int_eq(judge(1, NC_RESPONSE_INTERIM), -EPROTO);
	ck_assert_int_eq(judge(1, PIECE), PASS);
	/* Aborted, begun or not. */
	ck_assert_int_eq(judge(1, ABORTED), PASS);
	ck_assert_int_eq(judge(1, MORE), PASS);
	ck_assert_int_eq(judge(1, ABORTED), PASS);
	ck_assert_int_eq(judge(1, PIECE | MORE), -EPROTO);
	ck_assert_uint_eq(windows.table.count, 0);
	nc_send_windows_fini(&windows);
}
END_TEST

START_TEST(test_window)
{
	struct nc_send_window *window;

	ck_assert_int_eq(judge(1, MORE), PASS);
	for (unsigned i = 1; i < NC_WORKER_WINDOW; i++)
		ck_assert_int_eq(judge(1, PIECE | MORE), PASS);
	ck_assert_int_eq(judge(1, PIECE | MORE), -EPROTO);
	/* A sent piece counts only once the worker was told. */
	for (unsigned i = 1; i < NC_WORKER_WINDOW / 2; i++) {
		ck_assert_ptr_null(nc_send_windows_sent(&windows, 1));
		ck_assert_int_eq(judge(1, PIECE | MORE), -EPROTO);
	}
	window = nc_send_windows_sent(&windows, 1);
	ck_assert_ptr_nonnull(window);
	ck_assert_uint_eq(window->credit, NC_WORKER_WINDOW / 2);
	window->credit = 0;
	for (unsigned i = 0; i < NC_WORKER_WINDOW / 2; i++)
		ck_assert_int_eq(judge(1, PIECE | MORE), PASS);
	ck_assert_int_eq(judge(1, PIECE | MORE), -EPROTO);
	/* More than were there never count as sent. */
	for (unsigned i = 0; i < NC_WORKER_WINDOW; i++)
		(void)nc_send_windows_sent(&windows, 1);
	window = nc_send_windows_find(&windows, 1);
	ck_assert_uint_eq(window->credit, NC_WORKER_WINDOW);
	ck_assert_ptr_null(nc_send_windows_sent(&windows, 1));
	ck_assert_ptr_null(nc_send_windows_sent(&windows, 2));
	/* The last one needs no window. */
	ck_assert_int_eq(judge(1, PIECE), PASS);
	ck_assert_ptr_null(nc_send_windows_sent(&windows, 1));
	nc_send_windows_fini(&windows);
}
END_TEST

START_TEST(test_broken)
{
	nc_send_windows_break(&windows, 1);
	ck_assert_int_eq(judge(1, MORE), PASS);
	nc_send_windows_break(&windows, 1);
	for (unsigned i = 1; i < NC_WORKER_WINDOW; i++)
		ck_assert_int_eq(judge(1, PIECE | MORE), DROP);
	/* Unwanted pieces are limited, too. */
	ck_assert_int_eq(judge(1, PIECE | MORE), -EPROTO);
	ck_assert_int_eq(judge(1, ABORTED), DROP);
	ck_assert_int_eq(judge(1, MORE), PASS);
	nc_send_windows_break(&windows, 1);
	ck_assert_int_eq(judge(1, PIECE), DROP);
	ck_assert_uint_eq(windows.table.count, 0);
	nc_send_windows_fini(&windows);
}
END_TEST

static int judge_switch(uint64_t tag)
{
	struct nc_wire_response record = {.tag = tag, .flags = MORE, .status = 101};

	return nc_send_windows_judge(&windows, &record);
}

/* A response 101: pieces in both directions, and as many of these as the server permits. */
START_TEST(test_switch)
{
	struct nc_send_window *window;

	for (unsigned tag = 0; tag <= NC_WORKER_STREAMS_MAX; tag++)
		ck_assert_int_eq(judge_switch(tag), PASS);
	ck_assert_uint_eq(windows.begun, 0);
	ck_assert_int_eq(judge(NC_WORKER_STREAMS_MAX + 1, MORE), PASS);
	ck_assert_int_eq(judge_switch(1), -EPROTO);
	/* It takes what it was given, and its own pieces have a window. */
	window = nc_send_windows_find(&windows, 1);
	ck_assert(window->body);
	ck_assert_int_eq(judge(1, TAKEN), -EPROTO);
	window->pieces = 1;
	ck_assert_int_eq(judge(1, TAKEN), PASS);
	for (unsigned i = 1; i < NC_WORKER_WINDOW; i++)
		ck_assert_int_eq(judge(1, PIECE | MORE), PASS);
	ck_assert_int_eq(judge(1, PIECE | MORE), -EPROTO);
	ck_assert_int_eq(judge(1, PIECE), PASS);
	ck_assert_uint_eq(windows.begun, 1);
	/* A request with a body in pieces cannot have both. */
	ck_assert_int_eq(nc_send_windows_open(&windows, 5000, 1), 0);
	ck_assert_int_eq(judge_switch(5000), -EPROTO);
	nc_send_windows_fini(&windows);
}
END_TEST

START_TEST(test_bound)
{
	for (unsigned tag = 0; tag < NC_WORKER_STREAMS_MAX; tag++)
		ck_assert_int_eq(judge(tag, MORE), PASS);
	ck_assert_int_eq(judge(NC_WORKER_STREAMS_MAX, MORE), -EPROTO);
	ck_assert_uint_eq(windows.table.count, NC_WORKER_STREAMS_MAX);
	/* Other requests still get responses. */
	ck_assert_int_eq(judge(NC_WORKER_STREAMS_MAX, 0), PASS);
	for (unsigned tag = 0; tag < NC_WORKER_STREAMS_MAX; tag += 2)
		ck_assert_int_eq(judge(tag, PIECE), PASS);
	for (unsigned tag = 1; tag < NC_WORKER_STREAMS_MAX; tag += 2)
		ck_assert_int_eq(judge(tag, ABORTED), PASS);
	ck_assert_uint_eq(windows.table.count, 0);
	nc_send_windows_fini(&windows);
}
END_TEST

START_TEST(test_bodies)
{
	struct nc_send_window *window;

	ck_assert_int_eq(judge(1, TAKEN), -EPROTO);
	ck_assert_int_eq(nc_send_windows_open(&windows, 1, 1), 0);
	ck_assert_int_eq(nc_send_windows_open(&windows, 1, 1), -EINVAL);
	ck_assert_int_eq(judge(1, TAKEN), -EPROTO);
	window = nc_send_windows_find(&windows, 1);
	window->pieces = 2;
	ck_assert_int_eq(judge(1, TAKEN), PASS);
	/* A response may begin before the whole body has arrived. */
	ck_assert_int_eq(judge(1, PIECE), -EPROTO);
	ck_assert_int_eq(judge(1, MORE), PASS);
	ck_assert_int_eq(judge(1, TAKEN), PASS);
	ck_assert_int_eq(judge(1, TAKEN), -EPROTO);
	ck_assert_int_eq(judge(1, PIECE), PASS);
	ck_assert_int_eq(judge(1, TAKEN), -EPROTO);
	ck_assert_uint_eq(windows.table.count, 0);
	/* Or end. */
	ck_assert_int_eq(nc_send_windows_open(&windows, 1, 1), 0);
	ck_assert_int_eq(judge(1, 0), PASS);
	ck_assert_int_eq(nc_send_windows_open(&windows, 1, 1), 0);
	ck_assert_int_eq(judge(1, ABORTED), PASS);
	ck_assert_int_eq(nc_send_windows_open(&windows, 1, 1), 0);
	nc_send_windows_close(&windows, 1);
	nc_send_windows_close(&windows, 1);
	ck_assert_uint_eq(windows.table.count, 0);
	/* Bodies do not count as begun responses. */
	for (unsigned tag = 0; tag <= NC_WORKER_STREAMS_MAX; tag++)
		ck_assert_int_eq(nc_send_windows_open(&windows, tag, 1), 0);
	for (unsigned tag = 0; tag < NC_WORKER_STREAMS_MAX; tag++)
		ck_assert_int_eq(judge(tag, MORE), PASS);
	ck_assert_int_eq(judge(NC_WORKER_STREAMS_MAX, MORE), -EPROTO);
	ck_assert_int_eq(judge(0, PIECE | MORE), PASS);
	ck_assert_int_eq(judge(0, PIECE), PASS);
	ck_assert_int_eq(judge(NC_WORKER_STREAMS_MAX, MORE), PASS);
	nc_send_windows_fini(&windows);
}
END_TEST

/* Against a model with a counter for each of a few tags. */
START_TEST(test_random)
{
	static const unsigned kinds[] = {0, KEEP, MORE, PIECE, PIECE | MORE, PIECE | MORE, ABORTED};
	struct {
		bool begun, broken;
		unsigned out, told;
	} model[4] = {0};
	uint64_t state = 7;

	for (unsigned i = 0; i < scaled(200000); i++) {
		unsigned tag = random_next(&state) % 4, flags = kinds[random_next(&state) % 7];
		bool piece = flags & PIECE, good;
		int verdict;

		if (random_next(&state) % 4 == 0) {
			bool some = model[tag].told < model[tag].out;
			struct nc_send_window *window = nc_send_windows_sent(&windows, tag);

			model[tag].told += some;
			some &= model[tag].told >= NC_WORKER_WINDOW / 2;
			ck_assert_int_eq(!!window, some);
			if (window) {
				model[tag].out -= model[tag].told;
				model[tag].told = 0;
				window->credit = 0;
			}
			continue;
		}
		if (random_next(&state) % 64 == 0) {
			nc_send_windows_break(&windows, tag);
			model[tag].broken = model[tag].begun;
		}
		good = flags & ABORTED || piece == model[tag].begun;
		if (flags & MORE && model[tag].out == NC_WORKER_WINDOW)
			good = false;
		verdict = judge(tag, flags);
		ck_assert_int_eq(verdict, !good ? -EPROTO : model[tag].broken ? DROP : PASS);
		if (!good)
			continue;
		if (flags & MORE) {
			model[tag].begun = true;
			model[tag].out++;
		} else {
			memset(&model[tag], 0, sizeof(model[tag]));
		}
	}
	nc_send_windows_fini(&windows);
}
END_TEST

/* Requests with bodies are withdrawn by their numbers; a response without one stays. */
START_TEST(test_withdraw)
{
	ck_assert_int_eq(judge(50, MORE), PASS);
	for (uint64_t number = 1; number <= 9; number++)
		ck_assert_int_eq(nc_send_windows_open(&windows, 100 + number, number), 0);
	nc_send_windows_withdraw(&windows, 10, 20);
	ck_assert_uint_eq(windows.table.count, 10);
	nc_send_windows_withdraw(&windows, 4, 6);
	nc_send_windows_withdraw(&windows, 9, 9);
	for (uint64_t number = 1; number <= 9; number++)
		ck_assert_int_eq(!nc_send_windows_find(&windows, 100 + number),
				 (number >= 4 && number <= 6) || number == 9);
	ck_assert_int_eq(nc_send_windows_open(&windows, 105, 10), 0);
	nc_send_windows_withdraw(&windows, 0, UINT64_MAX);
	ck_assert_uint_eq(windows.table.count, 1);
	ck_assert_uint_eq(windows.begun, 1);
	ck_assert_int_eq(judge(50, PIECE), PASS);
	nc_send_windows_fini(&windows);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_order);
	tcase_add_test(tcase, test_window);
	tcase_add_test(tcase, test_broken);
	tcase_add_test(tcase, test_switch);
	tcase_add_test(tcase, test_bound);
	tcase_add_test(tcase, test_bodies);
	tcase_add_test(tcase, test_withdraw);
	tcase_add_test(tcase, test_random);
}

RUN_SUITE("send-window", fill)
