/* SPDX-License-Identifier: MIT */
/*
 * session-receive.c - what a session receives: frames for its streams; those that its client must
 * not send.
 */

#include <glib.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/list.h"
#include "base/slice.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "conn/connection-base.h"
#include "conn/connection-mux.h"
#include "core/client-calls.h"
#include "core/server.h"
#include "event/loop.h"
#include "h2/h2-thread.h"
#include "h2/session-internal.h"
#include "h2/stream-head.h"
#include "http/body.h"

/*
 * What a callback returns for a stream that was reset: the library decodes the rest of the head, for
 * heads that follow, but neither checks nor reports it.
 */
#define ONLY_DECODE NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE

/* --- for streams ------------------------------------------------------------------- */

/* Passes bytes to the stream; returns it, or NULL if it has been closed. */
static struct stream *pass(struct session *session, struct stream *stream, const char *data,
			   size_t length)
{
	session->current = stream;
	stream->connection.mux->received(&stream->connection, data, length);
	stream = session->current;
	session->current = NULL;
	return stream;
}

static void start_request(struct session *session, struct stream *stream, bool body)
{
	struct slice head = stream_head_end(&session->head, body);

	if (session->head.error == -431)
		session_flood_long_head(session);
	session->opening = NULL;
	session->current = stream;
	stream->head = head.length;
	session->heads += head.length;
	connection_start_stream(&stream->connection, head.at, head.length, session->head.error,
				session->head.wrong);
	session->current = NULL;
	stream_head_shrink(&session->head);
}

/* No more of the request follows. */
static void end_request(struct session *session, struct stream *stream)
{
	struct connection *connection = &stream->connection;

	body_close(&connection->body, connection->input_length);
	if (connection->state == RECEIVING)
		(void)pass(session, stream, "", 0);
}

/* Resets a stream whose head, or trailers, have not come as a whole; for a callback to return. */
static int refuse(struct session *session, int32_t id, uint32_t error)
{
	return nghttp2_submit_rst_stream(session->http2, NGHTTP2_FLAG_NONE, id, error)
		       ? NGHTTP2_ERR_CALLBACK_FAILURE
		       : ONLY_DECODE;
}

static bool is_full(const struct session *session)
{
	const struct thread *thread = session->connection->thread;
	unsigned abandoned = session->calls->abandoned;

	/*
	 * The others cannot keep a client from its only request: that takes no more than one of
	 * HTTP/1.1, and max-connections bounds it.
	 */
	if (thread->server->streams_most && thread->h2->streams >= thread->server->streams_most &&
	    session->stream_count)
		return true;
	/* To the library, streams that were reset exist no more. */
	return session->heads >= SESSION_HEADS_MAX ||
	       (abandoned && session->stream_count + abandoned >=
				     connection_limits(session->connection)->max_streams);
}

static int on_begin_headers(nghttp2_session *http2, const nghttp2_frame *frame, void *context)
{
	struct session *session = context;
	struct stream *stream;

	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
		stream_head_reset(&session->head,
				  connection_limits(session->connection)->max_header);
		session->head.error = -431;
		return 0;
	}
	/* The client may try again later. */
	if (is_full(session))
		return refuse(session, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
	stream = stream_open(session, frame->hd.stream_id);
	if (!stream)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	session->opening = session->found = stream;
	stream_head_reset(&session->head, connection_limits(session->connection)->max_header);
	return nghttp2_session_set_stream_user_data(http2, frame->hd.stream_id, stream);
}

static int on_header(nghttp2_session *http2, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
		     void *context)
{
	struct session *session = context;
	bool request = frame->headers.cat == NGHTTP2_HCAT_REQUEST;

	(void)http2;
	(void)flags;
	/* It was refused: as long as its response waits, a reset would cancel that. */
	if (request && !session->opening)
		return frame->hd.stream_id == session->refused ? 0 : ONLY_DECODE;
	stream_head_add(&session->head, (struct slice){(const char *)name, name_length},
			(struct slice){(const char *)value, value_length});
	if (!stream_head_is_endless(&session->head))
		return 0;
	if (request) {
		session->endless = true;
		return NGHTTP2_ERR_PAUSE;
	}
	/* Trailers are ignored, as in HTTP/1.1, but they have a limit, too. */
	session_flood_long_head(session);
	return refuse(session, frame->hd.stream_id, NGHTTP2_ENHANCE_YOUR_CALM);
}

