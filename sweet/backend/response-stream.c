/* SPDX-License-Identifier: MIT */
/*
 * response-stream.c - see response-stream.h.
 *
 *   before `has_head`   the bytes belong to the head, which may span several buffers
 *   before `announced`  the connection has not got the response: it can still become a 502
 *   after that          buffers with ranges are queued; the connection takes one after the other
 *                       with response_stream_next(), and waits (`awaited`) if there is none
 *   `ended`             no more data comes
 *   `held`              before all that: what is read is queued unparsed
 *   `failed`            an announced response is cut off, any other becomes a 502
 *
 * When the memory limit is reached, buffers are written to disk and stay in the queue as stored
 * ones, so that the program does not have to wait for its client.
 */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "backend/backend-call.h"
#include "backend/cache-store.h"
#include "backend/backpressure.h"
#include "backend/gateway.h"
#include "backend/read-buffer.h"
#include "backend/response-spool.h"
#include "backend/response-stream-internal.h"
#include "backend/response-stream.h"
#include "base/container.h"
#include "base/counter.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/timer.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "log/log.h"
#include "respcache/respcache.h"

/* Buffers that may be read even above the memory limits; the same for a held stream. */
#define BUFFERS_LEAST 2u
#define BUFFERS_HELD 16u

/* --- room ---------------------------------------------------------------------------------- */

static const struct read_buffer *first_of(const struct response_stream *stream)
{
	return list_first(&stream->queue, const struct read_buffer, node);
}

static struct budget *shared(const struct response_stream *stream)
{
	return &stream->call->pool->gateway->server->ahead;
}

static bool has_memory(const struct response_stream *stream)
{
	return stream->count < (stream->held ? BUFFERS_HELD : BUFFERS_LEAST) ||
	       backpressure_has_room(stream->call, shared(stream));
}

static bool has_room(const struct response_stream *stream)
{
	return has_memory(stream) || response_spool_has_room(stream);
}

bool response_stream_takes_more(struct response_stream *stream)
{
	stream->full = !has_room(stream);
	return !stream->full && !stream->paused;
}

/* Buffers have left memory: a source that waited for this reads on. */
static void resume_if_full(struct response_stream *stream)
{
	if (!stream->full || stream->ended || stream->failed || !has_room(stream))
		return;
	stream->full = false;
	stream->source->resume(stream->call);
}

/* Buffers came, left or ended: lets the program continue, or waits for the client. */
static void adjust_flow(struct response_stream *stream)
{
	backpressure_ahead(stream->call, shared(stream), stream->bytes);
	/* While the request body is being received, it uses the timer. */
	if (stream->held)
		return;
	if (stream->ended || stream->failed || has_room(stream))
		backpressure_go_on(stream->call);
	else if (stream->announced)
		backpressure_wait(stream->call);
}

/* --- to the connection --------------------------------------------------------------------- */

static void drop_queue(struct response_stream *stream)
{
	struct read_buffer *buffer;

	while ((buffer = list_take(&stream->queue, struct read_buffer, node))) {
		if (buffer->id)
			stream->bytes -= read_buffer_memory(buffer);
		read_buffer_free(buffer);
	}
	stream->count = 0;
	response_spool_end(stream);
}

static void drop_sending(struct response_stream *stream)
{
	if (stream->sending)
		stream->bytes -= read_buffer_memory(stream->sending);
	read_buffer_free(stream->sending);
	stream->sending = NULL;
}

/* Makes as many ranges as one message takes the transaction's piece. */
static void hand_ranges(struct response_stream *stream)
{
	struct transaction *transaction = stream->call->transaction;
	struct read_buffer *buffer = stream->sending;

	transaction->ranges = buffer->ranges + buffer->delivered;
	transaction->holds = &buffer->hold;
	transaction->hold_count = 1;
	transaction->range_count = MIN(buffer->range_count - buffer->delivered, NC_RANGES_MAX);
	buffer->delivered += transaction->range_count;
}

static void hand_over(struct response_stream *stream)
{
	stream->sending = list_take(&stream->queue, struct read_buffer, node);
	stream->count--;
	hand_ranges(stream);
}

/* Drops everything that is queued: the response fails. */
static void cut(struct response_stream *stream, const char *fault)
{
	char name[256];

	stream->failed = true;
	stream->held = false;
	response_stream_keep_back(stream);
	log_warning("%s: %s", stream->source->name(stream->call, name, sizeof(name)), fault);
	drop_queue(stream);
	adjust_flow(stream);
	cache_store_drop(stream->call->transaction, RESPCACHE_LOST);
}

void response_stream_limit(const struct response_stream *stream)
{
	if (stream->awaited && stream->source->awaited)
		stream->source->awaited(stream->call);
}

enum respond response_stream_next(struct transaction *transaction)
{
	struct backend_call *call = backend_call_of(transaction);
	struct response_stream *stream = call->stream;
	const struct read_buffer *first;

