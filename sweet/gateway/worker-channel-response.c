/* SPDX-License-Identifier: MIT */
/*
 * worker-channel-response.c - passes a worker's response to the connection.
 *
 * A response in pieces is announced to the connection with the first record.  Then pieces are
 * queued; the connection takes one after the other with channel_next_piece(), and waits
 * (`awaited`) if there is none.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "backend/backend-call.h"
#include "backend/backpressure.h"
#include "backend/cache-store.h"
#include "backend/pool.h"
#include "backend/response-queue.h"
#include "base/container.h"
#include "base/counter.h"
#include "base/slice.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/page-memory.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "event/piece.h"
#include "gateway/pool-process.h"
#include "gateway/tunnel-limits.h"
#include "gateway/worker-channel-internal.h"
#include "gateway/worker-channel.h"
#include "http/response.h"
#include "http/trailers.h"
#include "log/log.h"
#include "respcache/respcache.h"

/* The library returns credit for several pieces at once: it may be due if that many are kept. */
#define KEPT_MOST (NC_WORKER_WINDOW / 2)

#define INTERIMS_MAX 8u /* of a response, for its client; the others are dropped */

/*
 * Returns window credit to the worker for pieces that were sent, and for pieces that may be queued
 * here while it continues.  If the worker still has to wait, it waits for the client.
 *
 * Pieces beyond the announced length get no credit back: no client takes them, so nothing else
 * would slow down a worker that sends without end.
 */
static void adjust_flow(struct backend_call *call)
{
	struct channel_call *own = channel_call_of(call);

	backpressure_ahead(call, own->shared, own->parts.bytes);
	if (!own->channel) {
		backpressure_go_on(call);
		return;
	}
	while (own->kept > own->excess && (own->kept - own->excess > own->parts.count ||
					   backpressure_has_room(call, own->shared))) {
		(void)NC_backend_sent(own->channel->backend, own->channel->thread->number,
				      worker_channel_tag(own->channel, own->slot));
		own->channel->dirty = true;
		own->kept--;
		backpressure_go_on(call);
	}
	if (own->kept - own->excess > KEPT_MOST)
		backpressure_wait(call);
}

static void advance(struct backend_call *call)
{
	struct channel_call *own = channel_call_of(call);

	/* An empty piece means a complete response; status 0 shows the failure. */
	if (own->failed && !response_queue_wait(&own->parts))
		call->transaction->response.status = 0;
	call->transaction->piece = response_queue_take(&own->parts);
	adjust_flow(call);
}

/* The current piece was sent. */
static enum respond channel_next_piece(struct transaction *transaction)
{
	struct backend_call *call = backend_call_of(transaction);
	struct channel_call *own = channel_call_of(call);

	if (own->channel && !response_queue_wait(&own->parts)) {
		adjust_flow(call);
		own->awaited = true;
		/* A tunnel has a time limit of its own, in both directions. */
		if (!own->switched)
			backend_call_start_timer(call);
		return RESPOND_LATER;
	}
	advance(call);
	return RESPOND_NOW;
}

static const struct transaction_responder pieces = {
	.next = channel_next_piece, .gone = backend_call_gone, .finish = backend_call_finish};

/* A response 101: bytes in both directions. */
static const struct transaction_responder tunnel = {.next = channel_next_piece,
						    .tunnel = worker_tunnel_from_client,
						    .drain = worker_tunnel_drain,
						    .gone = backend_call_gone,
						    .finish = backend_call_finish};

/* Passes the next piece, or the end, to a connection that waits for it. */
static void satisfy(struct backend_call *call)
{
	struct channel_call *own = channel_call_of(call);

	if (!own->awaited || (own->channel && !response_queue_wait(&own->parts)))
		return;
	own->awaited = false;
	timer_stop(&call->timer);
	advance(call);
	transaction_done(call->transaction);
}