static int on_frame(nghttp2_session *http2, const nghttp2_frame *frame, void *context)
{
	struct session *session = context;
	bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	struct stream *stream;

	(void)http2;
	if (frame->hd.type == NGHTTP2_RST_STREAM) {
		session_closed_by_client(session, frame->hd.stream_id);
		session_flood_reset(session);
	}
	if (frame->hd.type == NGHTTP2_SETTINGS && frame->hd.flags & NGHTTP2_FLAG_ACK)
		timer_stop(&session->unsettled);
	else if (frame->hd.type == NGHTTP2_SETTINGS)
		session->connection->thread->h2->session_changes +=
			1 + session->stream_count / SESSION_WINDOWS_PER_END;
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	stream = stream_find(session, frame->hd.stream_id);
	session_flood_accepted(session, frame, stream);
	if (frame->hd.stream_id == session->refused && frame->hd.type == NGHTTP2_HEADERS) {
		session->refused = 0;
		return 0;
	}
	if (!stream)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		start_request(session, stream, !end);
	else if (end)
		end_request(session, stream);
	return 0;
}

static int on_data(nghttp2_session *http2, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t length, void *context)
{
	struct session *session = context;
	struct stream *stream = stream_find(session, id);

	(void)http2;
	(void)flags;
	if (!stream) {
		session_closed_drop(session, id, length);
		return 0;
	}
	stream->unread += length;
	stream = pass(session, stream, (const char *)data, length);
	if (stream)
		stream_give_back(stream);
	return 0;
}

static int on_stream_close(nghttp2_session *http2, int32_t id, uint32_t error, void *context)
{
	struct session *session = context;
	struct stream *stream = stream_find(session, id);

	(void)http2;
	(void)error;
	session_closed_note(session, id);
	if (!stream)
		return 0;
	session->found = NULL; /* to the library it exists no more */
	stream->closed = true;
	/* What is in the message completes the response. */
	if (stream->ended)
		return 0;
	session->connection->thread->h2->session_changes++;
	connection_close(&stream->connection);
	return 0;
}

/* --- all frames --------------------------------------------------------------------- */

/* Returns false if what follows is not to be processed. */
static bool check_frame(struct session *session)
{
	const nghttp2_frame_hd *frame = &session->frames.head;
	uint32_t error = session_closed_check(session, frame);

	/* Priorities of RFC 7540 are ignored, but not such a frame (RFC 9113, section 6.3). */
	if (frame->type == NGHTTP2_PRIORITY && frame->stream_id == 0)
		error = NGHTTP2_PROTOCOL_ERROR;
	if (error)
		session_break_off(session, error, "a frame that its stream cannot have");
	return !error;
}

/* Whether the frame opens a stream, which it can whatever came before. */
static bool opens_stream(struct session *session)
{
	const nghttp2_frame_hd *frame = &session->frames.head;

	if (frame->type != NGHTTP2_HEADERS || frame->stream_id <= session->highest)
		return false;
	session->highest = frame->stream_id;
	return true;
}

/*
 * Responds to a head of which the rest is not worth decoding.  Its stream is reset when the response
 * has been sent: a reset would cancel it.  Returns false if the connection was freed.
 */
static bool refuse_endless(struct session *session)
{
	struct stream *stream = session->opening;

	session->endless = false;
	session->refused = stream->id;
	start_request(session, stream, true);
	return session_collect(session);
}

/* Returns false if the connection was freed. */
static bool process(struct session *session, const char *data, size_t length)
{
	while (length) {
		ssize_t used =
			nghttp2_session_mem_recv(session->http2, (const uint8_t *)data, length);

		if (used < 0) {
			session_fail(session, nghttp2_strerror((int)used));
			return false;
		}
		data += used;
		length -= (size_t)used;
		if (!session->endless)
			break;
		if (!refuse_endless(session))
			return false;
	}
	if (session_flood_is_over_limit(session))
		session_break_off(session, NGHTTP2_ENHANCE_YOUR_CALM,
				  "too many frames that achieve nothing");
	return true;
}

/* A client that should open no more streams, and knows it by now, gets no further ones. */
static void insist(struct session *session)
{
	uint64_t now = loop_now_ms(session->connection->thread->loop);

	if (!session->leaving || session->strict || now - session->leaving_ms < SESSION_LAST_MS)
		return;
	session->strict = true;
	(void)nghttp2_submit_goaway(session->http2, NGHTTP2_FLAG_NONE,
				    nghttp2_session_get_last_proc_stream_id(session->http2),
				    NGHTTP2_NO_ERROR, NULL, 0);
}

