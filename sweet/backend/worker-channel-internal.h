/* SPDX-License-Identifier: MIT */
/*
 * worker-channel-internal.h - a call in a channel as the sources worker-channel*.c see it,
 * and nobody else.  Each calls only those that are listed above it:
 *
 *   worker-channel-slot.c      the slots that calls have
 *   worker-channel-response.c  takes the answers
 *   worker-channel.c           gives requests, takes them back, and sees to the records
 */
#ifndef SWEET_WORKER_CHANNEL_INTERNAL_H
#define SWEET_WORKER_CHANNEL_INTERNAL_H

#include "backend/backend-call.h"
#include "backend/worker-channel.h"
#include "backend/response-queue.h"

/* In a call's own part. */
struct channel_call {
	struct worker_channel *channel; /* NULL: not, or not any more */
	uint32_t slot;
	struct response_queue parts;
	struct body_budget *shared; /* of the parts */
	bool holds;		    /* the transaction's hold is of an answer's only unit */
	uint64_t page;		    /* bytes of that, in pages */
	struct page_memory *pages;  /* of the process */
	unsigned kept;	   /* pieces whose place in the worker's window is not given back */
	unsigned excess;   /* of those, pieces of which nothing is sent: their places stay taken */
	uint64_t left;	   /* bytes of the answer that may still come */
	uint64_t given;	   /* bytes of the request's body that the worker has had */
	bool has_piece;	   /* the worker is at work on one that more follows */
	bool body_pending; /* a piece of the body, which a full queue keeps back */
	bool late;	   /* it has used up its time */
	bool wanted;	   /* the connection waits for the next piece */
	bool failed;	   /* what was begun breaks off */
};

static inline struct channel_call *channel_call_of(struct backend_call *call)
{
	return (struct channel_call *)(void *)call->own;
}

static inline uint64_t worker_channel_tag(const struct worker_channel *channel, uint32_t slot)
{
	return (uint64_t)channel->pending[slot].generation << 32 | slot;
}

/* --- worker-channel-slot.c --- */

/* Whether the slot's answer is on its way and goes on. */
void worker_channel_set_streams(struct worker_channel *channel, struct channel_slot *pending,
				bool streams);

/*
 * Whether the worker has told nothing of it while another answer leaves, of this
 * thread or not: that one has bounds of its own, and is no fault.
 */
bool worker_channel_is_behind_another(const struct worker_channel *channel,
				      const struct channel_slot *pending);

/* Tells the worker that nobody waits for it, now or when its queue has room. */
void worker_channel_send_cancel(struct worker_channel *channel, struct channel_slot *pending);

/* Tells the log what the channel's worker has done. */
void worker_channel_complain(const struct worker_channel *channel, const char *what);

/* Nobody waits for it any more: the worker goes on, or sees that there is no need to. */
void worker_channel_orphan(struct backend_call *call);

/*
 * No record for it comes any more: its slot is free.  leave: the last one has come, or
 * the worker is gone, and the process has a request less.
 */
void worker_channel_vacate(struct worker_channel *channel, struct channel_slot *pending);
void worker_channel_leave(struct worker_channel *channel, struct channel_slot *pending);

/* --- worker-channel-response.c --- */

/* The first record for a call; it has left the channel if that is the only one. */
void worker_channel_response(struct worker_channel *channel, struct backend_call *call,
			     const struct NC_response *response);

/* A further one. */
void worker_channel_piece(struct backend_call *call, const struct NC_response *response);

/* No more of an answer comes, or it is of no use. */
void worker_channel_break_off(struct backend_call *call, int status, const char *detail);

#endif
