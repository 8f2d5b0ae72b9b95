/* SPDX-License-Identifier: MIT */
/*
 * worker-channel.c - see worker-channel.h: submits requests to the worker, and dispatches its
 * records to their calls; withdraws calls that the worker has not begun with, to move them to
 * another worker, or because the worker has ended.  A channel belongs to its thread.
 *
 * A worker's response is checked twice.  The library has verified that the units belong to the
 * worker, holds them, and has verified the order of pieces.  Here the tag must name a call that
 * this worker has, and the header lines must be valid.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <nabc.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/response-queue.h"
#include "base/budget.h"
#include "base/counter.h"
#include "base/slice.h"
#include "base/timer.h"
#include "core/page-memory.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/piece.h"
#include "gateway/pool-process.h"
#include "gateway/worker-channel-internal.h"
#include "gateway/worker-channel.h"
#include "http/body.h"

/* for one worker in one turn of the loop: the worker may write as fast as they are read */
#define RECORDS_MAX 64u

/* that a queue can hold: another process that has it mapped may write after the worker's end */
#define RECORDS_LEFT 4096u

static_assert(sizeof(struct channel_call) <= BACKEND_CALL_OWN, "fits a call");

/* --- calls whose client has gone, or has all --------------------------------------------- */

void worker_channel_gone(struct backend_call *call)
{
	worker_channel_orphan(call);
	timer_stop(&call->timer);
	transaction_done(call->transaction);
}

void worker_channel_finish(struct backend_call *call)
{
	worker_channel_orphan(call);
	worker_tunnel_end(call);
	response_queue_clear(&channel_call_of(call)->parts);
}

/* --- requests ---------------------------------------------------------------------------- */

/* Grants the body to the worker, and to no other process. */
static bool grant_upload(struct worker_channel *channel, const struct transaction *transaction)
{
	return !transaction->upload.unit || NC_grant(NULL, transaction->upload.unit, NC_PROCESS_FD,
						     (id_t)NC_backend_pidfd(channel->backend)) == 0;
}

/* Sends the granted piece to the worker. */
static void give_piece(struct backend_call *call)
{
	struct channel_call *own = channel_call_of(call);
	struct transaction *transaction = call->transaction;
	struct worker_channel *channel = own->channel;
	struct NC_range piece = {.id = transaction->upload.unit,
				 .length = (size_t)(transaction->upload.length - own->body_sent)};

	own->body_pending =
		NC_backend_body(channel->backend, channel->thread->number,
				worker_channel_tag(channel, own->slot), piece.id ? &piece : NULL,
				transaction->upload.more ? 0 : NC_BODY_LAST) < 0;
	channel->notify_pending |= own->body_pending;
	channel->dirty = true;
	if (own->body_pending)
		return;
	own->body_sent = transaction->upload.length;
	own->has_piece = transaction->upload.more;
}

bool worker_channel_submit(struct worker_channel *channel, struct backend_call *call,
			   const char *block, size_t length)
{
	struct channel_call *own = channel_call_of(call);
	bool in_pieces = call->transaction->upload.more;
	uint32_t slot;

	if (!worker_channel_has_slot(channel))
		return false;
	slot = channel->free;
	if (!grant_upload(channel, call->transaction) ||
	    NC_backend_submit(channel->backend, channel->thread->number,
			      worker_channel_tag(channel, slot), block, length,
			      in_pieces ? NC_REQUEST_BODY : 0) < 0)
		return false;
	channel->free = channel->pending[slot].next;
	channel->pending[slot].call = call;
	channel->pending[slot].heard = false;
	channel->pending[slot].number = ++channel->submitted;
	channel->in_flight++;
	pool_process_takes(channel->process, loop_now_ms(channel->thread->loop));
	counter_add(&channel->requests, 1);
	channel->dirty = true;
	own->channel = channel;
	own->slot = slot;
	own->shared = &call->pool->ahead[channel->process->number];
	own->upgrade = worker_tunnel_asked(call, (struct slice){block, length});
	if (in_pieces)
		give_piece(call);
	return true;
}

bool worker_channel_body(struct backend_call *call)
{
	if (!grant_upload(channel_call_of(call)->channel, call->transaction)) {
		worker_channel_orphan(call);
		return false;
	}
	give_piece(call);
	return true;
}

