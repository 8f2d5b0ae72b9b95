/* SPDX-License-Identifier: MIT */
/*
 * response-stream-send.c - passes what a response stream has queued to the connection, which takes
 * one buffer after the other; lets the program wait if the connection does not, or cuts it off.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "backend/backend-call.h"
#include "backend/backpressure.h"
#include "backend/cache-store.h"
#include "backend/pool.h"
#include "backend/read-buffer.h"
#include "backend/response-spool.h"
#include "backend/response-stream-internal.h"
#include "backend/response-stream.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/timer.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/piece.h"
#include "log/log.h"
#include "respcache/respcache.h"

/* Buffers that may be read even above the memory limits; the same for a held stream. */
#define BUFFERS_LEAST 2u
#define BUFFERS_HELD 16u

/* --- room ---------------------------------------------------------------------------------- */

static struct budget *shared(const struct response_stream *stream)
{
	return &stream->call->pool->server->ahead;
}

bool response_stream_has_memory(const struct response_stream *stream)
{
	return stream->count < (stream->held ? BUFFERS_HELD : BUFFERS_LEAST) ||
	       backpressure_has_room(stream->call, shared(stream));
}

bool response_stream_has_room(const struct response_stream *stream)
{
	return response_stream_has_memory(stream) || response_spool_has_room(stream);
}

bool response_stream_takes_more(struct response_stream *stream)
{
	stream->full = !response_stream_has_room(stream);
	return !stream->full && !stream->paused;
}

/* Buffers have left memory: a source that waited for this reads on. */
static void resume_if_full(struct response_stream *stream)
{
	if (!stream->full || stream->ended || stream->failed || !response_stream_has_room(stream))
		return;
	stream->full = false;
	stream->source->resume(stream->call);
}

void response_stream_adjust(struct response_stream *stream)
{
	backpressure_ahead(stream->call, shared(stream), stream->bytes);
	/* While the request body is being received, it uses the timer. */
	if (stream->held)
		return;
	if (stream->ended || stream->failed || response_stream_has_room(stream))
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

static void stream_release_buffer(struct piece *piece)
{
	drop_sending(piece->owner);
}

/* Makes as many ranges as one message takes the transaction's piece. */
static void hand_ranges(struct response_stream *stream)
{
	struct transaction *transaction = stream->call->transaction;
	struct read_buffer *buffer = stream->sending;

	transaction->piece = piece_ranges(
		buffer->ranges + buffer->delivered,
		MIN(buffer->range_count - buffer->delivered, NC_RANGES_MAX), &buffer->hold, 1);
	buffer->delivered += transaction->piece.range_count;
	if (buffer->delivered < buffer->range_count)
		return;
	transaction->piece.release = stream_release_buffer;
	transaction->piece.owner = stream;
}

void response_stream_hand_over(struct response_stream *stream)
{
	stream->sending = list_take(&stream->queue, struct read_buffer, node);
	stream->count--;
	hand_ranges(stream);
}

/* Drops everything that is queued: the response fails. */
static void cut(struct response_stream *stream, const char *fault)
{
	char name[RESPONSE_STREAM_NAME];

	stream->failed = true;
	stream->held = false;
	response_stream_keep_back(stream);
	log_warning("%s: %s", stream->source->name(stream->call, name, sizeof(name)), fault);
	drop_queue(stream);
	response_stream_adjust(stream);
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

	if (!stream->failed && stream->sending) {
		hand_ranges(stream);
		return RESPOND_NOW;
	}
	if (stream->failed) {
		transaction->response.status = 0;
		return RESPOND_NOW;
	}
	first = response_stream_first(stream);
	if (first && !first->id) {
		int error = response_spool_fetch(stream);

		stream->awaited = !error;
		if (!error)
			return RESPOND_LATER;
		cut(stream, strerror(-error));
		transaction->response.status = 0;
		return RESPOND_NOW;
	}
	if (first) {
		response_stream_hand_over(stream);
		response_stream_adjust(stream);
		resume_if_full(stream);
		return RESPOND_NOW;
	}
	response_stream_adjust(stream);
	if (!stream->ended) {
		stream->awaited = true;
		response_stream_limit(stream);
		return RESPOND_LATER;
	}
	/* An empty piece ends a response of unknown length.  A known length ends before it. */
	return RESPOND_NOW;
}

void response_stream_satisfy(struct response_stream *stream)
{
	struct transaction *transaction = stream->call->transaction;

	if (!stream->awaited || !(response_stream_first(stream) || stream->ended || stream->failed))
		return;
	stream->awaited = false;
	timer_stop(&stream->call->timer);
	if (response_stream_next(transaction) == RESPOND_NOW)
		transaction_done(transaction);
}

bool response_stream_fail_as(struct response_stream *stream, int status, const char *fault)
{
	struct transaction *transaction = stream->call->transaction;

	if (stream->failed)
		return false;
	cut(stream, fault);
	if (stream->announced) {
		response_stream_satisfy(stream);
		return false;
	}
	/* Undo what was prepared for the response. */
	transaction->response.head_length = 0;
	transaction->response.length = 0;
	transaction->response.bodiless = false;
	piece_release(&transaction->piece);
	stream->call->state = CALL_IN_FLIGHT;
	backend_call_fail(stream->call, status, NULL);
	return false;
}

bool response_stream_fail(struct response_stream *stream, const char *fault)
{
	return response_stream_fail_as(stream, 502, fault);
}

void response_stream_has_more_room(struct response_stream *stream)
{
	response_stream_adjust(stream);
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
	response_stream_satisfy(stream);
}

/* --- its end ----------------------------------------------------------------------------- */

void response_stream_clear(struct response_stream *stream)
{
	response_stream_keep_back(stream);
	drop_queue(stream);
	drop_sending(stream);
	free(stream->head);
	stream->head = NULL;
}
