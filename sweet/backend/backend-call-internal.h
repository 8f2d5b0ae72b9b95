/* SPDX-License-Identifier: MIT */
/*
 * backend-call-internal.h - shared by backend-call.c, backend-call-response.c and call-queue.c,
 * which implement backend-call.h.
 */
#ifndef SWEET_BACKEND_CALL_INTERNAL_H
#define SWEET_BACKEND_CALL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/protocol.h"
#include "base/list.h"
#include "core/server.h"
#include "core/transaction.h"

static inline struct call_queue *call_queue_of(const struct backend_call *call)
{
	return &call->pool->queues[call->transaction->thread->number];
}

/* Returns the first of its calls; or NULL. */
static inline struct backend_call *call_queue_first(const struct call_queue *queue)
{
	return list_first(&queue->calls, struct backend_call, queued);
}

static inline bool gateway_pool_is_unavailable(struct gateway_pool *pool)
{
	return pool->protocol->is_unavailable && pool->protocol->is_unavailable(pool);
}

/* --- backend-call.c --- */

/* Keeps a copy of the variables with the call; frees it. */
void backend_call_keep_block(struct backend_call *call, const char *block, size_t length);
void backend_call_drop_block(struct backend_call *call);

/* Submits the call to the protocol; returns false if that has no capacity. */
bool backend_call_submit(struct backend_call *call, const char *block, size_t length);

/* The protocol has accepted the call. */
void backend_call_handed_on(struct backend_call *call, const char *block, size_t length);

/* --- call-queue.c --- */

/* Adds the call to the end of its queue; returns false if that is full. */
bool call_queue_add(struct backend_call *call, const char *block, size_t length);
void call_queue_remove(struct call_queue *queue, struct backend_call *call);

#endif
