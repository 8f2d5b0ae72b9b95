/* SPDX-License-Identifier: MIT */
/*
 * test-worker-channel.c - unit tests of worker-channel.c with a real worker: a call
 * and its slot until the last record, orphaned calls, and workers that send invalid
 * records or exit.
 */
#include <nabc.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend-call.h"
#include "backend/backpressure.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/client-calls.h"
#include "core/page-memory.h"
#include "core/transaction.h"
#include "event/piece.h"
#include "gateway/pool-process.h"
#include "gateway/worker-channel-internal.h"
#include "gateway/worker-channel.h"

#include "backend-fixture.h"
#include "call-fixture.h"
#include "channel-fixture.h"
#include "suite.h"
#include "worker-channel-fixture.h"

START_TEST(test_response)
{
	struct backend_call *call;
	uint32_t generation;
	const char *bytes;
	size_t size;

	begin_worker();
	for (unsigned i = 0; i < 2; i++) {
		generation = channel.pending[0].generation;
		seen.done = 0;
		call = send_call(0, "echo", "VALUE=some text");
		ck_assert_ptr_eq(channel_call_of(call)->channel, &channel);
		ck_assert_uint_eq(channel.in_flight, 1);
		ck_assert_uint_eq(process.load, 1);
		SERVE_UNTIL(seen.done);
		ck_assert_int_eq(transactions[0].response.status, 200);
		ck_assert_int_eq(call->state, CALL_ANSWERED);
		ck_assert_uint_eq(transactions[0].response.length, 9);
		ck_assert_mem_eq(transactions[0].response.head, "X-Channel: 0\r\n", 11);
		bytes = NC_data(&transactions[0].piece.hold, &size, 0);
		ck_assert_ptr_nonnull(bytes);
		ck_assert_mem_eq(bytes, "some text", 9);
		/* The slot is free; its next tag differs. */
		ck_assert_ptr_null(channel_call_of(call)->channel);
		ck_assert_uint_eq(channel.in_flight, 0);
		ck_assert_uint_eq(process.load, 0);
		ck_assert_uint_eq(channel.pending[0].generation, generation + 1);
		ck_assert_uint_eq(pages.held, 9);
		finish_channel_call(call);
		ck_assert_uint_eq(pages.held, 0);
		ck_assert_ptr_null(NC_data(&transactions[0].piece.hold, &size, 0));
	}
	ck_assert_uint_eq(channel.requests, 2);
	ck_assert_uint_eq(channel.ended, 2);
	ck_assert_uint_eq(channel.failures, 0);
	end_worker();
}
END_TEST

START_TEST(test_stream)
{
	struct backend_call *call;
	uint64_t bytes = 0;

	begin_worker();
	call = send_call(0, "stream", "COUNT=20");
	SERVE_UNTIL(seen.done);
	ck_assert_uint_eq(transactions[0].response.length, TRANSACTION_UNKNOWN);
	ck_assert_uint_eq(process.streams, 1);
	for (unsigned told = 1;; told++) {
		uint64_t piece = transactions[0].piece.length;

		bytes += piece;
		if (!piece)
			break;
		if (transaction_next(&transactions[0]) == RESPOND_LATER)
			SERVE_UNTIL(seen.done > told);
		else
			seen.done = told + 1;
	}
	/* "0," to "19,", in their units. */
	ck_assert_uint_eq(bytes, 10 * 2 + 10 * 3);
	ck_assert_int_eq(transactions[0].response.status, 200);
	ck_assert_uint_eq(process.streams, 0);
	finish_channel_call(call);
	backpressure_end(call);
	end_worker();
}
END_TEST

/* Its slot is occupied until the worker has sent the last record. */
START_TEST(test_gone)
{
	struct client_calls *calls = client_calls_new();
	struct backend_call *call;

	begin_worker();
	stop_worker();
	call = send_call(0, "echo", "VALUE=x");
	transactions[0].peer.calls = calls;
	backend_call_start_timer(call);
	ck_assert(!worker_channel_settle(&channel));
	worker_channel_gone(call);
	ck_assert_uint_eq(seen.done, 1);
	ck_assert(!timer_is_running(&call->timer));
	ck_assert_ptr_null(channel_call_of(call)->channel);
	ck_assert_uint_eq(channel.in_flight, 1);
	ck_assert_uint_eq(channel.orphaned, 1);
	ck_assert_uint_eq(calls->abandoned, 1);
	ck_assert(timer_is_running(&channel.drain_timer));
	finish_channel_call(call);
	ck_assert_uint_eq(calls->abandoned, 1);
	continue_worker();
	SERVE_UNTIL(channel.in_flight == 0);
	ck_assert_uint_eq(calls->abandoned, 0);
	ck_assert_uint_eq(calls->users, 1);
	client_calls_release(calls);
	ck_assert_uint_eq(seen.done, 1);
	ck_assert(!process.doomed);
	end_worker();
}
END_TEST