/* The worker has consumed its piece.  Nothing is to be done for the last one. */
static void take_piece_back(struct worker_channel *channel, struct backend_call *call)
{
	struct channel_call *own = channel_call_of(call);

	if (own->switched)
		worker_tunnel_taken(call);
	if (!own->has_piece)
		return;
	own->has_piece = false;
	if (call->state == CALL_IN_FLIGHT) {
		backend_call_next_body(call);
		return;
	}
	/* The rest of the body was dropped when the response began. */
	worker_channel_complain(channel, "read more of the request body after it began to respond");
	worker_channel_break_off(call, 502, NULL);
}

/* --- records ------------------------------------------------------------------------------- */

/* Returns the slot of the tag, or NULL if no call of this worker has it. */
static struct channel_slot *find(struct worker_channel *channel, uint64_t tag)
{
	uint32_t slot = (uint32_t)tag;
	struct channel_slot *pending;

	if (slot >= channel->slots)
		return NULL;
	pending = &channel->pending[slot];
	return pending->generation == tag >> 32 && (pending->call || pending->orphaned) ? pending
											: NULL;
}

static void take_record(struct worker_channel *channel, struct channel_slot *pending,
			const struct NC_response *response)
{
	struct backend_call *call = pending->call;

	pending->heard = true;
	if (response->flags & NC_RESPONSE_TAKEN) {
		if (call)
			take_piece_back(channel, call);
		return;
	}
	if (response->flags & NC_RESPONSE_INTERIM) {
		if (call)
			worker_channel_interim(channel, call, response);
		return;
	}
	if (!(response->flags & NC_RESPONSE_MORE)) {
		worker_channel_leave(channel, pending);
		pool_process_served(channel->process);
	} else if (call && response->status != 101) {
		worker_channel_set_streams(channel, pending, true);
	}
	if (!call)
		response_queue_release(response);
	else if (response->flags & (NC_RESPONSE_PIECE | NC_RESPONSE_ABORTED))
		worker_channel_piece(channel, call, response);
	else
		worker_channel_response(channel, call, response);
}

bool worker_channel_reap(struct worker_channel *channel)
{
	struct gateway_pool *pool = channel->process->pool;
	bool any = false;

	for (unsigned i = 0; i < RECORDS_MAX && channel->backend; i++) {
		struct NC_response response;
		struct channel_slot *pending;
		uint64_t tag;
		int got = NC_backend_reap(channel->backend, channel->thread->number, &tag,
					  &response, sizeof(response));

		if (got < 0)
			pool_process_kill(channel->process, "broke the queue protocol");
		if (got <= 0)
			break;
		any = true;
		if (response.flags & NC_RESPONSE_REPLACE) {
			pool_process_replace(channel->process);
			continue;
		}
		pending = find(channel, tag);
		if (!pending) {
			/* An unrequested response is a fault of the worker only. */
			response_queue_release(&response);
			pool_process_kill(channel->process, "responded to an unknown request");
			break;
		}
		take_record(channel, pending, &response);
	}
	if (any)
		call_queue_room(pool, channel->thread);
	return any;
}

void worker_channel_reap_last(struct worker_channel *channel)
{
	unsigned turns = 0;

	while (turns++ < RECORDS_LEFT / RECORDS_MAX && worker_channel_reap(channel))
		;
}

static void give_again(struct backend_call *call)
{
	if (channel_call_of(call)->switched)
		worker_tunnel_offer(call);
	else
		give_piece(call);
}

/* Sends what a full queue has delayed. */
static void send_pending(struct worker_channel *channel)
{
	channel->notify_pending = false;
	for (uint32_t i = 0; i < channel->slots; i++) {
		struct channel_slot *pending = &channel->pending[i];

		if (pending->cancel_pending)
			worker_channel_send_cancel(channel, pending);
		else if (pending->call && channel_call_of(pending->call)->body_pending)
			give_again(pending->call);
	}
}

bool worker_channel_settle(struct worker_channel *channel)
{
	if (channel->notify_pending)
		send_pending(channel);
	if (channel->dirty)
		(void)NC_backend_kick(channel->backend, channel->thread->number);
	channel->dirty = false;
	if (worker_channel_is_idle(channel) ||
	    NC_backend_arm(channel->backend, channel->thread->number, 1) <= 0 ||
	    !worker_channel_reap(channel))
		return false;
	/* Answers that are left came before the time limits of their calls. */
	loop_hold_timers(channel->thread->loop, WORKER_IN_FLIGHT / RECORDS_MAX + 1);
	return true;
}

void worker_channel_drain(struct worker_channel *channel)
{
	for (uint32_t i = 0; i < channel->slots; i++) {
		struct channel_slot *pending = &channel->pending[i];

		if (pending->tunnel && pending->call)
			worker_tunnel_drain(pending->call->transaction);
	}
}

/* --- calls that the worker has not begun with -------------------------------------- */

