/* SPDX-License-Identifier: MIT */
/*
 * gw-call-inside.h - what gw-call.c, gw-queue.c and gw-answer.c, each a part of
 * gw-call.h, share.
 */
#ifndef SWEET_GW_CALL_INSIDE_H
#define SWEET_GW_CALL_INSIDE_H

#include "backend/gw-call.h"

static inline struct gw_queue *gw_queue_of(const struct gw_call *call)
{
	return &call->pool->queues[call->transaction->server->number];
}

static inline bool gw_pool_is_hopeless(struct gateway_pool *pool)
{
	return pool->protocol->is_hopeless && pool->protocol->is_hopeless(pool);
}

/* --- gw-call.c --- */

/* The variables stay with the call; they are not needed any more. */
void gw_call_keep_block(struct gw_call *call, const char *block, size_t length);
void gw_call_drop_block(struct gw_call *call);

/* Hands it to the protocol.  False: that has no room now. */
bool gw_call_submit(struct gw_call *call, const char *block, size_t length);

/* The protocol has it now. */
void gw_call_handed_on(struct gw_call *call, const char *block, size_t length);

/* --- gw-queue.c --- */

/* Puts it at the end of its queue.  False: that is full. */
bool gw_queue_add(struct gw_call *call, const char *block, size_t length);
void gw_queue_remove(struct gw_queue *queue, struct gw_call *call);

#endif
