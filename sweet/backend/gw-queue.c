/* SPDX-License-Identifier: MIT */
/*
 * gw-queue.c - calls that wait for room in their pool, in the order in which they
 * came; one that a program did not begin with goes first.  All on the server's
 * thread but gw_room_everywhere().
 */
#include <assert.h>
#include <string.h>

#include "backend/gw-call-inside.h"

/*
 * A call that is in the way of programs' ends again and again fails in the end:
 * it may be meant to be there, by who knows how to end them.
 */
#define TAKEN_BACK_MAX 2

void gw_queue_remove(struct gw_queue *queue, struct gw_call *call)
{
	struct gw_call **link = &queue->first;

	while (*link != call)
		link = &(*link)->next;
	*link = call->next;
	if (queue->last == &call->next)
		queue->last = link;
	server_count(&queue->count, (uint64_t)-1);
	timer_stop(&call->timer);
}

static void none_came(struct timer *timer)
{
	struct gw_call *call = (struct gw_call *)timer;

	gw_queue_remove(gw_queue_of(call), call);
	gw_fail(call, 503, "No worker is free.");
}

/* Before the one that link leads to. */
static void queue_insert(struct gw_queue *queue, struct gw_call **link, struct gw_call *call)
{
	call->next = *link;
	*link = call;
	if (!call->next)
		queue->last = &call->next;
	server_count(&queue->count, 1);
	loop_timer_start(call->transaction->server->loop, &call->timer,
			 call->pool->settings->queue_ms, none_came);
}

bool gw_queue_add(struct gw_call *call, const char *block, size_t length)
{
	struct gw_queue *queue = gw_queue_of(call);

	if (atomic_load_explicit(&queue->count, memory_order_relaxed) >=
	    call->pool->settings->queue)
		return false;
	gw_call_keep_block(call, block, length);
	queue_insert(queue, queue->last, call);
	return true;
}

/* To the head of the queue, from a program that has not begun with it. */
static void requeue(struct gw_call *call)
{
	struct gw_queue *queue = gw_queue_of(call);

	assert(call->state == GW_UNDER_WAY && call->block);
	call->state = GW_WAITS;
	memset(call->own, 0, sizeof(call->own));
	/* It was let in before: the queue's length is no matter now. */
	queue_insert(queue, &queue->first, call);
}

bool gw_take_back(struct gw_call *call)
{
	if (call->taken_back == TAKEN_BACK_MAX || gw_pool_is_hopeless(call->pool))
		return false;
	call->taken_back++;
	requeue(call);
	return true;
}

void gw_move(struct gw_call *call)
{
	call->moves = true;
	requeue(call);
}

void gw_room(struct gateway_pool *pool, struct server *server)
{
	struct gw_queue *queue = &pool->queues[server->number];

	for (;;) {
		struct gw_call *call;

		/* They came first.  One that finds no room after all is not followed by others. */
		if (queue->behind && !(queue->first && queue->first->moves))
			pool->protocol->relieve(pool, server);
		call = queue->first;
		if (!call || !gw_call_submit(call, call->block, call->block_length))
			return;
		gw_queue_remove(queue, call);
		gw_call_handed_on(call, call->block, call->block_length);
	}
}

void gw_room_task(struct loop_task *task)
{
	struct gw_queue *queue =
		(struct gw_queue *)((char *)task - offsetof(struct gw_queue, room.task));

	loop_notice_begin(&queue->room);
	gw_room(queue->pool, queue->server);
}

void gw_room_everywhere(struct gateway_pool *pool)
{
	/* At the end of the server no loop runs. */
	if (!pool->gateway || pool->gateway->closing)
		return;
	for (unsigned i = 0; i < pool->gateway->site->threads; i++) {
		struct gw_queue *queue = &pool->queues[i];

		loop_notify(queue->server->loop, &queue->room);
	}
}

void gw_queue_abandon(struct gw_queue *queue)
{
	while (queue->first) {
		struct gw_call *call = queue->first;

		gw_queue_remove(queue, call);
		gw_fail(call, 503, "No worker is free.");
	}
}
