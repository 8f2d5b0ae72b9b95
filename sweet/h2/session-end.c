/* SPDX-License-Identifier: MIT */
/*
 * session-end.c - the end of a session, from its last streams on; and of the streams that are left.
 */
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/timer.h"
#include "conn/connection-base.h"
#include "conn/connection-mux.h"
#include "core/client-calls.h"
#include "core/server.h"
#include "event/loop.h"
#include "h2/h2-thread.h"
#include "h2/session-internal.h"
#include "h2/stream-head.h"
#include "log/log.h"

void session_leave(struct connection *connection)
{
	struct session *session = connection->carrier->session;

	if (!session->leaving) {
		(void)nghttp2_submit_shutdown_notice(session->http2);
		session->leaving_ms = loop_now_ms(connection->thread->loop);
	}
	session->leaving = true;
	session->last |= connection->thread->draining && connection->carrier->requests;
	session->begun_with = connection->thread->config_ref;
	/* What the client has opened meanwhile is received first. */
	session_wake(session);
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
	log_info("%s: HTTP/2: %s: closing", connection_remote(session->connection), why);
	session_say_end(session, error);
}

void session_fail(struct session *session, const char *why)
{
	log_info("%s: HTTP/2: %s: closing", connection_remote(session->connection), why);
	connection_close(session->connection);
}

/* None of its streams is left. */
static void session_free(struct session *session)
{
	struct connection *connection = session->connection;

	session_wake_not(session);
	connection->carrier->ending = NULL;
	connection->carrier->calls = NULL;
	nghttp2_session_del(session->ended);
	session_message_free(&session->message);
	connection->thread->h2->session_changes += SESSION_FREE_COST;
	client_calls_release(session->calls);
	free(session);
}

void session_close(struct connection *connection)
{
	struct session *session = connection->carrier->session;

	timer_stop(&session->unsettled);
	session->ended = session->http2;
	session->http2 = NULL;
	session_closed_free(session);
	stream_head_free(&session->head);
	connection->send.pieces = NULL;
	connection->send.piece_count = 0;
	connection->mux = &connection_http1;
	connection->carrier->session = NULL;
	connection->carrier->ending = session;
	if (list_is_empty(&session->streams))
		session_free(session);
	else
		session_wake(session);
}

static void end_stream(struct session *session)
{
	session->connection->thread->h2->session_changes++;
	connection_close(&list_first(&session->streams, struct stream, node)->connection);
}

static void end_if_empty(struct session *session)
{
	struct connection *connection = session->connection;

	if (!list_is_empty(&session->streams)) {
		session_wake(session);
		return;
	}
	session_free(session);
	connection_streams_ended(connection);
}

void session_end_some(struct session *session)
{
	unsigned before = session->connection->thread->h2->session_changes;

	while (!list_is_empty(&session->streams) && !session_turn_is_over(session, before))
		end_stream(session);
	end_if_empty(session);
}

void session_end_all(struct connection *connection)
{
	struct session *session = connection->carrier->ending;

	while (!list_is_empty(&session->streams))
		end_stream(session);
	end_if_empty(session);
}
