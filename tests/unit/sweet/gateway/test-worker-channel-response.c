/* SPDX-License-Identifier: MIT */
/*
 * test-worker-channel-response.c - unit tests of worker-channel-response.c: records
 * become the response of a transaction, whole or in pieces, and invalid ones fail.
 * The test makes the records: there is no worker.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "backend/backend-call.h"
#include "backend/backpressure.h"
#include "base/budget.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/page-memory.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "event/piece.h"
#include "gateway/pool-process.h"
#include "gateway/worker-channel-internal.h"
#include "gateway/worker-channel.h"
#include "http/body.h"

#include "backend-fixture.h"
#include "call-fixture.h"
#include "channel-fixture.h"
#include "held-unit.h"
#include "suite.h"

static struct NC_response response_of(int status, const char *lines, const struct NC_range *range)
{
	struct NC_response response = NC_RESPONSE_INIT(.status = status, .headers = lines,
						       .headers_length = strlen(lines));

	if (range) {
		response.body = *range;
		response.ranges = range;
		response.holds = holds_of_ranges(range, 1);
		response.range_count = 1;
	}
	return response;
}

static void end_call(struct backend_call *call)
{
	finish_channel_call(call);
	timer_stop(&call->timer);
	backpressure_end(call);
	end_channel();
	ck_assert_int_eq(NC_cache_close(cache), 0);
}

START_TEST(test_one_unit)
{
	struct NC_response response;
	struct backend_call *call;
	struct NC_range range;

	begin_channel();
	call = make_call(0);
	range = held(100);
	response = response_of(200, "Content-Type: a/b\r\n", &range);
	worker_channel_response(&channel, call, &response);
	ck_assert_uint_eq(seen.done, 1);
	ck_assert_uint_eq(transactions[0].piece.range.id, range.id);
	ck_assert_uint_eq(transactions[0].response.length, 100);
	ck_assert(!transaction_has_next(&transactions[0]));
	ck_assert_uint_eq(pages.held, 100);
	ck_assert_uint_eq(atomic_load(&thread.counters->worker_bodies), 100);
	finish_channel_call(call);
	ck_assert_uint_eq(holds(range), 0);
	end_call(call);
}
END_TEST

START_TEST(test_list_and_bytes)
{
	struct NC_range ranges[2];
	struct NC_response response;
	struct backend_call *call;

	begin_channel();
	call = make_call(0);
	ranges[0] = held(100);
	ranges[1] = held(50);
	response = response_of(200, "", NULL);
	response.ranges = ranges;
	response.holds = holds_of_ranges(ranges, 2);
	response.range_count = 2;
	channel_call_of(call)->shared = &ahead;
	worker_channel_response(&channel, call, &response);
	ck_assert_uint_eq(transactions[0].response.length, 150);
	ck_assert_uint_eq(transactions[0].piece.range_count, 2);
	finish_channel_call(call);
	ck_assert_uint_eq(holds(ranges[0]) + holds(ranges[1]), 0);

	call = make_call(1);
	response = response_of(200, "", NULL);
	response.data = memset(must_alloc(70), 'x', 70);
	response.data_length = 70;
	worker_channel_response(&channel, call, &response);
	ck_assert_uint_eq(transactions[1].response.length, 70);
	ck_assert_uint_eq(transactions[1].piece.length, 70);
	ck_assert_ptr_eq(transactions[1].piece.data, response.data);
	end_call(call);
}
END_TEST

/* A status without a body releases the received one. */
START_TEST(test_no_body)
{
	static const int status[] = {204, 304};
	struct NC_response response;
	struct backend_call *call;
	struct NC_range range;

	begin_channel();
	call = make_call(0);
	range = held(100);
	response = response_of(status[_i], "", &range);
	worker_channel_response(&channel, call, &response);
	ck_assert_int_eq(transactions[0].response.status, status[_i]);
	ck_assert_uint_eq(transactions[0].response.length, 0);
	ck_assert_uint_eq(transactions[0].piece.length, 0);
	ck_assert_uint_eq(holds(range), 0);
	end_call(call);
}
END_TEST

START_TEST(test_bad_lines)
{
	static const char *const lines[] = {"no colon\r\n", "A: 12345678901234567890\r\n"};
	struct NC_response response;
	struct backend_call *call;
	struct NC_range range;

	begin_channel();
	settings.max_response_header = 20;
	call = make_call(0);
	range = held(100);
	response = response_of(200, lines[_i], &range);
	worker_channel_response(&channel, call, &response);
	ck_assert_uint_eq(seen.done, 1);
	ck_assert_int_eq(transactions[0].response.status, 502);
	ck_assert_uint_eq(channel.failures, 1);
	ck_assert_uint_eq(holds(range), 0);
	end_call(call);
}
END_TEST

/* A call whose first record has arrived, with a piece of 10 bytes; others follow. */
static struct backend_call *begin_pieces(const char *lines)
{
	struct backend_call *call;
	struct channel_call *own;
	struct NC_response response;
	struct NC_range range;

	begin_channel();
	call = make_call(0);
	own = channel_call_of(call);
	own->channel = &channel;
	own->shared = &ahead;
	channel.pending[0].call = call;
	channel.in_flight = 1;
	process.load = 1;
	range = held(10);
	response = response_of(200, lines, &range);
	response.flags = NC_RESPONSE_MORE;
	worker_channel_response(&channel, call, &response);
	return call;
}