void worker_channel_break_off(struct backend_call *call, int status, const char *detail)
{
	worker_channel_orphan(call);
	if (call->state != CALL_ANSWERED) {
		backend_call_fail(call, status, detail);
		return;
	}
	channel_call_of(call)->failed = true;
	backpressure_go_on(call);
	cache_store_drop(call->transaction, RESPCACHE_LOST);
	counter_add(&call->transaction->thread->counters->worker_failures, 1);
	satisfy(call);
}

/* Ends a tunnel: for the worker, its client is gone; for the client, the response is complete. */
static void channel_tunnel_expired(struct timer *timer)
{
	struct channel_call *own = container_of(timer, struct channel_call, tunnel.silence);
	struct backend_call *call = container_of((unsigned char(*)[BACKEND_CALL_OWN])(void *)own,
						 struct backend_call, own);
	const char *why = own->tunnel.broken ? "no memory for what the client sends"
			  : own->tunnel.drains
				  ? "the server wants to end it, and timeout has passed"
				  : "silent for upgrade-timeout";

	log_info("%s: pool %s: %s: %s: closing", call->transaction->peer.remote_addr,
		 call->pool->settings->name, own->upgrade, why);
	worker_channel_orphan(call);
	own->failed |= own->tunnel.broken;
	satisfy(call);
}

static struct slice bytes_of(const struct NC_response *response)
{
	return (struct slice){response->data, response->data_length};
}

static void add_part(struct backend_call *call, const struct NC_response *response)
{
	struct thread *thread = call->transaction->thread;
	struct channel_call *own = channel_call_of(call);
	uint64_t before = own->left;
	bool good;

	if (response->data)
		good = response_queue_add_bytes(&own->parts, bytes_of(response), &own->left,
						&thread->server->answers);
	else
		good = response_queue_add(&own->parts, response->ranges, response->holds,
					  response->range_count, &own->left);
	own->failed |= !good;
	counter_add(response->data ? &thread->counters->worker_messages
				   : &thread->counters->worker_bodies,
		    before - own->left);
}

static uint64_t length_of(const struct NC_response *response)
{
	uint64_t bytes = response->data_length;

	for (unsigned i = 0; i < response->range_count; i++)
		bytes += response->ranges[i].length;
	return bytes;
}

/*
 * Passes a part to the response cache. sent: its bytes that are sent; a part that exceeds the
 * announced length is not cached.
 */
static void keep_part(struct backend_call *call, const struct NC_response *response, uint64_t sent)
{
	if (length_of(response) > sent)
		cache_store_drop(call->transaction, RESPCACHE_LOST);
	else if (response->data)
		cache_store_bytes(call->transaction, bytes_of(response));
	else
		cache_store_part(call->transaction, response->ranges, response->holds,
				 response->range_count);
}

/*
 * Takes the trailers of a last piece: a body whose length was announced has none, as the client may
 * have all of it.  Returns false if they are malformed.
 */
static bool take_trailers(struct worker_channel *channel, struct backend_call *call,
			  const struct NC_response *response)
{
	struct transaction *transaction = call->transaction;
	struct slice lines = {.at = response->headers, .length = response->headers_length};
	char text[TRANSACTION_TRAILERS_MAX];
	long length;

	counter_add(&channel->thread->counters->worker_messages, lines.length);
	if (transaction->response.length != TRANSACTION_UNKNOWN)
		return true;
	length = trailers_filter(lines, transaction->response.coded, text, sizeof(text));
	if (length < 0) {
		worker_channel_complain(channel,
					"malformed trailer fields, or more than 4096 bytes");
		counter_add(&channel->failures, 1);
		return false;
	}
	/* Without memory, the response has none. */
	transaction->response.trailers = length ? malloc((size_t)length) : NULL;
	if (!transaction->response.trailers)
		return true;
	memcpy(transaction->response.trailers, text, (size_t)length);
	transaction->response.trailers_length = (size_t)length;
	return true;
}