	if (!stream->failed && stream->sending &&
	    stream->sending->delivered < stream->sending->range_count) {
		hand_ranges(stream);
		return RESPOND_NOW;
	}
	drop_sending(stream);
	transaction->ranges = NULL;
	transaction->range_count = transaction->hold_count = 0;
	if (stream->failed) {
		transaction->status = 0;
		return RESPOND_NOW;
	}
	first = first_of(stream);
	if (first && !first->id) {
		int error = response_spool_fetch(stream);

		stream->awaited = !error;
		if (!error)
			return RESPOND_LATER;
		cut(stream, strerror(-error));
		transaction->status = 0;
		return RESPOND_NOW;
	}
	if (first) {
		hand_over(stream);
		adjust_flow(stream);
		resume_if_full(stream);
		return RESPOND_NOW;
	}
	adjust_flow(stream);
	if (!stream->ended) {
		stream->awaited = true;
		response_stream_limit(stream);
		return RESPOND_LATER;
	}
	/* An empty piece ends a response of unknown length.  A known length ends before it. */
	return RESPOND_NOW;
}

/* Passes the next buffer, or the end, to a connection that waits for it. */
static void satisfy(struct response_stream *stream)
{
	struct transaction *transaction = stream->call->transaction;

	if (!stream->awaited || !(first_of(stream) || stream->ended || stream->failed))
		return;
	stream->awaited = false;
	timer_stop(&stream->call->timer);
	if (response_stream_next(transaction) == RESPOND_NOW)
		transaction->done(transaction);
}

static bool fail_as(struct response_stream *stream, int status, const char *fault)
{
	struct transaction *transaction = stream->call->transaction;

	if (stream->failed)
		return false;
	cut(stream, fault);
	if (stream->announced) {
		satisfy(stream);
		return false;
	}
	/* Undo what was prepared for the response. */
	transaction->next = NULL;
	transaction->tunnel = NULL;
	transaction->head_length = 0;
	transaction->length = 0;
	transaction->bodiless = false;
	transaction->body = (struct NC_range){0};
	stream->call->state = CALL_IN_FLIGHT;
	backend_call_fail(stream->call, status, NULL);
	return false;
}

bool response_stream_fail(struct response_stream *stream, const char *fault)
{
	return fail_as(stream, 502, fault);
}

void response_stream_has_more_room(struct response_stream *stream)
{
	adjust_flow(stream);
	resume_if_full(stream);
}

/* The connection waits for this buffer: it goes to the head of the queue. */
void response_stream_fetched(struct response_stream *stream, struct read_buffer *buffer)
{
	if (!read_buffer_add(buffer, (struct slice){buffer->data, buffer->length})) {
		read_buffer_free(buffer);
		(void)response_stream_fail(stream, "out of memory for its response");
		return;
	}
	list_prepend(&stream->queue, &buffer->node);
	stream->count++;
	stream->bytes += read_buffer_memory(buffer);
	satisfy(stream);
}

/* --- from the protocol --------------------------------------------------------------------- */

void response_stream_begin(struct response_stream *stream, struct backend_call *call,
			   const struct response_stream_source *source)
{
	*stream = (struct response_stream){.call = call, .source = source};
	/* A body on disk does not block the response. */
	stream->held = call->transaction->upload_more && !call->upload;
	call->stream = stream;
}

bool response_stream_feed(struct response_stream *stream, struct read_buffer *buffer,
			  struct slice run)
{
	enum stream_head_state head = STREAM_HEAD_WHOLE;

	if (stream->failed)
		return false;
	if (stream->held)
		return read_buffer_add(buffer, run) ||
		       response_stream_fail(stream, "out of memory for its response");
	if (!stream->has_head)
		head = response_stream_gather_head(stream, &run);
	/* The call is over, and its memory may be in use again. */
	if (head != STREAM_HEAD_WHOLE)
		return head == STREAM_HEAD_PART;
	if (run.length > stream->left && stream->left != TRANSACTION_UNKNOWN)
		run.length = (size_t)stream->left; /* ignore what exceeds the announced length */
	if (run.length) {
		if (!read_buffer_add(buffer, run))
			return response_stream_fail(stream, "out of memory for its response");
		cache_store_bytes(stream->call->transaction, run);
		if (stream->left != TRANSACTION_UNKNOWN)
			stream->left -= run.length;
		if (!stream->left)
			cache_store_end(stream->call->transaction);
		counter_add(&stream->call->transaction->thread->counters.worker_messages,
			    run.length);
	}
	return true;
}

/*
 * The buffer was fed.  Returns false without memory: then the stream has failed, and the buffer is
 * freed.
 */
static bool pack(struct response_stream *stream, struct read_buffer *buffer)
{
	if (read_buffer_pack(buffer))
		return true;
	read_buffer_free(buffer);
	return response_stream_fail(stream, "out of memory for its response");
}

/* Adds the buffer to the queue, unless it is empty. */
static void enqueue(struct response_stream *stream, struct read_buffer *buffer)
{
	if (stream->failed || !buffer || buffer->range_count == 0) {
		read_buffer_free(buffer);
		return;
	}
	if (!has_memory(stream) && response_spool_has_room(stream) &&
	    response_spool_put(stream, buffer))
		return;
	list_append(&stream->queue, &buffer->node);
	stream->count++;
	stream->bytes += read_buffer_memory(buffer);
}