/* last: the call has left the channel before, as in worker-channel.c. */
static struct NC_range take_piece(struct backend_call *call, size_t length, bool last)
{
	struct NC_range range = length ? held(length) : (struct NC_range){0};
	struct NC_response response = response_of(0, "", length ? &range : NULL);

	response.flags = NC_RESPONSE_PIECE | (last ? 0 : NC_RESPONSE_MORE);
	if (last)
		worker_channel_leave(&channel, &channel.pending[0]);
	worker_channel_piece(&channel, call, &response);
	return range;
}

static enum respond next_piece(void)
{
	return transaction_next(&transactions[0]);
}

START_TEST(test_pieces)
{
	struct backend_call *call = begin_pieces("");
	struct NC_range range;

	ck_assert_uint_eq(seen.done, 1);
	ck_assert_uint_eq(transactions[0].response.length, TRANSACTION_UNKNOWN);
	ck_assert(transactions[0].response.live);
	ck_assert_uint_eq(transactions[0].piece.length, 10);
	/* A waiting piece is there at once. */
	range = take_piece(call, 20, false);
	ck_assert_uint_eq(seen.done, 1);
	ck_assert_int_eq(next_piece(), RESPOND_NOW);
	ck_assert_uint_eq(transactions[0].piece.length, 20);
	/* A requested piece is announced, and the wait has a limit. */
	ck_assert_int_eq(next_piece(), RESPOND_LATER);
	ck_assert_uint_eq(holds(range), 0);
	ck_assert(timer_is_running(&call->timer));
	take_piece(call, 30, false);
	ck_assert_uint_eq(seen.done, 2);
	ck_assert_uint_eq(transactions[0].piece.length, 30);
	ck_assert(!timer_is_running(&call->timer));
	ck_assert_int_eq(next_piece(), RESPOND_LATER);
	take_piece(call, 0, true);
	ck_assert_uint_eq(seen.done, 3);
	ck_assert_uint_eq(transactions[0].piece.length, 0);
	ck_assert_int_eq(transactions[0].response.status, 200);
	end_call(call);
}
END_TEST

/* The end must not be taken for a valid one. */
START_TEST(test_aborted)
{
	struct NC_response response = NC_RESPONSE_INIT(.flags = NC_RESPONSE_ABORTED);
	struct backend_call *call = begin_pieces("");

	take_piece(call, 20, false);
	worker_channel_leave(&channel, &channel.pending[0]);
	worker_channel_piece(&channel, call, &response);
	/* Bytes received before are still sent. */
	ck_assert_int_eq(transactions[0].response.status, 200);
	ck_assert_int_eq(next_piece(), RESPOND_NOW);
	ck_assert_uint_eq(transactions[0].piece.length, 20);
	ck_assert_int_eq(transactions[0].response.status, 200);
	ck_assert_int_eq(next_piece(), RESPOND_NOW);
	ck_assert_int_eq(transactions[0].response.status, 0);
	ck_assert_uint_eq(atomic_load(&thread.counters->worker_failures), 1);
	end_call(call);
}
END_TEST

/* A response shorter than announced is cut off; excess bytes are not sent. */
START_TEST(test_announced)
{
	struct backend_call *call = begin_pieces("Content-Length: 25\r\n");
	struct NC_range range;

	ck_assert_uint_eq(transactions[0].response.length, 25);
	if (_i) {
		take_piece(call, 14, true);
		ck_assert_int_eq(next_piece(), RESPOND_NOW);
		ck_assert_int_eq(next_piece(), RESPOND_NOW);
		ck_assert_int_eq(transactions[0].response.status, 0);
	} else {
		take_piece(call, 20, false);
		range = take_piece(call, 7, true);
		ck_assert_int_eq(next_piece(), RESPOND_NOW);
		ck_assert_uint_eq(transactions[0].piece.length, 15);
		ck_assert_uint_eq(holds(range), 0);
		ck_assert_int_eq(next_piece(), RESPOND_NOW);
		ck_assert_uint_eq(transactions[0].piece.length, 0);
		ck_assert_int_eq(transactions[0].response.status, 200);
	}
	end_call(call);
}
END_TEST

/* The worker waits for a slow client; and no longer when the client has caught up. */
START_TEST(test_window)
{
	struct backend_call *call;

	call = begin_pieces("");
	settings.stream_ahead = 4096;
	/* Each costs a page, however small it is. */
	for (unsigned i = 0; i < NC_WORKER_WINDOW; i++)
		take_piece(call, 20, false);
	ck_assert_uint_gt(channel_call_of(call)->kept, NC_WORKER_WINDOW / 2);
	ck_assert_uint_eq(ahead.used, (NC_WORKER_WINDOW + 1) * 4096);
	ck_assert(timer_is_running(&call->timer));
	for (unsigned i = 0; i < NC_WORKER_WINDOW; i++)
		ck_assert_int_eq(next_piece(), RESPOND_NOW);
	ck_assert_uint_le(channel_call_of(call)->kept, 1);
	ck_assert(!timer_is_running(&call->timer));
	ck_assert_uint_eq(ahead.used, 4096);
	take_piece(call, 0, true);
	end_call(call);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_one_unit);
	tcase_add_test(tcase, test_list_and_bytes);
	tcase_add_loop_test(tcase, test_no_body, 0, 2);
	tcase_add_loop_test(tcase, test_bad_lines, 0, 2);
	tcase_add_test(tcase, test_pieces);
	tcase_add_test(tcase, test_aborted);
	tcase_add_loop_test(tcase, test_announced, 0, 2);
	tcase_add_test(tcase, test_window);
}

RUN_SUITE("worker-channel-response", fill)
