/* SPDX-License-Identifier: MIT */
/*
 * test-call-queue.c - unit tests of call-queue.c: the order in which calls wait and
 * are passed on, how many may wait and how long, and calls that a program returns.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "backend/backend-call-internal.h"
#include "backend/backend-call.h"
#include "backend/pool.h"
#include "base/list.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "event/loop.h"

#define CALLS 200u

#include "call-fixture.h"
#include "suite.h"

static struct backend_call *add(unsigned number)
{
	struct backend_call *call = make_call(number);

	call->state = CALL_PENDING;
	ck_assert(call_queue_add(call, "A=b", 4));
	return call;
}

/* A call that the protocol has, with its variables, as backend_call_handed_on() leaves it. */
static struct backend_call *in_flight(unsigned number)
{
	struct backend_call *call = make_call(number);

	backend_call_keep_block(call, "A=b", 4);
	call->own[0] = 1;
	return call;
}

static unsigned waiting(void)
{
	return (unsigned)atomic_load(&queue.count);
}

START_TEST(test_order)
{
	struct backend_call *first, *second, *third;

	begin();
	first = add(0);
	second = add(1);
	third = make_call(2);
	/* It is full. */
	ck_assert(!call_queue_add(third, "A=b", 4));
	ck_assert_uint_eq(waiting(), 2);
	ck_assert_str_eq(first->block, "A=b");
	/* Without capacity nothing happens. */
	call_queue_room(&pool, &thread);
	ck_assert_uint_eq(seen.count, 0);
	ck_assert_uint_eq(waiting(), 2);
	ck_assert_int_eq(first->state, CALL_PENDING);

	seen.room = 1;
	call_queue_room(&pool, &thread);
	ck_assert_uint_eq(seen.count, 1);
	ck_assert_ptr_eq(seen.taken[0], first);
	ck_assert_int_eq(first->state, CALL_IN_FLIGHT);
	ck_assert_uint_eq(waiting(), 1);
	/* The timer is now that of the response. */
	expire(&first->timer);
	ck_assert_uint_eq(seen.late, 1);

	third = add(2);
	seen.room = 5;
	call_queue_room(&pool, &thread);
	ck_assert_uint_eq(seen.count, 3);
	ck_assert_ptr_eq(seen.taken[1], second);
	ck_assert_ptr_eq(seen.taken[2], third);
	ck_assert_uint_eq(waiting(), 0);
	ck_assert_uint_eq(seen.done, 0);
	ck_assert_uint_eq(atomic_load(&thread.counters->worker_requests), 3);
	timer_stop(&second->timer);
	timer_stop(&third->timer);
	end();
}
END_TEST

/* From the middle, the end and the front; the end must stay the end. */
START_TEST(test_expiry)
{
	struct backend_call *calls[3];

	for (unsigned at = 0; at < 3; at++) {
		begin();
		settings.queue = 3;
		for (unsigned i = 0; i < 3; i++)
			calls[i] = add(i);
		expire(&calls[at]->timer);
		ck_assert_uint_eq(seen.done, 1);
		ck_assert_ptr_eq(seen.last_done, &transactions[at]);
		ck_assert_int_eq(transactions[at].response.status, 503);
		ck_assert_str_eq(transactions[at].response.detail, "No worker is free.");
		ck_assert_uint_eq(waiting(), 2);
		calls[at] = add(at);
		seen.room = 5;
		call_queue_room(&pool, &thread);
		ck_assert_uint_eq(seen.count, 3);
		ck_assert_ptr_eq(seen.taken[2], calls[at]);
		for (unsigned i = 0; i < 3; i++)
			timer_stop(&calls[i]->timer);
		end();
	}
}
END_TEST

/* Before all others, although the queue is full; at most twice. */
START_TEST(test_take_back)
{
	struct backend_call *call, *other;

	begin();
	settings.queue = 1;
	other = add(1);
	call = in_flight(0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert(call_queue_take_back(call));
		ck_assert_ptr_eq(list_first(&queue.calls, struct backend_call, queued), call);
		ck_assert_int_eq(call->state, CALL_PENDING);
		ck_assert_uint_eq(call->own[0], 0);
		ck_assert_uint_eq(waiting(), 2);
		seen.room = 1;
		call_queue_room(&pool, &thread);
		ck_assert_ptr_eq(seen.taken[i], call);
	}
	ck_assert(!call_queue_take_back(call));
	ck_assert_int_eq(call->state, CALL_IN_FLIGHT);
	ck_assert_uint_eq(waiting(), 1);
	/* It counts as one request, however often it was passed on. */
	ck_assert_uint_eq(atomic_load(&thread.counters->worker_requests), 0);
	timer_stop(&call->timer);

	/* Nothing will accept it. */
	seen.unavailable = true;
	call = in_flight(2);
	ck_assert(!call_queue_take_back(call));
	ck_assert_uint_eq(call->taken_back, 0);
	call_queue_remove(&queue, other);
	end();
}
END_TEST

