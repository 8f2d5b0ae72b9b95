/* SPDX-License-Identifier: MIT */
/*
 * session-work.c - what a session does before its thread's loop sleeps: it sends what its streams
 * have, so that responses that are ready at the same time leave together; or ends; or waits with a
 * timeout.
 */
#include <errno.h>
#include <glib.h>
#include <nabc.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/container.h"
#include "base/list.h"
#include "base/peer-addresses.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "conn/connection-base.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "event/loop.h"
#include "h2/h2-thread.h"
#include "h2/session-internal.h"
#include "h2/session.h"
#include "h2/stream-head.h"
#include "log/log.h"
#include "tls/tls.h"

#define FRAME_DATA (TLS_RECORD_MAX - SESSION_FRAME_HEAD) /* a frame fills a record */

/* --- a message ---------------------------------------------------------------------- */

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

/* Fills the message; returns false if the connection was freed. */
static bool collect(struct session *session)
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

/* Responses that cannot continue wait with their units. */
static void streams_wait(struct session *session)
{
	list_each (struct stream, stream, &session->streams, node)
		if (stream->connection.sending && !stream->ended)
			connection_waits(&stream->connection.send);
}

/* The waits() of struct loop_send. */
static void session_waits(struct loop_send *op)
{
	struct connection *connection = container_of(op, struct connection, send);

	connection_unsent_waits(connection);
	streams_wait(connection->session);
	connection->session->stalls = true;
	session_wake(connection->session);
}

static void session_sent(struct loop_send *op, int result)
{
	struct connection *connection = container_of(op, struct connection, send);
	struct session *session = connection->session;

	connection->sending = session->stalls = false;
	connection_unsent_stops(connection);
	if (result < 0) {
		if (result != -EPIPE && result != -ECONNRESET)
			log_info("%s: sending: %s", connection->addresses.remote,
				 strerror(-result));
		connection_close(connection);
		return;
	}
	session_message_done(&session->message, stream_sent);
	session_wake(session);
}

static void send_message(struct session *session)
{
	struct connection *connection = session->connection;
	struct loop_send *op = &connection->send;

	op->message = (struct NC_send)NC_SEND_INIT(.cookie = &connection->cookie);
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
	connection_unsent_starts(connection);
	loop_send_start(connection->thread->loop, op, connection->fd);
}

/* --- its turn -------------------------------------------------------------------------- */

/* The timeout of a session that sends nothing; streams have their own. */
static void set_timer(struct session *session)
{
	struct connection *connection = session->connection;
	const struct config_limits *limits = connection_limits(connection);
	enum session_timing timing = session->opening	     ? TIMING_HEAD
				     : session->stream_count ? TIMING_NONE
				     : session->leaving	     ? TIMING_LAST
							     : TIMING_IDLE;
	uint64_t now = loop_now_ms(connection->thread->loop), most;

	connection_count_as(connection, session->opening	? CONNECTION_READING
					: session->stream_count ? CONNECTION_WORKING
								: CONNECTION_IDLE);
	if (timing != session->timing) {
		session->timing = timing;
		session->timing_ms = now;
		session->timed = false;
	}
	/* Other frames, and what is sent for them, do not prolong it. */
	if (session->timed)
		return;
	session->timed = true;
	most = timing == TIMING_HEAD   ? limits->header_ms
	       : timing == TIMING_IDLE ? limits->keep_alive_ms
				       : SESSION_LAST_MS;
	if (timing == TIMING_NONE)
		timer_stop(&connection->timer);
	else
		connection_time(connection, (unsigned)(most - MIN(now - session->timing_ms, most)));
}

void session_say_end(struct session *session, uint32_t error)
{
	session->over = true;
	(void)nghttp2_session_terminate_session(session->http2, error);
	session_wake(session);
}

void session_break_off(struct session *session, uint32_t error, const char *why)
{
	if (session->over)
		return;
	log_info("%s: HTTP/2: %s: closing", session->connection->addresses.remote, why);
	session_say_end(session, error);
}

/* Everything was said; the client's end follows. */
static void end(struct connection *connection)
{
	session_close(connection);
	connection_shut(connection);
	connection_linger(connection);
}

void session_fail(struct session *session, const char *why)
{
	log_info("%s: HTTP/2: %s: closing", session->connection->addresses.remote, why);
	connection_close(session->connection);
}

bool session_collect(struct session *session)
{
	if (session->connection->sending)
		return true;
	if (!collect(session))
		return false;
	if (session_message_is_full(&session->message))
		send_message(session);
	return true;
}

/* Sends what there is, if nothing is in flight.  May free the connection. */
static void work(struct session *session)
{
	struct connection *connection = session->connection;

	if (session->resumed)
		list_each (struct stream, stream, &session->streams, node)
			stream_give_back(stream);
	session->resumed = false;
	if (connection->input_length && !session->over &&
	    (!connection->sending || (session->stalls && !session_flood_must_wait(session)))) {
		/* In the next turn, what it has to send has company. */
		if (connection->thread->h2->session_starts >= SESSION_STARTS_MAX)
			session_wake(session);
		else
			connection_consume_input(connection, session_resumed);
		return;
	}
	if (connection->sending)
		return;
	if (!collect(session))
		return;
	if (session->message.count) {
		send_message(session);
		return;
	}
	if (session->last && !session->stream_count && !session->over) {
		session_say_end(session, NGHTTP2_NO_ERROR);
		return;
	}
	if (!nghttp2_session_want_read(session->http2)) {
		end(connection);
		return;
	}
	if (!session->opening)
		stream_head_free(&session->head);
	streams_wait(session);
	set_timer(session);
}

/* Some sessions of the list work, at least one. */
static void work_some(struct h2_thread *h2, struct list *sessions)
{
	const struct session *last = list_last(sessions, struct session, waking);
	struct session *session;
	unsigned left = SESSION_WORK_MAX, ending = 0;

	/* Those that wake meanwhile come in the next turn. */
	while (left-- && (session = list_take(sessions, struct session, waking))) {
		if (session == last)
			left = 0;
		if (session->http2)
			work(session);
		else if (h2->session_changes < SESSION_ENDS_MAX || ending++ < SESSION_ENDING_LEAST)
			session_end_some(session);
		else
			session_wake(session);
		if (session_time_is_up(h2))
			return;
	}
}

bool session_work_next(struct loop_hook *hook)
{
	struct h2_thread *h2 = container_of(hook, struct h2_thread, session_hook);

	h2->session_end_ns = loop_turn_ns(h2->thread->loop) + h2->session_turn_ns;
	work_some(h2, &h2->sessions);
	work_some(h2, &h2->late_sessions);
	h2->session_end_ns = h2->session_turn_ns;
	h2->session_starts = h2->session_changes = 0;
	return !list_is_empty(&h2->sessions) || !list_is_empty(&h2->late_sessions);
}

void session_send_callbacks(nghttp2_session_callbacks *callbacks)
{
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
	nghttp2_session_callbacks_set_send_data_callback(callbacks, stream_add_data);
	nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_length);
}
