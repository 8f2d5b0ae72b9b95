/* SPDX-License-Identifier: MIT */
/*
 * session-stream.c - a stream of an HTTP/2 session as the transport of a connection.
 *
 * The connection has one request, and its end is the end of the stream.  The library asks for
 * content when the windows of the client have room and the stream is the most urgent one.
 *
 * After the end of its session (no http2) a stream exists until its turn to end has come.  What is
 * sent meanwhile waits.
 */
#include <errno.h>
#include <glib.h>
#include <nabc.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/slice.h"
#include "base/spare-memory.h"
#include "conn/connection-base.h"
#include "conn/connection-mux.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/piece.h"
#include "exchange/output.h"
#include "h2/h2-thread.h"
#include "h2/session-internal.h"
#include "log/log.h"
#include "pressure/slow.h"

#define COPIED_MAX 2048u /* bytes of content that are copied: cheaper than a piece of its own */

/* The stream's end is to be sent, but its connection has ended already. */
static char ends_alone;

static struct stream *stream_of(const struct connection *connection)
{
	return (struct stream *)(uintptr_t)connection;
}

struct stream *stream_find(struct session *session, int32_t id)
{
	void *found;

	/* The callbacks for a frame follow each other. */
	if (session->found && session->found->id == id)
		return session->found;
	found = nghttp2_session_get_stream_user_data(session->http2, id);
	if (!found || found == &ends_alone)
		return NULL;
	session->found = found;
	return found;
}

static void enlist(struct session *session, struct list *sessions)
{
	list_append(sessions, &session->waking);
	session->connection->thread->h2->waiting++;
}

void session_wake(struct session *session)
{
	if (!list_is_linked(&session->waking))
		enlist(session, &session->connection->thread->h2->sessions);
}

void session_wake_not(struct session *session)
{
	session->connection->thread->h2->waiting -= list_is_linked(&session->waking);
	list_remove(&session->waking);
}

void session_wake_late(struct session *session)
{
	session_wake_not(session);
	enlist(session, &session->connection->thread->h2->late_sessions);
}

/* --- the content of a response ------------------------------------------------------------------- */

static ssize_t stream_read(nghttp2_session *http2, int32_t id, uint8_t *room, size_t most,
			   uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct session *session = context;
	struct stream *stream;
	size_t left;

	(void)room;
	(void)source;
	if (session_message_is_full(&session->message))
		return NGHTTP2_ERR_PAUSE;
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	stream = stream_find(session, id);
	if (!stream && nghttp2_session_get_stream_user_data(http2, id) != &ends_alone)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (!stream || stream->ends) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		return 0;
	}
	if (!stream->connection.sending)
		return NGHTTP2_ERR_DEFERRED;
	left = loop_send_length(&stream->connection.send) - stream->connection.send.message.skip;
	if (left == 0 && !stream_is_last(stream))
		return NGHTTP2_ERR_DEFERRED;
	if (left <= most && stream_is_last(stream))
		*flags |= NGHTTP2_DATA_FLAG_EOF | stream_submit_trailers(stream);
	return (ssize_t)MIN(left, most);
}

/* Adds a frame with content that is copied; returns false if it cannot be read. */
static bool copy_data(struct stream *stream, const uint8_t *head, size_t length)
{
	struct session_message *message = &stream->session->message;
	char *at = session_message_reserve(message, SESSION_FRAME_HEAD + length);
	size_t done = 0;

	if (!at)
		return false;
	memcpy(at, head, SESSION_FRAME_HEAD);
	while (done < length) {
		ssize_t got = loop_send_copy(&stream->connection.send,
					     stream->connection.send.message.skip + done,
					     at + SESSION_FRAME_HEAD + done, length - done);

		if (got < 0) {
			log_info("%s: %s: %s: resetting the stream",
				 connection_remote(&stream->connection),
				 stream->connection.output->transaction.path,
				 errno == ERANGE ? "the file was truncated while it was sent"
						 : strerror(errno));
			return false;
		}
		done += (size_t)got;
	}
	return session_message_add_reserved(message, at, SESSION_FRAME_HEAD + length);
}

static bool refer_to_data(struct stream *stream, const uint8_t *head, size_t length)
{
	struct session_message *message = &stream->session->message;
	size_t done = 0, run;

	if (!session_message_copy(message, head, SESSION_FRAME_HEAD))
		return false;
	for (; done < length; done += run) {
		const char *data = loop_send_run(&stream->connection.send,
						 stream->connection.send.message.skip + done, &run);

		run = MIN(run, length - done);
		if (!data || !session_message_refer(message, data, run, stream))
			return false;
	}
	return true;
}

