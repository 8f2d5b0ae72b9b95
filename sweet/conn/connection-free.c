/* SPDX-License-Identifier: MIT */
/*
 * connection-free.c - frees a connection: at once, or when the last stream of its session has ended.
 * Until then it counts as one, for its client and for all limits.
 */
#include <stddef.h>
#include <stdlib.h>

#include "base/counter.h"
#include "base/list.h"
#include "base/timer.h"
#include "conn/conn-thread.h"
#include "conn/connection-base.h"
#include "conn/connection-tls-internal.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "event/client-limit.h"
#include "http/body.h"
#include "pressure/pace.h"
#include "tls/tls.h"

void connection_tls_free(struct connection *connection)
{
	struct connection_tls *tls = connection->carrier->tls;
	struct conn_thread *conn = connection->thread->conn;

	if (!tls)
		return;
	if (conn->tls_reader == tls)
		conn->tls_reader = NULL;
	conn->handshake_count -= list_is_linked(&tls->waiting);
	list_remove(&tls->waiting);
	if (tls->channel)
		tls_library->close(tls->channel);
	free(tls);
	connection->carrier->tls = NULL;
}

/* Nothing refers to it any more. */
static void forget(struct connection *connection)
{
	struct thread *thread = connection->thread;

	list_remove(&connection->carrier->node);
	counter_sub(&thread->counters->open, 1);
	counter_sub(&thread->counters->states[connection->carrier->counted], 1);
	if (connection->carrier->client)
		client_limits_leave(thread->server->limits, connection->carrier->client);
	connection_tls_free(connection);
	if (thread->vacated && list_is_empty(&thread->conn->connections))
		thread->vacated(thread);
	connection->transport->free(connection);
}

/* Streams that end know their client by it, and that client has it until then. */
static void wait_for_streams(struct connection *connection)
{
	struct thread *thread = connection->thread;

	connection->state = ENDED;
	connection->carrier->fd = -1;
	connection->input = NULL;
	connection->input_length = connection->input_room = 0;
	connection_count_as(connection, CONNECTION_LINGERING);
	/* Who processes its data must not continue. */
	if (thread->conn->tls_reader == connection->carrier->tls)
		thread->conn->tls_reader = NULL;
}

void connection_free(struct connection *connection)
{
	timer_stop(&connection->timer);
	timer_stop(&connection->settling);
	pace_end(&connection->carrier->pace, &connection->paced);
	body_end(&connection->body);
	free(connection->input);
	if (connection_is_stream(connection)) {
		connection->transport->free(connection);
		return;
	}
	if (connection->carrier->ending)
		wait_for_streams(connection);
	else
		forget(connection);
}

void connection_streams_ended(struct connection *connection)
{
	if (connection->state == ENDED)
		forget(connection);
}