/* Returns how many calls were withdrawn, 0 or 1. */
static unsigned withdraw(struct worker_channel *channel, unsigned most, unsigned *left)
{
	int count = NC_backend_withdraw(channel->backend, channel->thread->number, most, left);

	if (count >= 0)
		return (unsigned)count;
	pool_process_kill(channel->process, "broke the queue protocol");
	*left = 0;
	return 0;
}

unsigned worker_channel_waiting(struct worker_channel *channel)
{
	unsigned left;

	(void)withdraw(channel, 0, &left);
	return left;
}

static struct channel_slot *find_number(struct worker_channel *channel, uint64_t number)
{
	for (uint32_t i = 0; i < channel->slots; i++) {
		struct channel_slot *pending = &channel->pending[i];

		if ((pending->call || pending->orphaned) && pending->number == number)
			return pending->heard ? NULL : pending;
	}
	return NULL;
}

/* The worker may no longer read the body. */
static void revoke_upload(struct worker_channel *channel, const struct transaction *transaction)
{
	if (transaction->upload.unit)
		(void)NC_revoke(NULL, transaction->upload.unit, NC_PROCESS_FD,
				(id_t)NC_backend_pidfd(channel->backend));
}

bool worker_channel_withdraw(struct worker_channel *channel)
{
	struct backend_call *call = NULL;
	unsigned left;

	while (!call && withdraw(channel, 1, &left)) {
		struct channel_slot *pending = find_number(channel, channel->submitted - left);

		/* The worker has responded to a call that it reports as not begun. */
		if (!pending) {
			pool_process_kill(channel->process, "broke the queue protocol");
			return false;
		}
		call = pending->call;
		worker_channel_vacate(channel, pending);
		pool_process_loses(channel->process);
	}
	if (!call)
		return false;
	revoke_upload(channel, call->transaction);
	call_queue_move(call);
	return true;
}

/*
 * Finds the slots of the calls that the worker reports as not begun, in their order.  The report is
 * valid only if it agrees with the state here: these must be the last calls, and none may have a
 * record.
 */
static unsigned find_pending(struct worker_channel *channel, uint32_t slots[WORKER_IN_FLIGHT])
{
	int reported = NC_backend_pending(channel->backend, channel->thread->number), found = 0;
	uint64_t begun = channel->submitted - (uint64_t)reported;

	if (reported >= 0 && (unsigned)reported <= channel->in_flight) {
		for (uint32_t i = 0; i < channel->slots; i++) {
			const struct channel_slot *pending = &channel->pending[i];

			if ((!pending->call && !pending->orphaned) || pending->heard ||
			    pending->number <= begun)
				continue;
			slots[pending->number - begun - 1] = i;
			found++;
		}
	}
	if (found == reported)
		return (unsigned)reported;
	worker_channel_complain(
		channel, "its report of unprocessed requests is invalid: failing all its requests");
	return 0;
}

void worker_channel_take_back(struct worker_channel *channel)
{
	uint32_t slots[WORKER_IN_FLIGHT];
	unsigned count = channel->in_flight ? find_pending(channel, slots) : 0;

	/* In reverse order, so that the oldest call is at the head of the queue. */
	while (count--) {
		struct channel_slot *pending = &channel->pending[slots[count]];
		struct backend_call *call = pending->call;

		/* A call that cannot be queued again fails later; orphaned ones need nothing. */
		if (call && call_queue_take_back(call))
			worker_channel_leave(channel, pending);
	}
}

/* --- the worker's end ------------------------------------------------------------------------ */

void worker_channel_too_late(struct backend_call *call)
{
	struct channel_call *own = channel_call_of(call);

	if (worker_channel_is_behind_another(own->channel, &own->channel->pending[own->slot])) {
		worker_channel_break_off(call, 503, "No worker is free.");
		return;
	}
	/* Its end fails this call and others that the worker has begun, and requeues the rest. */
	own->late = true;
	pool_process_kill(own->channel->process, "took too long to answer");
}

void worker_channel_abandon(struct worker_channel *channel)
{
	for (uint32_t i = 0; i < channel->slots; i++) {
		struct channel_slot *pending = &channel->pending[i];
		struct backend_call *call = pending->call;

		if (!call && !pending->orphaned)
			continue;
		worker_channel_leave(channel, pending);
		if (!call)
			continue;
		counter_add(&channel->failures, 1);
		if (channel_call_of(call)->late)
			worker_channel_break_off(call, 504, "The worker took too long.");
		else
			worker_channel_break_off(call, 502,
						 "The worker ended while it was at work.");
	}
}
