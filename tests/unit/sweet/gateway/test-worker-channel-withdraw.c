/* SPDX-License-Identifier: MIT */
/*
 * test-worker-channel-withdraw.c - unit tests of worker-channel.c with a real worker:
 * which calls are withdrawn from a living worker and from one that has exited, in
 * which order.
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "backend/backend-call-internal.h"
#include "backend/backend-call.h"
#include "backend/pool.h"
#include "base/list.h"
#include "core/transaction.h"
#include "gateway/pool-process.h"
#include "gateway/worker-channel.h"

#include "call-fixture.h"
#include "channel-fixture.h"
#include "suite.h"
#include "worker-channel-fixture.h"

/* The oldest call with a client is withdrawn; orphaned ones before it are dropped with it. */
START_TEST(test_withdraw)
{
	struct backend_call *calls[4];

	begin_worker();
	ck_assert(!worker_channel_withdraw(&channel));
	stop_worker();
	for (unsigned i = 0; i < 4; i++)
		calls[i] = send_call(i, "echo", NULL);
	ck_assert_uint_eq(worker_channel_waiting(&channel), 4);
	worker_channel_gone(calls[0]);
	seen.done = 0;
	ck_assert(worker_channel_withdraw(&channel));
	ck_assert_ptr_eq(list_first(&queue.calls, struct backend_call, queued), calls[1]);
	ck_assert(calls[1]->moves);
	ck_assert_int_eq(calls[1]->state, CALL_PENDING);
	ck_assert_uint_eq(worker_channel_waiting(&channel), 2);
	ck_assert_uint_eq(channel.in_flight, 2);
	ck_assert_uint_eq(channel.orphaned, 0);
	ck_assert_uint_eq(process.load, 2);
	call_queue_remove(&queue, calls[1]);
	/* The worker responds to the others, and never gets the first two. */
	continue_worker();
	SERVE_UNTIL(seen.done == 2);
	ck_assert_int_eq(transactions[2].response.status, 200);
	ck_assert_int_eq(transactions[3].response.status, 200);
	ck_assert(!process.doomed);
	ck_assert(!worker_channel_withdraw(&channel));
	ck_assert(list_is_empty(&queue.calls));
	end_worker();
}
END_TEST

/* Orphaned calls alone are not returned to the queue. */
START_TEST(test_withdraw_orphans)
{
	begin_worker();
	stop_worker();
	worker_channel_gone(send_call(0, "echo", NULL));
	worker_channel_gone(send_call(1, "echo", NULL));
	ck_assert(!worker_channel_withdraw(&channel));
	ck_assert(list_is_empty(&queue.calls));
	ck_assert_uint_eq(channel.in_flight, 0);
	continue_worker();
	end_worker();
}
END_TEST

START_TEST(test_take_back)
{
	struct backend_call *calls[4];

	begin_worker();
	calls[0] = send_call(0, "echo", NULL);
	SERVE_UNTIL(seen.done == 1);
	stop_worker();
	for (unsigned i = 1; i < 4; i++)
		calls[i] = send_call(i, "echo", NULL);
	worker_channel_gone(calls[2]);
	seen.done = 0;
	ck_assert_int_eq(kill(process.pid, SIGKILL), 0);
	await_death();
	worker_channel_take_back(&channel);
	/* In the order of their arrival. */
	ck_assert_ptr_eq(list_first(&queue.calls, struct backend_call, queued), calls[1]);
	ck_assert_ptr_eq(list_next(&queue.calls, calls[1], queued), calls[3]);
	ck_assert_ptr_null(list_next(&queue.calls, calls[3], queued));
	ck_assert_uint_eq(calls[1]->taken_back, 1);
	worker_channel_abandon(&channel);
	ck_assert_uint_eq(seen.done, 0);
	ck_assert_uint_eq(channel.failures, 0);
	call_queue_abandon(&queue);
	end_worker();
}
END_TEST

/* A call that cannot be retried fails with the worker. */
START_TEST(test_unavailable)
{
	begin_worker();
	stop_worker();
	send_call(0, "echo", NULL);
	ck_assert_int_eq(kill(process.pid, SIGKILL), 0);
	await_death();
	seen.unavailable = true;
	worker_channel_take_back(&channel);
	ck_assert(list_is_empty(&queue.calls));
	worker_channel_abandon(&channel);
	ck_assert_uint_eq(seen.done, 1);
	ck_assert_int_eq(transactions[0].response.status, 502);
	end_worker();
}
END_TEST

/* A worker that began a call, as its records show, cannot claim that it did not. */
START_TEST(test_lie)
{
	begin_worker();
	stop_worker();
	send_call(0, "echo", NULL);
	channel.pending[0].heard = true;
	if (_i) {
		ck_assert(!worker_channel_withdraw(&channel));
		ck_assert(process.doomed);
	} else {
		ck_assert_int_eq(kill(process.pid, SIGKILL), 0);
	}
	await_death();
	if (!_i)
		worker_channel_take_back(&channel);
	ck_assert(list_is_empty(&queue.calls));
	worker_channel_abandon(&channel);
	ck_assert_int_eq(transactions[0].response.status, 502);
	end_worker();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_withdraw);
	tcase_add_test(tcase, test_withdraw_orphans);
	tcase_add_test(tcase, test_take_back);
	tcase_add_test(tcase, test_unavailable);
	tcase_add_loop_test(tcase, test_lie, 0, 2);
}

RUN_SUITE("worker-channel-withdraw", fill)