/* Announces the response, or more of it, to the connection.  The call may be freed. */
static void announce(struct response_stream *stream)
{
	struct transaction *transaction = stream->call->transaction;

	if (stream->failed || !stream->has_head)
		return;
	if (stream->announced) {
		adjust_flow(stream);
		satisfy(stream);
		return;
	}
	/* The first piece is sent with the head. */
	stream->announced = true;
	if (first_of(stream))
		hand_over(stream);
	adjust_flow(stream);
	transaction->done(transaction);
}

/* --- a stream that is held -------------------------------------------------------------------- */

/* Parses again what a held stream has read.  Returns false as response_stream_feed() does. */
static bool parse_again(struct response_stream *stream, struct read_buffer *buffer)
{
	unsigned count = buffer->range_count;

	/* Each range becomes at most one range, so none is overwritten before it is read. */
	buffer->range_count = 0;
	for (unsigned i = 0; i < count; i++) {
		struct NC_range range = buffer->ranges[i];

		if (!response_stream_feed(
			    stream, buffer,
			    (struct slice){buffer->data + range.offset, range.length}))
			return false;
	}
	return true;
}

/* Returns false if no more data is needed; the call may be freed. */
static bool unhold(struct response_stream *stream)
{
	struct read_buffer *buffer;
	struct list held;
	bool good = true;

	stream->held = false;
	timer_stop(&stream->later);
	list_move(&held, &stream->queue);
	stream->count = 0;
	stream->bytes = 0;
	if (stream->http_status)
		good = response_stream_stored_head(stream);
	while ((buffer = list_take(&held, struct read_buffer, node))) {
		good = good && parse_again(stream, buffer);
		if (good)
			enqueue(stream, buffer);
		else
			read_buffer_free(buffer);
	}
	return good;
}

static void response_release(struct timer *timer)
{
	struct response_stream *stream = container_of(timer, struct response_stream, later);

	if (!unhold(stream))
		return;
	/* This only starts to send: the call still exists. */
	announce(stream);
	if (has_room(stream))
		stream->source->resume(stream->call);
}

void response_stream_release(struct response_stream *stream)
{
	if (!stream->held || stream->releasing)
		return;
	/* Later, because the end of the response could free what the caller is using. */
	stream->releasing = true;
	loop_timer_start(stream->call->transaction->thread->loop, &stream->later, 0,
			 response_release);
}

/* The held stream is full: the rest of the request body has to come before the program reads it. */
static void hurry(struct response_stream *stream)
{
	if (!stream->releasing && !backend_call_rest_of_body(stream->call))
		(void)fail_as(
			stream, 413,
			"must read its request body before it writes more of its response: the "
			"body is too large to be kept until then");
}

void response_stream_add(struct response_stream *stream, struct read_buffer *buffer)
{
	if (!buffer->range_count)
		response_stream_ignored(stream, buffer->length);
	else if (!pack(stream, buffer))
		return;
	enqueue(stream, buffer);
	if (!stream->held) {
		announce(stream);
		return;
	}
	adjust_flow(stream);
	if (!has_room(stream))
		hurry(stream);
}

/* Whether announced bytes are missing; a response to HEAD has no body (RFC 3875, section 4.3.3). */
static bool is_short(const struct response_stream *stream)
{
	return stream->left && stream->left != TRANSACTION_UNKNOWN &&
	       !stream->call->transaction->head_only;
}

/* Sets the length of the response if all of it is queued and nothing was announced. */
static void measure(struct response_stream *stream)
{
	uint64_t bytes = 0;

	/* HEAD has no body to be measured. */
	if (stream->announced || stream->left != TRANSACTION_UNKNOWN ||
	    stream->call->transaction->head_only)
		return;
	list_each (const struct read_buffer, buffer, &stream->queue, node)
		bytes += read_buffer_bytes(buffer);
	call_measured(stream->call, bytes);
}

void response_stream_last(struct response_stream *stream, struct read_buffer *buffer)
{
	if (buffer && !pack(stream, buffer))
		return;
	enqueue(stream, buffer);
	response_stream_end(stream, NULL);
}

void response_stream_end(struct response_stream *stream, const char *fault)
{
	if (stream->failed || (!fault && stream->held && !unhold(stream)))
		return;
	if (!fault && !stream->has_head)
		fault = stream->head_length ? "ended in the middle of its response head"
					    : "ended without a response";
	if (!fault && is_short(stream))
		fault = "ended before it had sent the announced length";
	if (fault) {
		(void)response_stream_fail(stream, fault);
		return;
	}
	measure(stream);
	stream->ended = true;
	cache_store_end(stream->call->transaction);
	announce(stream);
}

void response_stream_clear(struct response_stream *stream)
{
	response_stream_keep_back(stream);
	drop_queue(stream);
	drop_sending(stream);
	free(stream->head);
	stream->head = NULL;
	if (stream->unit)
		(void)NC_release(&stream->call->transaction->hold);
	stream->unit = false;
}
