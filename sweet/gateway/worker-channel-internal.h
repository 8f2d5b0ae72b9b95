/* SPDX-License-Identifier: MIT */
/*
 * worker-channel-internal.h - a call in a channel; private to the sources worker-channel*.c.  Each
 * calls only those that are listed above it:
 *
 *   worker-channel-slot.c      the slots of calls
 *   worker-channel-tunnel.c    passes on what clients send after a response 101
 *   worker-channel-response.c  receives responses
 *   worker-channel.c           submits and withdraws calls, dispatches the worker's records
 */
#ifndef SWEET_WORKER_CHANNEL_INTERNAL_H
#define SWEET_WORKER_CHANNEL_INTERNAL_H

#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend-call.h"
#include "backend/response-queue.h"
#include "base/timer.h"
#include "gateway/tunnel-limits.h"
#include "gateway/worker-channel.h"

struct NC_response;
struct slice;
struct transaction;

/* After a response 101. */
struct worker_tunnel {
	struct timer silence;		      /* in both directions */
	void (*expired)(struct timer *timer); /* of it */
	struct tunnel_count count;
	char *waiting; /* bytes for the worker, behind the piece */
	size_t length, room;
	struct NC_range piece; /* that the worker has, or gets next; id 0: none */
	struct NC_hold hold;   /* of it */
	bool given;	       /* the worker has it */
	bool ended;	       /* no more comes from the client */
	bool end_sent;	       /* the worker knows */
	bool holds_input;      /* the client is not read */
	bool drains;	       /* the server wants it to end: silence is the limit for that */
	bool broken;	       /* no memory: silence ends it */
};

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
	uint64_t body_sent;  /* bytes of the request body that the worker has got */
	bool has_piece;	     /* the worker processes a piece, and more follow */
	bool body_pending;   /* a piece of the body waits for the full queue */
	bool late;	     /* it has timed out */
	bool awaited;	     /* the connection waits for the next piece */
	bool failed;	     /* the response is cut off */
	bool switched;	     /* the response is 101 */
	const char *upgrade; /* the protocol that the request asks for; or NULL */
	struct worker_tunnel tunnel;
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

/* Whether there is a free slot, which is the next one; tunnels make more.  No: no memory. */
bool worker_channel_has_slot(struct worker_channel *channel);

/* The call of the slot counts as a tunnel, no longer as a request of the process. */
void worker_channel_set_tunnel(struct worker_channel *channel, struct channel_slot *pending);

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

/* --- worker-channel-tunnel.c --- */

/* Returns the protocol of the pool that the block of a request asks for, or NULL. */
const char *worker_tunnel_asked(const struct backend_call *call, struct slice block);

/* The response is 101, and the call is counted. expired: called when it has to end. */
void worker_tunnel_begin(struct backend_call *call, void (*expired)(struct timer *timer));

/* Bytes have passed: the silence begins again. */
void worker_tunnel_moves(struct backend_call *call);

/* Gives the worker what it may have, also after its queue was full. */
void worker_tunnel_offer(struct backend_call *call);

/* The worker has consumed its piece. */
void worker_tunnel_taken(struct backend_call *call);

/* Releases what the call has for it; nothing if it is none. */
void worker_tunnel_end(struct backend_call *call);

/* Of the transaction's responder. */
void worker_tunnel_from_client(struct transaction *transaction, const char *data, size_t length);
void worker_tunnel_drain(struct transaction *transaction);

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
