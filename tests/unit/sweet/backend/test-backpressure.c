/* SPDX-License-Identifier: MIT */
/*
 * test-backpressure.c - unit tests of backpressure.c: bytes that wait for clients
 * count in the budget, and a client that blocks a program is disconnected unless it
 * makes progress.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend-call.h"
#include "backend/backpressure.h"
#include "base/budget.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "http/body.h"

#include "call-fixture.h"
#include "suite.h"

#define PERIOD_LEAST (64u << 10) /* bytes that a client must receive */

static uint64_t used(struct budget *budget)
{
	return atomic_load(&budget->used);
}

START_TEST(test_budget)
{
	struct budget shared = {.most = 1500};
	struct backend_call *one, *other;

	begin();
	one = make_call(0);
	other = make_call(1);
	ck_assert(backpressure_has_room(one, &shared));
	backpressure_ahead(one, &shared, 999);
	ck_assert(backpressure_has_room(one, &shared));
	/* stream_ahead of the pool. */
	backpressure_ahead(one, &shared, 1000);
	ck_assert(!backpressure_has_room(one, &shared));
	ck_assert(backpressure_has_room(other, &shared));
	/* All responses together. */
	backpressure_ahead(other, &shared, 500);
	ck_assert_uint_eq(used(&shared), 1500);
	ck_assert(!backpressure_has_room(other, &shared));
	backpressure_ahead(one, &shared, 400);
	ck_assert_uint_eq(used(&shared), 900);
	ck_assert(backpressure_has_room(other, &shared));
	backpressure_end(one);
	backpressure_end(one);
	ck_assert_uint_eq(used(&shared), 500);
	backpressure_end(other);
	ck_assert_uint_eq(used(&shared), 0);
	end();
}
END_TEST

START_TEST(test_slow_client)
{
	struct backend_call *call;

	begin();
	call = make_call(0);
	seen.moved = 1000;
	backpressure_wait(call);
	/* From now on, not from each time that it has to wait. */
	seen.moved += PERIOD_LEAST;
	backpressure_wait(call);
	ck_assert_uint_eq(call->moved, 1000);
	expire(&call->timer);
	ck_assert_uint_eq(seen.given_up, 0);
	ck_assert(timer_is_running(&call->timer));
	ck_assert_uint_eq(call->moved, 1000 + PERIOD_LEAST);

	seen.moved += PERIOD_LEAST - 1;
	expire(&call->timer);
	ck_assert_uint_eq(seen.given_up, 1);
	ck_assert_uint_eq(atomic_load(&thread.counters->slow_clients), 1);
	ck_assert(!timer_is_running(&call->timer));

	/* The end of a piece has reset it. */
	backpressure_wait(call);
	seen.moved -= 200;
	expire(&call->timer);
	ck_assert_uint_eq(seen.given_up, 2);
	end();
}
END_TEST

START_TEST(test_nobody_is_slow)
{
	struct backend_call *call;

	begin();
	call = make_call(0);
	transactions[0].connection = NULL;
	backpressure_wait(call);
	ck_assert(!timer_is_running(&call->timer));
	transactions[0].connection = &transactions[0];
	settings.slow_ms = 0;
	backpressure_wait(call);
	ck_assert(!timer_is_running(&call->timer));
	end();
}
END_TEST

/* The timer belongs to the call, which may use it for another wait. */
START_TEST(test_go_on)
{
	struct backend_call *call;

	begin();
	call = make_call(0);
	backpressure_wait(call);
	ck_assert(timer_is_running(&call->timer));
	backpressure_go_on(call);
	ck_assert(!timer_is_running(&call->timer));
	backend_call_start_timer(call);
	backpressure_go_on(call);
	ck_assert(timer_is_running(&call->timer));
	backpressure_wait(call);
	expire(&call->timer);
	ck_assert_uint_eq(seen.late, 1);
	ck_assert_uint_eq(seen.given_up, 0);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_budget);
	tcase_add_test(tcase, test_slow_client);
	tcase_add_test(tcase, test_nobody_is_slow);
	tcase_add_test(tcase, test_go_on);
}

RUN_SUITE("backpressure", fill)
