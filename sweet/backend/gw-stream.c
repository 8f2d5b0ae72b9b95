/* SPDX-License-Identifier: MIT */
/*
 * gw-stream.c - see gw-stream.h.
 *
 *   until `began`    bytes are the head's, which may be spread over windows
 *   until `told`     the connection has not heard of the answer: it may yet fail
 *   then             windows with ranges wait in a line; the connection takes
 *                    one after the other by gw_stream_next(), and may wait: `wanted`
 *   `ended`          no more comes
 *   `held`           before all that: what is read waits in the line as it came
 *   `failed`         what was told of breaks off, what was not is a 502
 *
 * Past the room in memory windows go to the disk, and stand in the line as
 * stored ones: the program need not wait for its client.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "backend/gw-keep.h"
#include "backend/gw-pace.h"
#include "backend/gw-spool.h"
#include "backend/gw-stream-inside.h"

/* Are read ahead, whatever the bounds; and of a stream that is held. */
#define WINDOWS_LEAST 2u
#define WINDOWS_HELD 16u

/* --- room ---------------------------------------------------------------------------------- */

static struct body_budget *shared(const struct gw_stream *stream)
{
	return &stream->call->pool->gateway->site->ahead;
}

static uint64_t taken_by(const struct gw_window *window)
{
	return window->length > GW_WINDOW_LEAST ? window->length : GW_WINDOW_LEAST;
}

static bool has_memory(const struct gw_stream *stream)
{
	return stream->count < (stream->held ? WINDOWS_HELD : WINDOWS_LEAST) ||
	       gw_pace_has_room(stream->call, shared(stream));
}

static bool has_room(const struct gw_stream *stream)
{
	return has_memory(stream) || gw_spool_has_room(stream);
}

bool gw_stream_takes_more(struct gw_stream *stream)
{
	stream->full = !has_room(stream);
	return !stream->full;
}

/* Windows have left memory: the source that waits for that reads on. */
static void resume_if_full(struct gw_stream *stream)
{
	if (!stream->full || stream->ended || stream->failed || !has_room(stream))
		return;
	stream->full = false;
	stream->source->resume(stream->call);
}

/* Windows have come, left or ended: the program goes on, or waits for the client. */
static void pace(struct gw_stream *stream)
{
	gw_pace_ahead(stream->call, shared(stream), stream->bytes);
	/* The timer is the body's as long as that is on its way. */
	if (stream->held)
		return;
	if (stream->ended || stream->failed || has_room(stream))
		gw_pace_go_on(stream->call);
	else if (stream->told)
		gw_pace_wait(stream->call);
}

/* --- to the connection --------------------------------------------------------------------- */

static void drop_line(struct gw_stream *stream)
{
	while (stream->first) {
		struct gw_window *window = stream->first;

		stream->first = window->next;
		if (window->id)
			stream->bytes -= taken_by(window);
		gw_window_free(window);
	}
	stream->last = &stream->first;
	stream->count = 0;
	gw_spool_end(stream);
}

static void drop_sending(struct gw_stream *stream)
{
	if (stream->sending)
		stream->bytes -= taken_by(stream->sending);
	gw_window_free(stream->sending);
	stream->sending = NULL;
}

/* As many ranges as a message has become the transaction's piece. */
static void hand_ranges(struct gw_stream *stream)
{
	struct transaction *transaction = stream->call->transaction;
	struct gw_window *window = stream->sending;

	transaction->ranges = window->ranges + window->handed;
	transaction->range_count = MIN(window->range_count - window->handed, NC_RANGES_MAX);
	window->handed += transaction->range_count;
}

static void hand_over(struct gw_stream *stream)
{
	struct gw_window *window = stream->first;

	stream->first = window->next;
	if (!stream->first)
		stream->last = &stream->first;
	stream->count--;
	stream->sending = window;
	hand_ranges(stream);
}

/* Nothing of what waits is sent any more. */
static void cut(struct gw_stream *stream, const char *fault)
{
	char name[256];

	stream->failed = true;
	stream->held = false;
	gw_stream_keep_back(stream);
	log_warning("%s: %s", stream->source->name(stream->call, name, sizeof(name)), fault);
	drop_line(stream);
	pace(stream);
	gw_keep_drop(stream->call->transaction, RESPCACHE_LOST);
}