/* Calls that wait behind a long one are moved first: the protocol is asked for them. */
START_TEST(test_move)
{
	struct backend_call *call;

	begin();
	seen.room = 1;
	queue.behind = 1;
	call_queue_room(&pool, &thread);
	ck_assert_uint_eq(seen.relieved, 1);
	ck_assert_uint_eq(seen.count, 0);

	call = in_flight(0);
	call_queue_move(call);
	ck_assert(call->moves);
	ck_assert_ptr_eq(list_first(&queue.calls, struct backend_call, queued), call);
	/* It is passed on before another one is requested. */
	call_queue_room(&pool, &thread);
	ck_assert_ptr_eq(seen.taken[0], call);
	ck_assert(!call->moves);
	ck_assert_uint_eq(call->taken_back, 0);
	ck_assert_uint_eq(seen.relieved, 2);
	queue.behind = 0;
	call_queue_room(&pool, &thread);
	ck_assert_uint_eq(seen.relieved, 2);
	timer_stop(&call->timer);
	end();
}
END_TEST

START_TEST(test_abandon)
{
	begin();
	add(0);
	add(1);
	call_queue_abandon(&queue);
	ck_assert_uint_eq(waiting(), 0);
	ck_assert(list_is_empty(&queue.calls));
	ck_assert_uint_eq(seen.done, 2);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(transactions[i].response.status, 503);
		ck_assert(!timer_is_running(&backend_call_of(&transactions[i])->timer));
	}
	call_queue_abandon(&queue);
	ck_assert_uint_eq(seen.done, 2);
	end();
}
END_TEST

/* Once for any number of announcements, until the thread has looked; never at the end. */
START_TEST(test_room_everywhere)
{
	struct backend_call *call;

	begin();
	pool.closing = true;
	call_queue_room_everywhere(&pool);
	ck_assert(!atomic_load(&queue.room.posted));

	pool.closing = false;
	call = add(0);
	call_queue_room_everywhere(&pool);
	call_queue_room_everywhere(&pool);
	ck_assert(atomic_load(&queue.room.posted));
	ck_assert_uint_eq(seen.count, 0);
	seen.room = 1;
	queue.room.task.run(&queue.room.task);
	ck_assert(!atomic_load(&queue.room.posted));
	ck_assert_ptr_eq(seen.taken[0], call);
	timer_stop(&call->timer);
	end();
}
END_TEST

/* Room for all calls at once: some are submitted, the others in the next turns of the loop. */
START_TEST(test_much_room)
{
	unsigned turns = 0, before = 0;

	begin();
	settings.queue = seen.room = CALLS;
	for (unsigned i = 0; i < CALLS; i++)
		add(i);
	ck_assert(call_queue_room(&pool, &thread));
	while (waiting()) {
		ck_assert_uint_le(seen.count - before, 64);
		before = seen.count;
		turns++;
		ck_assert(atomic_load(&queue.room.posted));
		queue.room.task.run(&queue.room.task);
	}
	ck_assert_uint_eq(turns, CALLS / 64);
	ck_assert(!atomic_load(&queue.room.posted));
	for (unsigned i = 0; i < CALLS; i++) {
		ck_assert_ptr_eq(seen.taken[i], backend_call_of(&transactions[i]));
		timer_stop(&seen.taken[i]->timer);
	}
	/* At the end of the server there is no turn. */
	for (unsigned i = 0; i < CALLS; i++)
		add(i);
	seen.room = CALLS;
	pool.closing = true;
	ck_assert(!call_queue_room(&pool, &thread));
	ck_assert(!atomic_load(&queue.room.posted));
	call_queue_abandon(&queue);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_order);
	tcase_add_test(tcase, test_expiry);
	tcase_add_test(tcase, test_take_back);
	tcase_add_test(tcase, test_move);
	tcase_add_test(tcase, test_abandon);
	tcase_add_test(tcase, test_room_everywhere);
	tcase_add_test(tcase, test_much_room);
}

RUN_SUITE("call-queue", fill)
