/* SPDX-License-Identifier: MIT */
/*
 * backend-call-internal.h - what backend-call.c and call-queue.c, each a part of
 * backend-call.h, share.
 */
#ifndef SWEET_BACKEND_CALL_INTERNAL_H
#define SWEET_BACKEND_CALL_INTERNAL_H

#include "backend/backend-call.h"

static inline struct call_queue *call_queue_of(const struct backend_call *call)
{
	return &call->pool->queues[call->transaction->thread->number];
}

static inline bool gateway_pool_is_hopeless(struct gateway_pool *pool)
{
	return pool->protocol->is_hopeless && pool->protocol->is_hopeless(pool);
}

/* --- backend-call.c --- */

/* The variables stay with the call; they are not needed any more. */
void backend_call_keep_block(struct backend_call *call, const char *block, size_t length);
void backend_call_drop_block(struct backend_call *call);

/* Hands it to the protocol.  False: that has no room now. */
bool backend_call_submit(struct backend_call *call, const char *block, size_t length);

/* The protocol has it now. */
void backend_call_handed_on(struct backend_call *call, const char *block, size_t length);

/* --- call-queue.c --- */

/* Puts it at the end of its queue.  False: that is full. */
bool call_queue_add(struct backend_call *call, const char *block, size_t length);
void call_queue_remove(struct call_queue *queue, struct backend_call *call);

#endif
