/* SPDX-License-Identifier: MIT */
/*
 * worker-channel-internal.h - a call in a channel; private to the sources worker-channel*.c.  Each
 * calls only those that are listed above it:
 *
 *   worker-channel-slot.c      the slots of calls
 *   worker-channel-response.c  receives responses
 *   worker-channel.c           submits and withdraws calls, dispatches the worker's records
 */
#ifndef SWEET_WORKER_CHANNEL_INTERNAL_H
#define SWEET_WORKER_CHANNEL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend-call.h"
#include "backend/response-queue.h"
#include "gateway/worker-channel.h"

struct NC_response;

/* Lies in backend_call.own. */
struct channel_call {
	struct worker_channel *channel; /* NULL: not in a channel */
	uint32_t slot;
	struct response_queue parts;
	struct budget *shared; /* budget of the parts */
	unsigned kept;	       /* pieces whose window credit is not yet returned to the worker */
	unsigned excess;   /* pieces beyond the announced length: their credit is never returned */
	uint64_t left;	   /* bytes of the response that may still come */
	unsigned interims; /* interim responses so far, and bytes of their lines */
	size_t interim_bytes;
	uint64_t body_sent; /* bytes of the request body that the worker has got */
	bool has_piece;	    /* the worker processes a piece, and more follow */
	bool body_pending;  /* a piece of the body waits for the full queue */
	bool late;	    /* it has timed out */
	bool awaited;	    /* the connection waits for the next piece */
	bool failed;	    /* the response is cut off */
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

/* Sets whether a response in pieces is being sent from the slot. */
void worker_channel_set_streams(struct worker_channel *channel, struct channel_slot *pending,
				bool streams);

/*
 * Whether the worker has sent nothing for this call while it sends another response, of any thread,
 * or has sent one until less than the timeout of an answer ago.  The other response has its own
 * limits, so this delay is not the worker's fault.
 */
bool worker_channel_is_behind_another(const struct worker_channel *channel,
				      const struct channel_slot *pending);

/* Tells the worker that the call is cancelled, now or when its queue has space. */
void worker_channel_send_cancel(struct worker_channel *channel, struct channel_slot *pending);

/* Logs what the channel's worker did. */
void worker_channel_complain(const struct worker_channel *channel, const char *what);

/* Separates the call from its slot and cancels it: the worker may stop, or finish it for nobody. */
void worker_channel_orphan(struct backend_call *call);

/*
 * Frees the slot: no more records come for it. worker_channel_leave() also counts the request as
 * ended in the process: its last record has come, or the worker has ended.
 */
void worker_channel_vacate(struct worker_channel *channel, struct channel_slot *pending);
void worker_channel_leave(struct worker_channel *channel, struct channel_slot *pending);

/* --- worker-channel-response.c --- */

/* Passes on an interim response.  The call has left the channel if it was invalid. */
void worker_channel_interim(struct worker_channel *channel, struct backend_call *call,
			    const struct NC_response *response);

/* Processes the first record for a call; if no more follow, the call has left the channel. */
void worker_channel_response(struct worker_channel *channel, struct backend_call *call,
			     const struct NC_response *response);

/* Processes a further record. */
void worker_channel_piece(struct worker_channel *channel, struct backend_call *call,
			  const struct NC_response *response);

/* Ends a response: no more of it comes, or it is invalid. */
void worker_channel_break_off(struct backend_call *call, int status, const char *detail);

#endif
