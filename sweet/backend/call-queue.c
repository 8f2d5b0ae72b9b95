/* SPDX-License-Identifier: MIT */
/*
 * call-queue.c - queues calls while their pool has no free capacity, in the order of arrival.  A
 * call that comes back from a program goes to the head of the queue.  All functions but
 * call_queue_room_everywhere() run on the calls' thread.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "backend/backend-call-internal.h"
#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/protocol.h"
#include "base/container.h"
#include "base/counter.h"
#include "base/list.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"

/*
 * A call whose programs end again and again fails in the end: it may be an attack with a request
 * that ends programs.
 */
#define TAKEN_BACK_MAX 2

/* A start of a program, or of a server of the pool, can have room for all calls at once. */
#define ROOM_MAX 64u /* calls that are submitted before other events have their turn */

void call_queue_remove(struct call_queue *queue, struct backend_call *call)
{
	list_remove(&call->queued);
	counter_sub(&queue->count, 1);
	timer_stop(&call->timer);
}

static void none_came(struct timer *timer)
{
	struct backend_call *call = container_of(timer, struct backend_call, timer);

	call_queue_remove(call_queue_of(call), call);
	backend_call_fail(call, 503, "No worker is free.");
}

/* The call has entered the queue. */
static void is_queued(struct call_queue *queue, struct backend_call *call)
{
	counter_add(&queue->count, 1);
	loop_timer_start(call->transaction->thread->loop, &call->timer,
			 call->pool->settings->queue_ms, none_came);
}

bool call_queue_add(struct backend_call *call, const char *block, size_t length)
{
	struct call_queue *queue = call_queue_of(call);

	if (atomic_load_explicit(&queue->count, memory_order_relaxed) >=
	    call->pool->settings->queue)
		return false;
	backend_call_keep_block(call, block, length);
	list_append(&queue->calls, &call->queued);
	is_queued(queue, call);
	return true;
}

/* Puts a call that its program has not begun with at the head of the queue. */
static void requeue(struct backend_call *call)
{
	struct call_queue *queue = call_queue_of(call);

	assert(call->state == CALL_IN_FLIGHT && call->block);
	call->state = CALL_PENDING;
	memset(call->own, 0, sizeof(call->own));
	/* The call was accepted before: the limit of the queue does not apply. */
	list_prepend(&queue->calls, &call->queued);
	is_queued(queue, call);
}

bool call_queue_take_back(struct backend_call *call)
{
	if (call->taken_back == TAKEN_BACK_MAX || gateway_pool_is_unavailable(call->pool))
		return false;
	call->taken_back++;
	requeue(call);
	return true;
}

void call_queue_move(struct backend_call *call)
{
	call->moves = true;
	requeue(call);
}

bool call_queue_room(struct gateway_pool *pool, struct thread *thread)
{
	struct call_queue *queue = &pool->queues[thread->number];

	for (unsigned i = 0; i < ROOM_MAX; i++) {
		struct backend_call *call = call_queue_first(queue);

		/* Withdrawn calls came first.  If one finds no capacity, do not withdraw more. */
		if (queue->behind && !(call && call->moves)) {
			pool->protocol->relieve(pool, thread);
			call = call_queue_first(queue);
		}
		if (!call || !backend_call_submit(call, call->block, call->block_length))
			return false;
		call_queue_remove(queue, call);
		backend_call_handed_on(call, call->block, call->block_length);
	}
	if (!call_queue_first(queue) || pool->closing)
		return false;
	loop_notify(thread->loop, &queue->room);
	return true;
}

void call_queue_room_task(struct loop_task *task)
{
	struct call_queue *queue = container_of(task, struct call_queue, room.task);

	loop_notice_begin(&queue->room);
	call_queue_room(queue->pool, queue->thread);
}

void call_queue_room_everywhere(struct gateway_pool *pool)
{
	if (pool->closing)
		return;
	for (unsigned i = 0; i < pool->server->threads; i++) {
		struct call_queue *queue = &pool->queues[i];

		loop_notify(queue->thread->loop, &queue->room);
	}
}

void call_queue_abandon(struct call_queue *queue)
{
	struct backend_call *call;

	while ((call = call_queue_first(queue))) {
		call_queue_remove(queue, call);
		backend_call_fail(call, 503, "No worker is free.");
	}
}