int stream_add_data(nghttp2_session *http2, nghttp2_frame *frame, const uint8_t *head,
		    size_t length, nghttp2_data_source *source, void *context)
{
	struct session *session = context;
	struct stream *stream = stream_find(session, frame->hd.stream_id);
	struct session_message *message = &session->message;

	(void)source;
	session_flood_sent(session);
	/* Without a stream it is an end without content. */
	if (stream ? !session_message_include(message, stream) : length != 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (length == 0) {
		if (!session_message_copy(message, head, SESSION_FRAME_HEAD))
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	} else if (length <= COPIED_MAX || stream->connection.send.file.length) {
		if (!copy_data(stream, head, length)) {
			(void)nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, stream->id,
							NGHTTP2_CANCEL);
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		}
	} else if (!refer_to_data(stream, head, length)) {
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (stream) {
		stream->connection.send.message.skip += length;
		stream->ended |= (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
	}
	return session_message_is_full(message) ? NGHTTP2_ERR_PAUSE : 0;
}

void stream_sent(struct stream *stream)
{
	struct loop_send *op = &stream->connection.send;

	if (stream->connection.sending && op->message.skip == loop_send_length(op) &&
	    (stream->ended || !stream_is_last(stream)))
		op->sent(op, 0);
}

/* --- the transport -------------------------------------------------------------------- */

static void stream_send_message(struct connection *connection)
{
	struct stream *stream = stream_of(connection);

	/* It is closed soon. */
	if (!stream->session->http2)
		return;
	if (!stream->answered)
		stream_submit_head(stream, stream_read);
	else
		(void)nghttp2_session_resume_data(stream->session->http2, stream->id);
	session_wake(stream->session);
}

static bool stream_cancel(struct connection *connection)
{
	struct stream *stream = stream_of(connection);

	if (!connection->sending || stream->ended)
		return false;
	if (stream->session->http2)
		session_message_release(&stream->session->message, stream);
	connection->sending = false;
	return true;
}

/* Whether one of the client's windows keeps it from being sent. */
static bool stream_client_stalls(const struct connection *connection)
{
	const struct stream *stream = stream_of(connection);
	nghttp2_session *http2 = stream->session->http2;

	return http2 && !stream->in_message &&
	       (nghttp2_session_get_stream_remote_window_size(http2, stream->id) <= 0 ||
		nghttp2_session_get_remote_window_size(http2) <= 0);
}

/* Without those, of the bytes for which the client got no window back. */
static void give_back(struct stream *stream, size_t saved)
{
	size_t bytes = stream->unread - MIN(saved, stream->unread);

	if (!bytes || !stream->session->http2)
		return;
	stream->unread -= bytes;
	if (!stream->closed)
		(void)nghttp2_session_consume(stream->session->http2, stream->id, bytes);
	else
		(void)nghttp2_session_consume_connection(stream->session->http2, bytes);
	session_wake(stream->session);
}

void stream_give_back(struct stream *stream)
{
	give_back(stream, stream->connection.paused ? stream->connection.input_length : 0);
}

static void stream_pause_receiving(struct connection *connection)
{
	(void)connection; /* what it sends now gives it no window */
}

/* What was saved is processed next: how much of it will be known then. */
static void stream_resume_receiving(struct connection *connection)
{
	struct session *session = stream_of(connection)->session;

	session->resumed = true;
	if (session->http2)
		session_wake(session);
}

static void stream_interim(struct connection *connection, int status, struct slice lines)
{
	struct stream *stream = stream_of(connection);

	if (!stream->session->http2)
		return;
	stream_submit_interim(stream, status, lines);
	session_wake(stream->session);
}

/* What the kernel holds is counted for the session; the stream's memory is not lent to it. */
static int stream_unsent(const struct connection *connection)
{
	(void)connection;
	return 0;
}

static void stream_shut(struct connection *connection)
{
	struct stream *stream = stream_of(connection);

	stream->ends = true;
	if (!stream->session->http2)
		return;
	(void)nghttp2_session_resume_data(stream->session->http2, stream->id);
	session_wake(stream->session);
}

/* A stream whose end was not sent is reset at its close, with a code that this decides. */
static void stream_reset_at_close(struct connection *connection)
{
	stream_of(connection)->cut = true;
}

static void unlink_stream(struct stream *stream)
{
	struct session *session = stream->session;

	list_remove(&stream->node);
	session->stream_count--;
	session->heads -= stream->head;
	session->connection->thread->h2->streams--;
	if (session->found == stream)
		session->found = NULL;
	if (session->current == stream)
		session->current = NULL;
	if (session->opening == stream)
		session->opening = NULL;
}

static void stream_close(struct connection *connection)
{
	struct stream *stream = stream_of(connection);
	struct session *session = stream->session;
	nghttp2_session *http2 = session->http2;

	unlink_stream(stream);
	/* At the end of the session there is nothing to say. */
	if (!http2)
		return;
	session_message_release(&session->message, stream);
	if (!stream->closed) {
		(void)nghttp2_session_set_stream_user_data(http2, stream->id,
							   stream->ends ? &ends_alone : NULL);
		if (!stream->ended && !stream->ends)
			(void)nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, stream->id,
							stream->cut ? NGHTTP2_CANCEL
								    : NGHTTP2_INTERNAL_ERROR);
	}
	give_back(stream, 0);
	session_wake(session);
}

static void stream_free_connection(struct connection *connection)
{
	spare_memory_give_back(connection->thread->h2->session_memory, stream_of(connection));
}

static const struct connection_transport transport = {
	.send = stream_send_message,
	.cancel = stream_cancel,
	.client_stalls = stream_client_stalls,
	.pause = stream_pause_receiving,
	.resume = stream_resume_receiving,
	.interim = stream_interim,
	.unsent = stream_unsent,
	.shut = stream_shut,
	.reset_at_close = stream_reset_at_close,
	.close = stream_close,
	.free = stream_free_connection,
};

struct stream *stream_open(struct session *session, int32_t id)
{
	struct carrier *carrier = session->connection->carrier;
	struct thread *thread = carrier->connection.thread;
	struct stream *stream =
		spare_memory_take_zeroed(thread->h2->session_memory, 1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->connection.transport = &transport;
	stream->connection.mux = &connection_http1;
	stream->connection.slow.owner = &connection_slow;
	stream->connection.slow.thread = thread;
	stream->connection.slow.send = &stream->connection.send;
	stream->connection.carrier = carrier;
	stream->connection.thread = thread;
	stream->session = session;
	stream->id = id;
	list_prepend(&session->streams, &stream->node);
	session->stream_count++;
	thread->h2->streams++;
	return stream;
}
