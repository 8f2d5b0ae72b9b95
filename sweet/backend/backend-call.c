/* SPDX-License-Identifier: MIT */
/*
 * backend-call.c - see backend-call.h: prepares a call and submits it to the protocol.  Runs on the
 * transaction's thread.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include <nabc-worker.h>

#include "backend/backend-call-internal.h"
#include "backend/backend-call.h"
#include "backend/backend-thread.h"
#include "backend/backpressure.h"
#include "backend/cache-store.h"
#include "backend/pool.h"
#include "backend/protocol.h"
#include "backend/request-spool.h"
#include "backend/response-stream.h"
#include "base/container.h"
#include "base/counter.h"
#include "base/list.h"
#include "base/timer.h"
#include "coding/compress-rule.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "http/accept.h"
#include "http/request-keep.h"
#include "http/request.h"
#include "respcache/respcache.h"

#define BODY_VARIABLES 128 /* bytes of CONTENT_LENGTH and NABC_BODY_ID */

/*
 * The server collects a request body up to this size before it submits the call, so that a slow
 * client does not occupy a program.  The program gets a larger body piece by piece.
 */
#define WHOLE_MAX (1024 * 1024)
#define PIECE (256 * 1024) /* bytes in each piece of a larger body */

static_assert(sizeof(struct backend_call) <= TRANSACTION_SCRATCH, "fits the scratch");

/* Uses the buffer of the response's head if the block fits: it is free until then. */
void backend_call_keep_block(struct backend_call *call, const char *block, size_t length)
{
	struct transaction *transaction = call->transaction;
	bool fits = length <= sizeof(transaction->head_buffer);

	/* The block of a call that has a body, or that was queued, is a copy already. */
	if (block != call->block)
		call->block =
			memcpy(fits ? transaction->head_buffer : g_malloc(length), block, length);
	call->block_length = length;
}

void backend_call_drop_block(struct backend_call *call)
{
	if (call->block != call->transaction->head_buffer)
		g_free(call->block);
	call->block = NULL;
}

void backend_call_finish(struct transaction *transaction)
{
	struct backend_call *call = backend_call_of(transaction);

	timer_stop(&call->timer);
	backpressure_end(call);
	request_spool_end(call);
	cache_store_drop(transaction, RESPCACHE_ABANDONED);
	backend_call_drop_block(call);
	g_clear_pointer(&call->kept, free);
	call->pool->protocol->finish(call);
}

/* The server responds itself, with an error: there is nothing to withdraw. */
static const struct transaction_responder refused = {.finish = backend_call_finish};

static uint64_t now_of(const struct transaction *transaction)
{
	return loop_now_ns(transaction->thread->loop);
}

/* Makes an error response, because the program sent none. */
static enum respond refuse(struct transaction *transaction, int status, const char *detail)
{
	counter_add(&transaction->thread->counters->worker_failures, 1);
	cache_store_drop(transaction, RESPCACHE_LOST);
	backend_call_of(transaction)->refused = true;
	transaction->times.answered_ns = now_of(transaction);
	transaction->responder = &refused;
	transaction->response.date = 0;
	if (status == 503) {
		transaction->response.head = "Retry-After: 1\r\n";
		transaction->response.head_length = strlen(transaction->response.head);
	}
	transaction_fail(transaction, status, detail);
	if (!detail)
		transaction->response.reason = backend_call_of(transaction)->keeps_nothing
						       ? "the request body cannot be kept on disk"
						       : "the program sent no valid response";
	return RESPOND_NOW;
}

void backend_call_fail(struct backend_call *call, int status, const char *detail)
{
	struct transaction *transaction = call->transaction;

	timer_stop(&call->timer);
	if (call->state == CALL_ANSWERED) {
		/* A part may have been sent: only a closed connection shows the failure. */
		counter_add(&transaction->thread->counters->worker_failures, 1);
		cache_store_drop(transaction, RESPCACHE_LOST);
		transaction->response.status = 0;
	} else {
		refuse(transaction, status, detail);
	}
	transaction_done(transaction);
}

/* --- to the protocol ------------------------------------------------------------------ */

/* The client has disconnected: nobody needs the response. */
void backend_call_gone(struct transaction *transaction)
{
	struct backend_call *call = backend_call_of(transaction);

	if (call->spooling) {
		transaction_done(transaction);
	} else if (call->state == CALL_PENDING && call->block) {
		call_queue_remove(call_queue_of(call), call);
		transaction_done(transaction);
	} else if (call->state != CALL_PENDING && call->pool->protocol->gone) {
		/* The call fails for this client only; the shared fetch ends with it. */
		cache_store_drop(transaction, RESPCACHE_ABANDONED);
		call->pool->protocol->gone(call);
	}
}