enum respond gw_stream_next(struct transaction *transaction)
{
	struct gw_call *call = gw_call_of(transaction);
	struct gw_stream *stream = call->stream;

	if (!stream->failed && stream->sending &&
	    stream->sending->handed < stream->sending->range_count) {
		hand_ranges(stream);
		return RESPOND_NOW;
	}
	drop_sending(stream);
	transaction->ranges = NULL;
	transaction->range_count = 0;
	if (stream->failed) {
		transaction->status = 0;
		return RESPOND_NOW;
	}
	if (stream->first && !stream->first->id) {
		int error = gw_spool_fetch(stream);

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
static void satisfy(struct gw_stream *stream)
{
	struct transaction *transaction = stream->call->transaction;

	if (!stream->wanted || !(stream->first || stream->ended || stream->failed))
		return;
	stream->wanted = false;
	if (gw_stream_next(transaction) == RESPOND_NOW)
		transaction->done(transaction);
}

static bool fail_as(struct gw_stream *stream, int status, const char *fault)
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
	stream->call->state = GW_UNDER_WAY;
	gw_fail(stream->call, status, NULL);
	return false;
}

bool gw_stream_fail(struct gw_stream *stream, const char *fault)
{
	return fail_as(stream, 502, fault);
}

void gw_stream_has_more_room(struct gw_stream *stream)
{
	pace(stream);
	resume_if_full(stream);
}

/* It is read for who waits for it, as the first of all. */
void gw_stream_fetched(struct gw_stream *stream, struct gw_window *window)
{
	if (!gw_window_add(window, (struct slice){window->data, window->length})) {
		gw_window_free(window);
		(void)gw_stream_fail(stream, "no memory for its answer");
		return;
	}
	window->next = stream->first;
	if (!stream->first)
		stream->last = &window->next;
	stream->first = window;
	stream->count++;
	stream->bytes += taken_by(window);
	satisfy(stream);
}

/* --- from the protocol --------------------------------------------------------------------- */

void gw_stream_begin(struct gw_stream *stream, struct gw_call *call,
		     const struct gw_stream_source *source)
{
	*stream = (struct gw_stream){.call = call, .source = source};
	stream->last = &stream->first;
	/* One that waited on the disk is in nobody's way. */
	stream->held = call->transaction->upload_more && !call->upload;
	call->stream = stream;
}

bool gw_stream_feed(struct gw_stream *stream, struct gw_window *window, struct slice run)
{
	enum gw_gathered head = GW_HEAD_WHOLE;

	if (stream->failed)
		return false;
	if (stream->held)
		return gw_window_add(window, run) ||
		       gw_stream_fail(stream, "no memory for its answer");
	if (!stream->began)
		head = gw_stream_gather_head(stream, &run);
	/* Another call may have its memory. */
	if (head != GW_HEAD_WHOLE)
		return head == GW_HEAD_PART;
	if (run.length > stream->left && stream->left != TRANSACTION_UNKNOWN)
		run.length = (size_t)stream->left; /* more than was announced is nobody's */
	if (run.length) {
		if (!gw_window_add(window, run))
			return gw_stream_fail(stream, "no memory for its answer");
		gw_keep_bytes(stream->call->transaction, run);
		if (stream->left != TRANSACTION_UNKNOWN)
			stream->left -= run.length;
		if (!stream->left)
			gw_keep_end(stream->call->transaction);
		server_count(&stream->call->transaction->server->counters.worker_messages,
			     run.length);
	}
	return true;
}

/* To the end of the line, if there is anything in it. */
static void line_up(struct gw_stream *stream, struct gw_window *window)
{
	if (stream->failed || !window || window->range_count == 0) {
		gw_window_free(window);
		return;
	}
	if (!has_memory(stream) && gw_spool_has_room(stream) && gw_spool_put(stream, window))
		return;
	window->next = NULL;
	*stream->last = window;
	stream->last = &window->next;
	stream->count++;
	stream->bytes += taken_by(window);
}

/* The connection hears of the answer, or of more of it.  The call may be gone behind it. */
static void tell(struct gw_stream *stream)
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

/* What it has read is fed to it again.  False: as gw_stream_feed(). */
static bool look_again(struct gw_stream *stream, struct gw_window *window)
{
	unsigned count = window->range_count;

	/* Each range makes one at most, so none is written over before its turn. */
	window->range_count = 0;
	for (unsigned i = 0; i < count; i++) {
		struct NC_range range = window->ranges[i];

		if (!gw_stream_feed(stream, window,
				    (struct slice){window->data + range.offset, range.length}))
			return false;
	}
	return true;
}

/* False: nothing more is wanted, and the call may be gone. */
static bool unhold(struct gw_stream *stream)
{
	struct gw_window *window = stream->first, *next;
	bool good = true;

	stream->held = false;
	timer_stop(&stream->later);
	stream->first = NULL;
	stream->last = &stream->first;
	stream->count = 0;
	stream->bytes = 0;
	for (; window; window = next) {
		next = window->next;
		good = good && look_again(stream, window);
		if (good)
			line_up(stream, window);
		else
			gw_window_free(window);
	}
	return good;
}

static void read_again(struct timer *timer)
{
	struct gw_stream *stream =
		(struct gw_stream *)((char *)timer - offsetof(struct gw_stream, again));

	stream->source->resume(stream->call);
}

void gw_stream_read_later(struct gw_stream *stream)
{
	loop_timer_start(stream->call->transaction->server->loop, &stream->again, 0, read_again);
}

static void release(struct timer *timer)
{
	struct gw_stream *stream =
		(struct gw_stream *)((char *)timer - offsetof(struct gw_stream, later));

	if (!unhold(stream))
		return;
	/* Only starts to send: the call is still there. */
	tell(stream);
	if (has_room(stream))
		stream->source->resume(stream->call);
}

void gw_stream_release(struct gw_stream *stream)
{
	if (!stream->held || stream->releasing)
		return;
	/* The caller may be in the midst of something that the answer's end would end. */
	stream->releasing = true;
	loop_timer_start(stream->call->transaction->server->loop, &stream->later, 0, release);
}

/* It can hold no more: the body that it waits for must come without its program. */
static void hurry(struct gw_stream *stream)
{
	if (!stream->releasing && !gw_rest_of_body(stream->call))
		(void)fail_as(stream, 413,
			      "goes on with its answer, but its request's body is too large to be "
			      "kept until it has read that");
}

void gw_stream_add(struct gw_stream *stream, struct gw_window *window)
{
	line_up(stream, window);
	if (!stream->held) {
		tell(stream);
		return;
	}
	pace(stream);
	if (!has_room(stream))
		hurry(stream);
}

/* Whether bytes are missing; of an answer to HEAD there are none (RFC 3875, section 4.3.3). */
static bool is_short(const struct gw_stream *stream)
{
	return stream->left && stream->left != TRANSACTION_UNKNOWN &&
	       !stream->call->transaction->head_only;
}

/* All that there is waits in the line, and nobody was told how much it is. */
static void measure(struct gw_stream *stream)
{
	uint64_t bytes = 0;

	/* HEAD has no body to be measured. */
	if (stream->told || stream->left != TRANSACTION_UNKNOWN ||
	    stream->call->transaction->head_only)
		return;
	for (const struct gw_window *window = stream->first; window; window = window->next)
		bytes += gw_window_bytes(window);
	gw_measured(stream->call, bytes);
}

void gw_stream_last(struct gw_stream *stream, struct gw_window *window)
{
	line_up(stream, window);
	gw_stream_end(stream, NULL);
}

void gw_stream_end(struct gw_stream *stream, const char *fault)
{
	if (stream->failed || (!fault && stream->held && !unhold(stream)))
		return;
	if (!fault && !stream->began)
		fault = stream->head_length ? "ended in the middle of its head"
					    : "ended without an answer";
	if (!fault && is_short(stream))
		fault = "ended before the length that it had announced";
	if (fault) {
		(void)gw_stream_fail(stream, fault);
		return;
	}
	measure(stream);
	stream->ended = true;
	gw_keep_end(stream->call->transaction);
	tell(stream);
}

void gw_stream_clear(struct gw_stream *stream)
{
	gw_stream_keep_back(stream);
	drop_line(stream);
	drop_sending(stream);
	free(stream->head);
	stream->head = NULL;
	if (stream->unit)
		(void)NC_release(stream->unit);
	stream->unit = 0;
}
