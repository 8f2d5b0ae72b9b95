/* SPDX-License-Identifier: MIT */
/*
 * test-backend-call.c - unit tests of backend-call.c: which pieces of a request's body
 * a call requests.
 */
#include <stdint.h>
#include <string.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"

#include "suite.h"
#include "thread-fixture.h"

static struct pool_config settings;
static struct gateway_pool pool = {.settings = &settings};
static struct scope scope;
static struct thread thread;
static struct transaction transaction;
static unsigned asked, ended;

static void open_loop(void)
{
	char why[256];

	thread = make_thread((struct thread){0});
	thread.loop = loop_open(LOOP_EPOLL, LOOP_FEW, why, sizeof(why));
	ck_assert_msg(thread.loop != NULL, "%s", why);
}

static void close_loop(void)
{
	loop_close(thread.loop);
}

static void receive_piece(struct transaction *of, uint64_t limit, size_t window)
{
	ck_assert_ptr_eq(of, &transaction);
	ck_assert_uint_eq(limit, UINT64_MAX);
	ck_assert_uint_eq(window, 1000);
	asked++;
}

static void done(struct transaction *of)
{
	ck_assert_ptr_eq(of, &transaction);
	ended++;
}

/* A call that a program has, with a piece of its body. */
static struct backend_call *begin(void)
{
	static const struct transaction_owner owner = {.done = done,
						       .receive_piece = receive_piece};
	struct backend_call *call = backend_call_of(&transaction);

	memset(&transaction, 0, sizeof(transaction));
	transaction.thread = &thread;
	transaction.scope = &scope;
	transaction.owner = &owner;
	call->transaction = &transaction;
	call->pool = &pool;
	call->state = CALL_IN_FLIGHT;
	call->window = 1000;
	asked = ended = 0;
	return call;
}

/* The program has read its piece: the next one is requested, once. */
START_TEST(test_next)
{
	struct backend_call *call = begin();

	backend_call_next_body(call);
	ck_assert_uint_eq(asked, 1);
	backend_call_next_body(call);
	ck_assert_uint_eq(asked, 1);
}
END_TEST

/* It may read the piece after the server has responded itself: nothing is requested. */
START_TEST(test_refused)
{
	struct backend_call *call = begin();

	backend_call_fail(call, 413, NULL);
	ck_assert_uint_eq(ended, 1);
	ck_assert_int_eq(transaction.response.status, 413);
	backend_call_next_body(call);
	ck_assert_uint_eq(asked, 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, open_loop, close_loop);
	tcase_add_test(tcase, test_next);
	tcase_add_test(tcase, test_refused);
}

RUN_SUITE("backend-call", fill)