static void call_too_late(struct timer *timer)
{
	struct backend_call *call = container_of(timer, struct backend_call, timer);

	call->pool->protocol->too_late(call);
}

bool backend_call_submit(struct backend_call *call, const char *block, size_t length)
{
	struct thread *thread = call->transaction->thread;

	/* Set before submit(), because the protocol may respond at once. */
	call->state = CALL_IN_FLIGHT;
	call->transaction->times.submitted_ns = loop_now_ns(thread->loop);
	if (!call->pool->protocol->submit(call, block, length)) {
		call->state = CALL_PENDING;
		call->transaction->times.submitted_ns = 0;
		return false;
	}
	counter_add(&thread->counters->worker_requests, call->taken_back == 0 && !call->moves);
	counter_add(&thread->counters->worker_messages, length);
	return true;
}

void backend_call_handed_on(struct backend_call *call, const char *block, size_t length)
{
	if (call->pool->protocol->takes_back)
		backend_call_keep_block(call, block, length);
	else
		backend_call_drop_block(call);
	call->moves = false;
	backend_call_start_timer(call);
}

void backend_call_start_timer(struct backend_call *call)
{
	loop_timer_start(call->transaction->thread->loop, &call->timer,
			 call->pool->settings->answer_ms, call_too_late);
}

/* --- the request ------------------------------------------------------------------------ */

/* Submits the call to the protocol, or queues it. */
static enum respond hand_on(struct backend_call *call, const char *block, size_t length)
{
	call->transaction->times.ready_ns = now_of(call->transaction);
	/* Queued calls go first. */
	if (list_is_empty(&call_queue_of(call)->calls) &&
	    backend_call_submit(call, block, length)) {
		backend_call_handed_on(call, block, length);
		return RESPOND_LATER;
	}
	if (!gateway_pool_is_unavailable(call->pool) && call_queue_add(call, block, length))
		return RESPOND_LATER;
	return refuse(call->transaction, 503, "No worker is free.");
}

/* Submits a call whose body has been received, with its length and its unit (or 0) as variables. */
static enum respond hand_on_whole(struct backend_call *call, uint64_t length, size_t unit)
{
	char *at = call->block + call->block_length;

	if (call->counted_length)
		call->length = length;
	if (call->pool->protocol->frames_body)
		return hand_on(call, call->block, call->block_length);
	if (call->counted_length)
		at += sprintf(at, "CONTENT_LENGTH=%" PRIu64, length) + 1;
	if (unit)
		at += sprintf(at, "NABC_BODY_ID=%zu", unit) + 1;
	return hand_on(call, call->block, (size_t)(at - call->block));
}

/*
 * Receives the whole body, the first piece or a further piece.  With a whole body the program gets
 * its length and unit as variables.  The first piece is passed with the call; the program gets the
 * body's length if the request stated it.
 */
static enum respond call_received(struct transaction *transaction)
{
	struct backend_call *call = backend_call_of(transaction);

	call->asked = false;
	if (call->buffered && (transaction->upload.more || call->spooling)) {
		int status = request_spool_take(call);

		call->keeps_nothing = status;
		return status ? refuse(transaction, status, NULL) : RESPOND_LATER;
	}
	if (call->state != CALL_PENDING) {
		if (call->state == CALL_IN_FLIGHT)
			backend_call_start_timer(call);
		else if (call->stream)
			response_stream_limit(call->stream);
		if (!call->pool->protocol->body(call)) {
			timer_stop(&call->timer);
			return refuse(transaction, 502, "The worker ended while it was at work.");
		}
		if (call->rest && transaction->upload.more && !call->asked)
			backend_call_next_body(call);
		return RESPOND_LATER;
	}
	if (transaction->upload.more)
		return hand_on(call, call->block, call->block_length);
	return hand_on_whole(call, transaction->upload.length, transaction->upload.unit);
}

static const struct transaction_responder responder = {
	.received = call_received, .gone = backend_call_gone, .finish = backend_call_finish};

void backend_call_body_ready(struct backend_call *call)
{
	struct transaction *transaction = call->transaction;

	if (call->spooling) {
		call->spooling = false;
		/* The unit holds only a part: the program must not take it for the whole body. */
		if (hand_on_whole(call, request_spool_length(call), 0) == RESPOND_NOW)
			transaction_done(transaction);
		return;
	}
	if (call->state == CALL_IN_FLIGHT)
		backend_call_start_timer(call);
	/* A program that already responds may ignore the rest of its request body. */
	if (!call->pool->protocol->body(call) && call->state == CALL_IN_FLIGHT)
		backend_call_fail(call, 502, "The worker ended while it was at work.");
}

