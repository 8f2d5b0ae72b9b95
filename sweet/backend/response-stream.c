/* SPDX-License-Identifier: MIT */
/*
 * response-stream.c - see response-stream.h.
 *
 *   until `began`    bytes are the head's, which may be spread over buffers
 *   until `told`     the connection has not heard of the answer: it may yet fail
 *   then             buffers with ranges wait in a line; the connection takes
 *                    one after the other by response_stream_next(), and may wait: `wanted`
 *   `ended`          no more comes
 *   `held`           before all that: what is read waits in the line as it came
 *   `failed`         what was told of breaks off, what was not is a 502
 *
 * Past the room in memory buffers go to the disk, and stand in the line as
 * stored ones: the program need not wait for its client.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "backend/cache-store.h"
#include "backend/backpressure.h"
#include "backend/response-spool.h"
#include "backend/response-stream-internal.h"

/* Are read ahead, whatever the bounds; and of a stream that is held. */
#define BUFFERS_LEAST 2u
#define BUFFERS_HELD 16u

/* --- room ---------------------------------------------------------------------------------- */

static struct body_budget *shared(const struct response_stream *stream)
{
	return &stream->call->pool->gateway->server->ahead;
}

static uint64_t taken_by(const struct read_buffer *buffer)
{
	return buffer->length > READ_BUFFER_MIN ? buffer->length : READ_BUFFER_MIN;
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
	return !stream->full;
}

/* Windows have left memory: the source that waits for that reads on. */
static void resume_if_full(struct response_stream *stream)
{
	if (!stream->full || stream->ended || stream->failed || !has_room(stream))
		return;
	stream->full = false;
	stream->source->resume(stream->call);
}

/* Windows have come, left or ended: the program goes on, or waits for the client. */
static void pace(struct response_stream *stream)
{
	backpressure_ahead(stream->call, shared(stream), stream->bytes);
	/* The timer is the body's as long as that is on its way. */
	if (stream->held)
		return;
	if (stream->ended || stream->failed || has_room(stream))
		backpressure_go_on(stream->call);
	else if (stream->told)
		backpressure_wait(stream->call);
}

/* --- to the connection --------------------------------------------------------------------- */

static void drop_line(struct response_stream *stream)
{
	while (stream->first) {
		struct read_buffer *buffer = stream->first;

		stream->first = buffer->next;
		if (buffer->id)
			stream->bytes -= taken_by(buffer);
		read_buffer_free(buffer);
	}
	stream->last = &stream->first;
	stream->count = 0;
	response_spool_end(stream);
}

static void drop_sending(struct response_stream *stream)
{
	if (stream->sending)
		stream->bytes -= taken_by(stream->sending);
	read_buffer_free(stream->sending);
	stream->sending = NULL;
}

/* As many ranges as a message has become the transaction's piece. */
static void hand_ranges(struct response_stream *stream)
{
	struct transaction *transaction = stream->call->transaction;
	struct read_buffer *buffer = stream->sending;

	transaction->ranges = buffer->ranges + buffer->handed;
	transaction->holds = &buffer->hold;
	transaction->hold_count = 1;
	transaction->range_count = MIN(buffer->range_count - buffer->handed, NC_RANGES_MAX);
	buffer->handed += transaction->range_count;
}

static void hand_over(struct response_stream *stream)
{
	struct read_buffer *buffer = stream->first;

	stream->first = buffer->next;
	if (!stream->first)
		stream->last = &stream->first;
	stream->count--;
	stream->sending = buffer;
	hand_ranges(stream);
}

/* Nothing of what waits is sent any more. */
static void cut(struct response_stream *stream, const char *fault)
{
	char name[256];

	stream->failed = true;
	stream->held = false;
	response_stream_keep_back(stream);
	log_warning("%s: %s", stream->source->name(stream->call, name, sizeof(name)), fault);
	drop_line(stream);
	pace(stream);
	cache_store_drop(stream->call->transaction, RESPCACHE_LOST);
}

enum respond response_stream_next(struct transaction *transaction)
{
	struct backend_call *call = backend_call_of(transaction);
	struct response_stream *stream = call->stream;

