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
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend-call.h"
#include "backend/cache-store.h"
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
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "event/loop.h"

/* --- from the protocol --------------------------------------------------------------------- */

void response_stream_begin(struct response_stream *stream, struct backend_call *call,
			   const struct response_stream_source *source)
{
	*stream = (struct response_stream){.call = call, .source = source};
	/* A body on disk does not block the response. */
	stream->held = call->transaction->upload.more && !call->upload;
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
		counter_add(&stream->call->transaction->thread->counters->worker_messages,
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
	if (!response_stream_has_memory(stream) && response_spool_has_room(stream) &&
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
		response_stream_adjust(stream);
		response_stream_satisfy(stream);
		return;
	}
	/* The first piece is sent with the head. */
	stream->announced = true;
	if (response_stream_first(stream))
		response_stream_hand_over(stream);
	response_stream_adjust(stream);
	transaction_done(transaction);
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
	if (response_stream_has_room(stream))
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
		(void)response_stream_fail_as(
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
	response_stream_adjust(stream);
	if (!response_stream_has_room(stream))
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
