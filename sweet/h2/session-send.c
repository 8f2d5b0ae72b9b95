/* SPDX-License-Identifier: MIT */
/*
 * session-send.c - what a session sends: the message is filled with the frames of its streams, and is
 * sent on its connection.
 */
#include <errno.h>
#include <glib.h>
#include <nabc.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/container.h"
#include "base/list.h"
#include "config/configuration.h"
#include "conn/connection-base.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "event/loop.h"
#include "h2/h2-thread.h"
#include "h2/session-internal.h"
#include "log/log.h"
#include "pressure/unsent.h"
#include "tls/tls.h"

#define FRAME_DATA (TLS_RECORD_MAX - SESSION_FRAME_HEAD) /* a frame fills a record */

static ssize_t frame_length(nghttp2_session *http2, uint8_t type, int32_t id,
			    int32_t session_window, int32_t stream_window, uint32_t frame_max,
			    void *context)
{
	ssize_t most = MIN(session_window, stream_window);

	(void)http2;
	(void)type;
	(void)id;
	(void)context;
	return MIN(most, (ssize_t)MIN(frame_max, FRAME_DATA));
}

/*
 * Whether a stream that is reset with that error has violated a rule.  Requests that were refused
 * have not begun, and the other codes are for the server's own faults and decisions.
 */
static bool is_fault_of_client(uint32_t error)
{
	return error != NGHTTP2_NO_ERROR && error != NGHTTP2_CANCEL &&
	       error != NGHTTP2_INTERNAL_ERROR && error != NGHTTP2_REFUSED_STREAM;
}

static int on_frame_sent(nghttp2_session *http2, const nghttp2_frame *frame, void *context)
{
	struct session *session = context;
	struct stream *stream;

	(void)http2;
	if (frame->hd.type == NGHTTP2_RST_STREAM &&
	    is_fault_of_client(frame->rst_stream.error_code))
		session_flood_reset(session);
	if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		session_closed_answered(session, frame->hd.stream_id);
	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	stream = stream_find(session, frame->hd.stream_id);
	if (stream && stream->answered) {
		stream->ended |= (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
		if (!session_message_include(&session->message, stream))
			return NGHTTP2_ERR_CALLBACK_FAILURE;
		session_flood_sent(session);
	}
	return 0;
}

/* Adds frames, as long as not too many of them end streams; returns false if the session is broken. */
static bool add_frames(struct session *session, unsigned before)
{
	while (!session_message_is_full(&session->message) &&
	       !session_turn_is_over(session, before)) {
		const uint8_t *data;
		ssize_t length = nghttp2_session_mem_send(session->http2, &data);

		if (length <= 0)
			return length == 0;
		if (!session_message_copy(&session->message, data, (size_t)length))
			return false;
	}
	return true;
}

bool session_fill_message(struct session *session)
{
	unsigned before = session->connection->thread->h2->session_changes;

	do {
		if (!add_frames(session, before)) {
			session_fail(session, "no memory");
			return false;
		}
		/* Responses that continue may have more. */
	} while (session_message_copied(&session->message, stream_sent));
	return true;
}

void session_streams_wait(struct session *session)
{
	list_each (struct stream, stream, &session->streams, node)
		if (stream->connection.sending && !stream->ended)
			connection_waits(&stream->connection.send);
}

/* The waits() of struct loop_send. */
static void session_waits(struct loop_send *op)
{
	struct connection *connection = container_of(op, struct connection, send);

	unsent_waits(&connection->carrier->unsent);
	session_streams_wait(connection->carrier->session);
	connection->carrier->session->stalls = true;
	session_wake(connection->carrier->session);
}

static void session_sent(struct loop_send *op, int result)
{
	struct connection *connection = container_of(op, struct connection, send);
	struct session *session = connection->carrier->session;

	connection->sending = session->stalls = false;
	unsent_stops(&connection->carrier->unsent);
	if (result < 0) {
		if (result != -EPIPE && result != -ECONNRESET)
			log_info("%s: sending: %s", connection_remote(connection),
				 strerror(-result));
		connection_close(connection);
		return;
	}
	session_message_done(&session->message, stream_sent);
	session_wake(session);
}

void session_send_message(struct session *session)
{
	struct connection *connection = session->connection;
	struct loop_send *op = &connection->send;

	op->message = (struct NC_send)NC_SEND_INIT(.cookie = &connection->carrier->cookie);
	op->pieces = session->message.pieces;
	op->piece_count = session->message.count;
	op->batch = true;
	op->cipher = connection_cipher(connection);
	op->sent = session_sent;
	op->waits = session_waits;
	connection_count_as(connection, CONNECTION_SENDING);
	connection->measured = false;
	connection->sending = true;
	session->timed = false;
	connection_time(connection, connection_limits(connection)->send_ms);
	unsent_starts(&connection->carrier->unsent);
	loop_send_start(connection->thread->loop, op, connection->carrier->fd);
}

bool session_collect(struct session *session)
{
	if (session->connection->sending)
		return true;
	if (!session_fill_message(session))
		return false;
	if (session_message_is_full(&session->message))
		session_send_message(session);
	return true;
}

void session_send_callbacks(nghttp2_session_callbacks *callbacks)
{
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
	nghttp2_session_callbacks_set_send_data_callback(callbacks, stream_add_data);
	nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_length);
}
