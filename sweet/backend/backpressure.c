/* SPDX-License-Identifier: MIT */
/*
 * backpressure.c - see backpressure.h.
 */

#include <stdatomic.h>
#include <string.h>

#include "backend/backend-call.h"
#include "backend/backpressure.h"
#include "backend/pool.h"
#include "base/budget.h"
#include "base/container.h"
#include "base/counter.h"
#include "base/escape.h"
#include "base/slice.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "http/body.h"
#include "log/log.h"

#define LEAST ((int64_t)64 << 10) /* bytes in a period; with fewer the client is gone */
#define NAME_MAX_BYTES 200	  /* bytes of a path in the log */

void backpressure_ahead(struct backend_call *call, struct budget *shared, uint64_t bytes)
{
	if (bytes > call->ahead)
		budget_take_anyhow(shared, bytes - call->ahead);
	else if (bytes < call->ahead)
		budget_give(shared, call->ahead - bytes);
	else
		return;
	call->shared = shared;
	call->ahead = bytes;
}

bool backpressure_has_room(const struct backend_call *call, const struct budget *shared)
{
	return call->ahead < call->pool->settings->stream_ahead && budget_has_room(shared);
}

static void log_slow_client(const struct backend_call *call)
{
	const struct transaction *transaction = call->transaction;
	char path[NAME_MAX_BYTES * ESCAPE_MOST + 1];
	struct slice text = {transaction->path, strnlen(transaction->path, NAME_MAX_BYTES)};

	*escape_message(path, text) = '\0';
	log_notice("%s: %s: pool %s: kept a program waiting for %g s: closing the connection",
		   transaction->peer.remote_addr, path, call->pool->settings->name,
		   call->pool->settings->slow_ms / 1000.0);
}

static void backpressure_too_slow(struct timer *timer)
{
	struct backend_call *call = container_of(timer, struct backend_call, timer);
	struct transaction *transaction = call->transaction;
	uint64_t moved = transaction->owner->moved(transaction);

	/* May be negative: the end of a piece reduces it by the head's length. */
	if ((int64_t)(moved - call->moved) >= LEAST) {
		backpressure_wait(call);
		return;
	}
	counter_add(&transaction->thread->counters->slow_clients, 1);
	log_slow_client(call);
	transaction->owner->give_up(transaction);
}

void backpressure_wait(struct backend_call *call)
{
	struct transaction *transaction = call->transaction;
	unsigned ms = call->pool->settings->slow_ms;

	/* Without a client there is nobody to wait for. */
	if (!ms || !transaction->connection || timer_is_running(&call->timer))
		return;
	call->moved = transaction->owner->moved(transaction);
	loop_timer_start(transaction->thread->loop, &call->timer, ms, backpressure_too_slow);
}

void backpressure_go_on(struct backend_call *call)
{
	if (call->timer.expired == backpressure_too_slow)
		timer_stop(&call->timer);
}

void backpressure_end(struct backend_call *call)
{
	if (call->ahead)
		backpressure_ahead(call, call->shared, 0);
}