	if (!stream->failed && stream->sending &&
	    stream->sending->handed < stream->sending->range_count) {
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
	if (stream->first && !stream->first->id) {
		int error = response_spool_fetch(stream);

		stream->wanted = !error;
		if (!error)
			return RESPOND_LATER;
		cut(stream, strerror(-error));
		transaction->status = 0;
		return RESPOND_NOW;
	}
	if (stream->first) {
		hand_over(stream);
		pace(stream);
		resume_if_full(stream);
		return RESPOND_NOW;
	}
	pace(stream);
	if (!stream->ended) {
		stream->wanted = true;
		return RESPOND_LATER;
	}
	/* An empty piece: of an unknown length the end, and of a known one it has not come to that. */
	return RESPOND_NOW;
}

/* There is something, or the end, for who waits for it. */
static void satisfy(struct response_stream *stream)
{
	struct transaction *transaction = stream->call->transaction;

	if (!stream->wanted || !(stream->first || stream->ended || stream->failed))
		return;
	stream->wanted = false;
	if (response_stream_next(transaction) == RESPOND_NOW)
		transaction->done(transaction);
}

static bool fail_as(struct response_stream *stream, int status, const char *fault)
{
	struct transaction *transaction = stream->call->transaction;

	if (stream->failed)
		return false;
	cut(stream, fault);
	if (stream->told) {
		satisfy(stream);
		return false;
	}
	/* Of what was prepared nothing holds. */
	transaction->next = NULL;
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
	pace(stream);
	resume_if_full(stream);
}

/* It is read for who waits for it, as the first of all. */
void response_stream_fetched(struct response_stream *stream, struct read_buffer *buffer)
{
	if (!read_buffer_add(buffer, (struct slice){buffer->data, buffer->length})) {
		read_buffer_free(buffer);
		(void)response_stream_fail(stream, "no memory for its answer");
		return;
	}
	buffer->next = stream->first;
	if (!stream->first)
		stream->last = &buffer->next;
	stream->first = buffer;
	stream->count++;
	stream->bytes += taken_by(buffer);
	satisfy(stream);
}

/* --- from the protocol --------------------------------------------------------------------- */

void response_stream_begin(struct response_stream *stream, struct backend_call *call,
			   const struct response_stream_source *source)
{
	*stream = (struct response_stream){.call = call, .source = source};
	stream->last = &stream->first;
	/* One that waited on the disk is in nobody's way. */
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
		       response_stream_fail(stream, "no memory for its answer");
	if (!stream->began)
		head = response_stream_gather_head(stream, &run);
	/* Another call may have its memory. */
	if (head != STREAM_HEAD_WHOLE)
		return head == STREAM_HEAD_PART;
	if (run.length > stream->left && stream->left != TRANSACTION_UNKNOWN)
		run.length = (size_t)stream->left; /* more than was announced is nobody's */
	if (run.length) {
		if (!read_buffer_add(buffer, run))
			return response_stream_fail(stream, "no memory for its answer");
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

/* To the end of the line, if there is anything in it. */
static void line_up(struct response_stream *stream, struct read_buffer *buffer)
{
	if (stream->failed || !buffer || buffer->range_count == 0) {
		read_buffer_free(buffer);
		return;
	}
	if (!has_memory(stream) && response_spool_has_room(stream) &&
	    response_spool_put(stream, buffer))
		return;
	buffer->next = NULL;
	*stream->last = buffer;
	stream->last = &buffer->next;
	stream->count++;
	stream->bytes += taken_by(buffer);
}

/* The connection hears of the answer, or of more of it.  The call may be gone behind it. */
static void tell(struct response_stream *stream)
{
	struct transaction *transaction = stream->call->transaction;

	if (stream->failed || !stream->began)
		return;
	if (stream->told) {
		pace(stream);
		satisfy(stream);
		return;
	}
	/* The first piece goes with the head. */
	stream->told = true;
	if (stream->first)
		hand_over(stream);
	pace(stream);
	transaction->done(transaction);
}

/* --- a stream that is held -------------------------------------------------------------------- */

/* What it has read is fed to it again.  False: as response_stream_feed(). */
static bool look_again(struct response_stream *stream, struct read_buffer *buffer)
{
	unsigned count = buffer->range_count;

	/* Each range makes one at most, so none is written over before its turn. */
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

/* False: nothing more is wanted, and the call may be gone. */
static bool unhold(struct response_stream *stream)
{
	struct read_buffer *buffer = stream->first, *next;
	bool good = true;

	stream->held = false;
	timer_stop(&stream->later);
	stream->first = NULL;
	stream->last = &stream->first;
	stream->count = 0;
	stream->bytes = 0;
	for (; buffer; buffer = next) {
		next = buffer->next;
		good = good && look_again(stream, buffer);
		if (good)
			line_up(stream, buffer);
		else
			read_buffer_free(buffer);
	}
	return good;
}

static void read_again(struct timer *timer)
{
	struct response_stream *stream =
		(struct response_stream *)((char *)timer - offsetof(struct response_stream, again));

	stream->source->resume(stream->call);
}

void response_stream_read_later(struct response_stream *stream)
{
	loop_timer_start(stream->call->transaction->thread->loop, &stream->again, 0, read_again);
}

static void release(struct timer *timer)
{
	struct response_stream *stream =
		(struct response_stream *)((char *)timer - offsetof(struct response_stream, later));

	if (!unhold(stream))
		return;
	/* Only starts to send: the call is still there. */
	tell(stream);
	if (has_room(stream))
		stream->source->resume(stream->call);
}

void response_stream_release(struct response_stream *stream)
{
	if (!stream->held || stream->releasing)
		return;
	/* The caller may be in the midst of something that the answer's end would end. */
	stream->releasing = true;
	loop_timer_start(stream->call->transaction->thread->loop, &stream->later, 0, release);
}

/* It can hold no more: the body that it waits for must come without its program. */
static void hurry(struct response_stream *stream)
{
	if (!stream->releasing && !backend_call_rest_of_body(stream->call))
		(void)fail_as(stream, 413,
			      "goes on with its answer, but its request's body is too large to be "
			      "kept until it has read that");
}

void response_stream_add(struct response_stream *stream, struct read_buffer *buffer)
{
	line_up(stream, buffer);
	if (!stream->held) {
		tell(stream);
		return;
	}
	pace(stream);
	if (!has_room(stream))
		hurry(stream);
}

/* Whether bytes are missing; of an answer to HEAD there are none (RFC 3875, section 4.3.3). */
static bool is_short(const struct response_stream *stream)
{
	return stream->left && stream->left != TRANSACTION_UNKNOWN &&
	       !stream->call->transaction->head_only;
}

/* All that there is waits in the line, and nobody was told how much it is. */
static void measure(struct response_stream *stream)
{
	uint64_t bytes = 0;

	/* HEAD has no body to be measured. */
	if (stream->told || stream->left != TRANSACTION_UNKNOWN ||
	    stream->call->transaction->head_only)
		return;
	for (const struct read_buffer *buffer = stream->first; buffer; buffer = buffer->next)
		bytes += read_buffer_bytes(buffer);
	call_measured(stream->call, bytes);
}

void response_stream_last(struct response_stream *stream, struct read_buffer *buffer)
{
	line_up(stream, buffer);
	response_stream_end(stream, NULL);
}

void response_stream_end(struct response_stream *stream, const char *fault)
{
	if (stream->failed || (!fault && stream->held && !unhold(stream)))
		return;
	if (!fault && !stream->began)
		fault = stream->head_length ? "ended in the middle of its head"
					    : "ended without an answer";
	if (!fault && is_short(stream))
		fault = "ended before the length that it had announced";
	if (fault) {
		(void)response_stream_fail(stream, fault);
		return;
	}
	measure(stream);
	stream->ended = true;
	cache_store_end(stream->call->transaction);
	tell(stream);
}

void response_stream_clear(struct response_stream *stream)
{
	response_stream_keep_back(stream);
	drop_line(stream);
	drop_sending(stream);
	free(stream->head);
	stream->head = NULL;
	if (stream->unit)
		(void)NC_release(&stream->call->transaction->hold);
	stream->unit = false;
}