/* Whether what follows can wait until the message was sent, or has to. */
static bool may_wait(const struct session *session)
{
	return session->connection->sending &&
	       (!session->stalls || session_flood_must_wait(session));
}

/* Whether what comes next is the content of a request: to pass it on costs little. */
static bool has_content(const struct session *session)
{
	return session->frames.left && session->frames.head.type == NGHTTP2_DATA;
}

/* Processes the next *run bytes, if there are any.  Returns false if the connection was freed. */
static bool process_run(struct session *session, const char *data, size_t *done, size_t *run)
{
	size_t at = *done, length = *run;

	*done += length;
	*run = 0;
	return !length || process(session, data + at, length);
}

/*
 * Processes frames; stops early if a message has left and what follows can wait until it was sent,
 * or to let others have their turn: then perhaps within a frame.  Returns the bytes processed, or -1
 * if the connection was freed.
 */
static ssize_t process_frames(struct session *session, const char *data, size_t length)
{
	struct h2_thread *h2 = session->connection->thread->h2;
	size_t done = 0, run = 0; /* run: bytes that can be processed together */
	/*
	 * After SESSION_STARTS_EACH, their responses are collected: what these use is still in the
	 * processor's caches then, and the requests that wait use none.
	 */
	unsigned started = 0, before = h2->session_changes;

	while (done + run < length && !session->over) {
		bool begins, turn_over;
		size_t now;

		if (session_frames_between(&session->frames) &&
		    (started == SESSION_STARTS_EACH || session_turn_is_over(session, before) ||
		     session_flood_must_wait(session))) {
			if (!process_run(session, data, &done, &run) || !session_collect(session))
				return -1;
			turn_over = (started && h2->session_starts >= SESSION_STARTS_MAX) ||
				    session_turn_is_over(session, before) || session_time_is_up(h2);
			started = 0;
			if (turn_over || may_wait(session))
				return (ssize_t)done;
		}
		if (run >= SESSION_HEAD_PIECE && !has_content(session)) {
			if (!process_run(session, data, &done, &run))
				return -1;
			if (session_time_is_up(h2))
				return (ssize_t)done;
		}
		now = length - done - run;
		if (!has_content(session))
			now = MIN(now, SESSION_HEAD_PIECE);
		now = session_frames_split(&session->frames, data + done + run, now, &begins);
		if (begins)
			session_flood_received(session);
		if (begins && opens_stream(session)) {
			started++;
			h2->session_starts++;
		} else if (begins) {
			if (!process_run(session, data, &done, &run))
				return -1;
			if (!check_frame(session))
				return (ssize_t)length;
		}
		run += now;
	}
	if (!session->over && !process_run(session, data, &done, &run))
		return -1;
	return (ssize_t)length;
}

/* Saves what is not to be processed now. */
static void receive(struct session *session, const char *data, size_t length, bool now)
{
	struct connection *connection = session->connection;
	ssize_t used = now ? process_frames(session, data, length) : 0;

	if (used < 0)
		return;
	if ((size_t)used < length &&
	    !connection_keep_input(connection, data + used, length - (size_t)used)) {
		session_fail(session, "no memory");
		return;
	}
	if (connection->input_length)
		session_hold_timers(connection->thread->h2);
	insist(session);
	if (session->begun_with != connection->thread->config_ref)
		session_leave(connection);
	if (now && connection->input_length)
		session_wake_late(session);
	else
		session_wake(session);
}

void session_received(struct connection *connection, const char *data, size_t length)
{
	const struct h2_thread *h2 = connection->thread->h2;
	struct session *session = connection->carrier->session;

	/*
	 * What was saved is first; the session is awake.  While sessions are late, what comes only
	 * waits for its turn, so that all of it gets there soon.
	 */
	if (!session->over)
		receive(session, data, length,
			!connection->input_length && list_is_empty(&h2->late_sessions) &&
				!session_time_is_up(h2) &&
				h2->session_starts < SESSION_STARTS_MAX / 2);
}

void session_resumed(struct connection *connection, const char *data, size_t length)
{
	if (!connection->carrier->session->over)
		receive(connection->carrier->session, data, length, true);
}

void session_receive_callbacks(nghttp2_session_callbacks *callbacks)
{
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
}