#define JUST_NOW (UINT64_C(1) << 60) /* by the clock of a thread that is ahead */

/* A worker that does not end such a call is killed, but not while another response is sent. */
START_TEST(test_drain)
{
	struct backend_call *call;

	begin_worker();
	stop_worker();
	call = send_call(0, "echo", NULL);
	worker_channel_gone(call);
	/* It gets its full time. */
	expire(&channel.drain_timer);
	ck_assert(!process.doomed);
	settings.answer_ms = 0;
	process.streams = 1;
	expire(&channel.drain_timer);
	ck_assert(!process.doomed);
	process.streams = 0;
	process.streamed_ms = JUST_NOW;
	expire(&channel.drain_timer);
	ck_assert(!process.doomed);
	process.streamed_ms = 0;
	expire(&channel.drain_timer);
	ck_assert(process.doomed);
	await_death();
	worker_channel_abandon(&channel);
	ck_assert_uint_eq(channel.failures, 0);
	end_worker();
}
END_TEST

START_TEST(test_too_late)
{
	struct backend_call *call;

	begin_worker();
	stop_worker();
	call = send_call(0, "echo", NULL);
	process.streams = 1;
	worker_channel_too_late(call);
	process.streams = 0;
	ck_assert_int_eq(transactions[0].response.status, 503);
	ck_assert(!process.doomed);
	/* The other response has ended too late for this call. */
	call = send_call(1, "echo", NULL);
	process.streamed_ms = JUST_NOW;
	worker_channel_too_late(call);
	process.streamed_ms = 0;
	ck_assert_int_eq(transactions[1].response.status, 503);
	ck_assert(!process.doomed);
	call = send_call(2, "echo", NULL);
	worker_channel_too_late(call);
	ck_assert(process.doomed);
	ck_assert_uint_eq(seen.done, 2);
	await_death();
	worker_channel_abandon(&channel);
	ck_assert_uint_eq(seen.done, 3);
	ck_assert_int_eq(transactions[2].response.status, 504);
	ck_assert_uint_eq(channel.failures, 1);
	end_worker();
}
END_TEST

START_TEST(test_abandon)
{
	begin_worker();
	stop_worker();
	send_call(0, "echo", NULL);
	send_call(1, "echo", NULL);
	ck_assert_int_eq(kill(process.pid, SIGKILL), 0);
	await_death();
	worker_channel_abandon(&channel);
	ck_assert_uint_eq(seen.done, 2);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(transactions[i].response.status, 502);
	ck_assert_uint_eq(channel.failures, 2);
	end_worker();
}
END_TEST

/*
 * Two responses to one request; the second one has the tag of no request.  This is
 * noticed while the worker has another request: without one, the thread does not wait
 * for records.
 */
START_TEST(test_unasked)
{
	begin_worker();
	stop_worker();
	send_call(0, "raw-records", "FLAGS=0 0");
	send_call(1, "echo", NULL);
	continue_worker();
	SERVE_UNTIL(process.doomed);
	ck_assert_uint_eq(seen.done, 1);
	ck_assert_int_eq(transactions[0].response.status, 200);
	await_death();
	worker_channel_abandon(&channel);
	ck_assert_uint_eq(seen.done, 2);
	end_worker();
}
END_TEST

START_TEST(test_slots)
{
	begin_channel();
	for (unsigned i = 0; i < WORKER_IN_FLIGHT; i++)
		ck_assert_uint_eq(channel.pending[i].next,
				  i + 1 < WORKER_IN_FLIGHT ? i + 1 : UINT32_MAX);
	ck_assert_uint_eq(channel.free, 0);
	/* A refused call occupies no slot. */
	ck_assert(!worker_channel_submit(&channel, make_call(0), "A=b", 4));
	ck_assert_uint_eq(channel.free, 0);
	ck_assert_uint_eq(channel.requests, 0);
	end_channel();
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_response);
	tcase_add_test(tcase, test_stream);
	tcase_add_test(tcase, test_gone);
	tcase_add_test(tcase, test_drain);
	tcase_add_test(tcase, test_too_late);
	tcase_add_test(tcase, test_abandon);
	tcase_add_test(tcase, test_unasked);
	tcase_add_test(tcase, test_slots);
}

RUN_SUITE("worker-channel", fill)
