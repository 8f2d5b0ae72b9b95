/* SPDX-License-Identifier: MIT */
/*
 * call-fixture.h - shared by the tests of sweet/backend: a pool whose protocol
 * records what it receives, a thread whose loop is open but does not run, and calls
 * with their transactions, which have no client.  A test makes the calls of the
 * loop itself.
 */
#ifndef CALL_FIXTURE_H
#define CALL_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "backend/backend-call-internal.h"
#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/protocol.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"

#include "suite.h"
#include "thread-fixture.h"

#ifndef CALLS
#define CALLS 8u
#endif

static struct server server;
static struct thread thread;
static struct gateway_pool pool;
static struct pool_config settings;
static struct call_queue queue;
static struct transaction transactions[CALLS];

/* What the protocol received, and the results of the transactions. */
static struct {
	unsigned room;			   /* number of calls that the protocol accepts */
	struct backend_call *taken[CALLS]; /* in their order */
	unsigned count;			   /* number of taken */
	unsigned relieved, late, finished;
	bool unavailable;
	unsigned done, given_up;
	struct transaction *last_done;
	uint64_t moved; /* bytes, for each client */
} seen;

static inline bool take_call(struct backend_call *call, const char *block, size_t length)
{
	ck_assert_ptr_nonnull(block);
	ck_assert_uint_gt(length, 0);
	if (!seen.room)
		return false;
	seen.room--;
	seen.taken[seen.count++ % CALLS] = call;
	return true;
}

static inline void relieve_pool(struct gateway_pool *whose, struct thread *of)
{
	ck_assert_ptr_eq(whose, &pool);
	ck_assert_ptr_eq(of, &thread);
	seen.relieved++;
}

static inline bool is_unavailable(struct gateway_pool *whose)
{
	(void)whose;
	return seen.unavailable;
}

static inline void call_too_late(struct backend_call *call)
{
	(void)call;
	seen.late++;
}

static inline void finish_call(struct backend_call *call)
{
	(void)call;
	seen.finished++;
}

static inline void note_done(struct transaction *transaction)
{
	seen.done++;
	seen.last_done = transaction;
}

static inline void give_up_client(struct transaction *transaction)
{
	(void)transaction;
	seen.given_up++;
}

static inline uint64_t moved_bytes(const struct transaction *transaction)
{
	(void)transaction;
	return seen.moved;
}

/* Returns a call that the protocol has accepted. */
static inline struct backend_call *make_call(unsigned number)
{
	static const struct transaction_owner owner = {
		.done = note_done, .give_up = give_up_client, .moved = moved_bytes};
	struct transaction *transaction = &transactions[number];
	struct backend_call *call = backend_call_of(transaction);

	memset(transaction, 0, sizeof(*transaction));
	transaction->thread = &thread;
	transaction->owner = &owner;
	transaction->connection = transaction; /* there is a client */
	transaction->peer.remote_addr = "192.0.2.1";
	strcpy(transaction->path, "/a");
	call->transaction = transaction;
	call->pool = &pool;
	call->state = CALL_IN_FLIGHT;
	return call;
}

static inline void begin(void)
{
	static const struct backend_protocol protocol = {.takes_back = true,
							 .submit = take_call,
							 .relieve = relieve_pool,
							 .is_unavailable = is_unavailable,
							 .too_late = call_too_late,
							 .finish = finish_call};
	char why[128];

	memset(&seen, 0, sizeof(seen));
	thread = make_thread((struct thread){
		.server = &server, .loop = loop_open(LOOP_EPOLL, LOOP_FEW, why, sizeof(why))});
	ck_assert_msg(thread.loop, "%s", why);
	server = (struct server){.threads = 1, .per_thread = {&thread}};
	settings = (struct pool_config){.name = (char *)"test",
					.queue = 2,
					.queue_ms = 10000,
					.answer_ms = 20000,
					.slow_ms = 30000,
					.stream_ahead = 1000,
					.max_response_header = 8192};
	pool = (struct gateway_pool){
		.server = &server, .settings = &settings, .protocol = &protocol, .queues = &queue};
	queue = (struct call_queue){
		.pool = &pool, .thread = &thread, .room.task.run = call_queue_room_task};
}

static inline void end(void)
{
	loop_close(thread.loop);
}

/* Does what the loop does when the timer expires. */
static inline void expire(struct timer *timer)
{
	ck_assert(timer_is_running(timer));
	timer_stop(timer);
	timer->expired(timer);
}

#endif