void worker_channel_piece(struct worker_channel *channel, struct backend_call *call,
			  const struct NC_response *response)
{
	struct channel_call *own = channel_call_of(call);
	bool excess = own->left == 0;

	if (response->flags & NC_RESPONSE_ABORTED) {
		worker_channel_break_off(call, 502, "The worker gave up.");
		return;
	}
	if (response->headers_length && !take_trailers(channel, call, response)) {
		worker_channel_break_off(call, 502, NULL);
		return;
	}
	if (own->switched)
		worker_tunnel_moves(call);
	keep_part(call, response, own->left);
	add_part(call, response);
	if (own->channel) {
		own->kept++;
		own->excess += excess;
	}
	adjust_flow(call);
	/* The announced length must be reached. */
	if (own->failed || (!own->channel && own->left &&
			    call->transaction->response.length != TRANSACTION_UNKNOWN)) {
		worker_channel_break_off(call, 502, NULL);
		return;
	}
	/* After the last announced byte the connection does not ask for more. */
	if (!own->channel || own->left == 0)
		cache_store_end(call->transaction);
	satisfy(call);
}

/* --- the head ------------------------------------------------------------------------------- */

/* Whether the client may still get it: a worker can send them without end. */
static bool may_pass(struct channel_call *own, size_t bytes)
{
	if (own->interims == INTERIMS_MAX || bytes > TRANSACTION_INTERIM_MAX - own->interim_bytes)
		return false;
	own->interims++;
	own->interim_bytes += bytes;
	return true;
}

void worker_channel_interim(struct worker_channel *channel, struct backend_call *call,
			    const struct NC_response *response)
{
	struct transaction *transaction = call->transaction;
	struct slice lines = {.at = response->headers, .length = response->headers_length};
	char text[TRANSACTION_INTERIM_MAX];
	struct response_facts facts;
	long length;

	counter_add(&channel->thread->counters->worker_messages, lines.length);
	if (!may_pass(channel_call_of(call), lines.length + lines.length / 3))
		return;
	length = response_filter_headers(lines, text, sizeof(text), &facts);
	if (length >= 0) {
		transaction->owner->interim(transaction, response->status,
					    (struct slice){text, (size_t)length});
		return;
	}
	worker_channel_complain(channel, "malformed header lines in an interim response");
	counter_add(&channel->failures, 1);
	worker_channel_break_off(call, 502, NULL);
}

/* Passes the response to the response cache. */
static void keep(struct backend_call *call, const struct NC_response *response, struct slice lines,
		 size_t filtered, bool has_body)
{
	struct transaction *transaction = call->transaction;
	/* One bit for each range whose unit the worker keeps. */
	uint64_t stay = response->flags & NC_RESPONSE_KEEP
				? ~(uint64_t)(response->flags / NC_RESPONSE_DROP(0))
				: 0;

	/* Fields that were filtered out may be for the cache. */
	if (transaction->store || filtered != lines.length)
		cache_store_lines(transaction, response->status, lines);
	if (has_body &&
	    (channel_call_of(call)->channel || transaction->piece.kind == PIECE_BYTES)) {
		/* The part has been queued, and the bytes that are sent are still valid. */
		keep_part(call, response, transaction->piece.length);
		if (!channel_call_of(call)->channel)
			cache_store_end(transaction);
	} else {
		cache_store_body(transaction, response->ranges, response->holds,
				 has_body ? response->range_count : 0, stay);
	}
}

/* Releases the page of a response; a request may wait for its memory. */
static void channel_release_page(struct piece *piece)
{
	(void)NC_release(&piece->hold);
	page_memory_release(piece->pages, piece->range.length);
	if (page_memory_must_notify(piece->pages))
		call_queue_room_everywhere(piece->owner);
}

