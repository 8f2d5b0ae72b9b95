/* SPDX-License-Identifier: MIT */
/*
 * session-work.c - what a session does before its thread's loop sleeps: it sends what its streams
 * have, so that responses that are ready at the same time leave together; or ends; or waits with a
 * timeout.
 */
#include <glib.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/container.h"
#include "base/list.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "conn/connection-base.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "event/loop.h"
#include "h2/h2-thread.h"
#include "h2/session-internal.h"
#include "h2/stream-head.h"

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

/* Everything was said; the client's end follows. */
static void end(struct connection *connection)
{
	session_close(connection);
	connection_shut(connection);
	connection_linger(connection);
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
	if (!session_fill_message(session))
		return;
	if (session->message.count) {
		session_send_message(session);
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
	session_streams_wait(session);
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
		h2->waiting--;
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

	if (h2->waiting) {
		h2->session_end_ns = loop_turn_ns(h2->thread->loop) + h2->session_turn_ns;
		work_some(h2, &h2->sessions);
		work_some(h2, &h2->late_sessions);
	}
	h2->session_end_ns = h2->session_turn_ns;
	h2->session_starts = h2->session_changes = 0;
	/* With bytes that were saved, perhaps. */
	if (h2->waiting)
		session_hold_timers(h2);
	return h2->waiting;
}