void backend_call_body_lost(struct backend_call *call)
{
	call->keeps_nothing = true;
	if (call->state == CALL_PENDING)
		backend_call_fail(call, 503, NULL);
	else
		call->pool->protocol->body_lost(call);
}

void backend_call_ask_piece(struct backend_call *call)
{
	struct transaction *transaction = call->transaction;
	uint64_t limit = transaction->scope->max_body;

	if (!limit)
		limit = UINT64_MAX;
	if (call->buffered)
		limit = MIN(limit, request_spool_most(call->pool));
	if (call->spooling)
		call->window = MIN(call->window, PIECE);
	call->asked = true;
	transaction->owner->receive_piece(transaction, limit, call->window);
}

/* Stores the variables and asks the client for the request body. */
static void ask_body(struct backend_call *call, const char *block, size_t length)
{
	const struct backend_protocol *protocol = call->pool->protocol;
	struct transaction *transaction = call->transaction;
	size_t most = transaction->thread->server->max_unit;
	/* One byte more than a whole body may have: a shorter piece shows that no more follows. */
	size_t whole = MIN(most, WHOLE_MAX + 1);
	uint64_t limit = transaction->scope->max_body;
	bool is_small = transaction->request->content_length <= whole;
	bool is_chunked = transaction->request->chunked;

	call->counted_length = is_chunked;
	call->length = is_chunked ? TRANSACTION_UNKNOWN : transaction->request->content_length;
	call->block = g_malloc(length + BODY_VARIABLES);
	memcpy(call->block, block, length);
	call->block_length = length;
	call->buffered = request_spool_is_wanted(call->pool);
	if (protocol->body && (call->buffered || !(is_chunked && protocol->wants_length))) {
		call->window = is_small ? whole : MIN(whole, PIECE);
		backend_call_ask_piece(call);
	} else {
		/* A whole body must fit into one unit, even if max_body permits more. */
		transaction->owner->receive(transaction, limit && limit < most ? limit : most);
	}
}

void backend_call_next_body(struct backend_call *call)
{
	/* The program runs until the error response is sent; it gets no more of the body. */
	if (call->refused)
		return;
	if (call->upload) {
		request_spool_next(call);
		return;
	}
	/* From here on, the server waits for the client. */
	timer_stop(&call->timer);
	backpressure_wait(call);
	if (call->asked)
		return;
	call->before = call->transaction->upload.length;
	backend_call_ask_piece(call);
}

bool backend_call_rest_of_body(struct backend_call *call)
{
	const struct transaction *transaction = call->transaction;
	uint64_t most = transaction->thread->server->max_unit;
	uint64_t coming = call->asked ? call->window : 0;

	if (call->length == TRANSACTION_UNKNOWN ||
	    call->length > transaction->upload.length + coming + most)
		return false;
	call->rest = true;
	call->window = most;
	backend_call_next_body(call);
	return true;
}

/* While the request exists: in which coding its response may be sent. */
static signed char choose_coding(const struct transaction *transaction)
{
	const struct compress_rule *rule = &transaction->scope->compress;
	enum coding order[CODINGS];
	unsigned count;

	if (!rule->uncached || !rule->codings)
		return TRANSACTION_AS_IT_IS;
	count = transaction_codings(transaction, transaction->request, order);
	for (unsigned i = 0; i < count; i++)
		if (rule->codings & 1u << order[i])
			return (signed char)order[i];
	return TRANSACTION_NO_CODING;
}

void backend_thread_open(struct thread *thread)
{
	thread->backend = g_new0(struct backend_thread, 1);
}

void backend_thread_close(struct thread *thread)
{
	g_clear_pointer(&thread->backend, g_free);
}

enum respond backend_call_start(struct gateway_pool *pool, struct transaction *transaction,
				size_t skip)
{
	struct thread *thread = transaction->thread;
	struct backend_call *call = backend_call_of(transaction);
	char *block = thread->backend->block;
	long length;

	length = pool->protocol->describe(pool, transaction, skip, block,
					  NC_BLOCK_MAX - BODY_VARIABLES);
	memset(call, 0, sizeof(*call));
	call->transaction = transaction;
	call->pool = pool;
	call->coding = choose_coding(transaction);
	if (length < 0)
		return transaction_refuse(transaction, 431,
					  pool->protocol->frames_body
						  ? "fields that are too long"
						  : "variables that are too long");
	if (pool->protocol->redirects || (pool->settings->accel && pool->settings->accel[0])) {
		call->kept = request_keep(transaction->request);
		if (!call->kept)
			return transaction_refuse(transaction, 503,
						  "no memory for a copy of the request");
	}
	transaction->responder = &responder;
	if (!transaction->upload.has)
		return hand_on(call, block, (size_t)length);
	ask_body(call, block, (size_t)length);
	return RESPOND_LATER;
}