/* Whether a call may have the response 101; otherwise it has failed. */
static bool may_switch(struct worker_channel *channel, struct backend_call *call,
		       const struct NC_response *response)
{
	struct channel_call *own = channel_call_of(call);

	if (own->upgrade && tunnel_limits_enter(call, &own->tunnel.count))
		return true;
	response_queue_release(response);
	if (own->upgrade) {
		worker_channel_break_off(call, 503, "Too many connections are open.");
		return false;
	}
	worker_channel_complain(channel, "responded with 101 to a request that does not ask for "
					 "another protocol, or for none of upgrade of its pool");
	counter_add(&channel->failures, 1);
	worker_channel_break_off(call, 502, NULL);
	return false;
}

/* Announces a stream of bytes; lines: bytes of the worker's header lines. */
static void answer_101(struct backend_call *call, size_t lines)
{
	struct transaction *transaction = call->transaction;
	struct channel_call *own = channel_call_of(call);

	lines += (size_t)sprintf(transaction_lines(transaction) + lines, "Upgrade: %s\r\n",
				 own->upgrade);
	transaction->responder = &tunnel;
	transaction->response.live = true;
	call_answer(call, 101, lines, true, true, TRANSACTION_UNKNOWN);
	worker_tunnel_begin(call, channel_tunnel_expired);
	own->kept = 1;
	adjust_flow(call);
	transaction_done(transaction);
}

void worker_channel_response(struct worker_channel *channel, struct backend_call *call,
			     const struct NC_response *response)
{
	struct transaction *transaction = call->transaction;
	struct channel_call *own = channel_call_of(call);
	struct slice lines = {.at = response->headers, .length = response->headers_length};
	struct response_facts facts = {0};
	const char *fault = "malformed header lines, or no memory for them";
	bool good;
	bool has_body = (own->channel || response->range_count || response->data) &&
			response->status != 204 && response->status != 304;
	struct page_memory *pages = &call->pool->pages[channel->process->number];
	uint64_t length = 0, page = 0;
	bool switches = response->status == 101;
	long filtered = 0;

	if (switches && !may_switch(channel, call, response))
		return;
	counter_add(&channel->thread->counters->worker_messages, response->headers_length);
	good = lines.length <= call->pool->settings->max_response_header;
	if (!good)
		fault = "its response head is longer than max-response-header of its pool";
	else if (lines.length)
		filtered = call_take_lines(call, lines, &facts);
	if (own->channel)
		length = facts.has_length && !switches ? facts.length : TRANSACTION_UNKNOWN;
	if (filtered < 0 || !good) {
		worker_channel_complain(channel, fault);
		counter_add(&channel->failures, 1);
		response_queue_release(response);
		worker_channel_break_off(call, 502, NULL);
		return;
	}
	own->left = own->channel ? length : UINT64_MAX;
	if (!has_body)
		own->left = 0;
	own->body_pending = false;
	if (response->range_count == 1 && !own->channel && has_body) {
		/* The common case: one unit. */
		own->left -= response->body.length;
		transaction->piece = piece_range(response->body, response->holds[0]);
		transaction->piece.pages = pages;
		transaction->piece.release = channel_release_page;
		transaction->piece.owner = call->pool;
		page = response->body.length;
		counter_add(&channel->thread->counters->worker_bodies, response->body.length);
	} else if (response->range_count || response->data) {
		add_part(call, response);
		transaction->piece = response_queue_take(&own->parts);
	}
	page_memory_hold(pages, page);
	if (!own->channel)
		length = has_body ? UINT64_MAX - own->left : 0;
	if (own->failed) {
		worker_channel_break_off(call, 503, NULL);
		return;
	}
	if (switches) {
		answer_101(call, (size_t)filtered);
		return;
	}
	if (own->channel && has_body && length) {
		transaction->responder = &pieces;
		transaction->response.live = true;
	}
	call_take_date(call, &facts);
	call_answer(call, response->status, (size_t)filtered, facts.has_type, has_body,
		    has_body ? length : 0);
	if (own->channel) {
		own->kept = 1;
		adjust_flow(call);
	}
	keep(call, response, lines, (size_t)filtered, has_body);
	transaction_done(transaction);
}
