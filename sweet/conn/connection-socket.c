/* SPDX-License-Identifier: MIT */
/*
 * connection-socket.c - the transport of a connection that has a socket, by the thread's loop.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/slice.h"
#include "conn/connection-base.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "http/response.h"
#include "pressure/unsent.h"

static void socket_send_message(struct connection *connection)
{
	unsent_starts(&connection->carrier->unsent);
	loop_send_start(connection->thread->loop, &connection->send, connection->carrier->fd);
}

static bool socket_cancel(struct connection *connection)
{
	if (!loop_send_cancel(connection->thread->loop, connection->carrier->fd))
		return false;
	connection->sending = false;
	unsent_stops(&connection->carrier->unsent);
	unsent_shrink(&connection->carrier->unsent);
	return true;
}

static bool socket_client_stalls(const struct connection *connection)
{
	(void)connection;
	return true;
}

static void socket_pause_receiving(struct connection *connection)
{
	loop_receive_pause(connection->thread->loop, connection->carrier->fd);
}

static void socket_resume_receiving(struct connection *connection)
{
	loop_receive_resume(connection->thread->loop, connection->carrier->fd);
}

#define INTERIM_UNSENT_MAX 16384 /* bytes that surely fit into a socket */

/* More than 100: a client that does not read need not get it. */
static bool has_room(const struct connection *connection, size_t length)
{
	return unsent_in_socket(connection->carrier->fd) + (int)length <= INTERIM_UNSENT_MAX;
}

/*
 * Sent directly, as the loop has no operation for it: the few bytes fit into an idle
 * socket.  If the socket is full, 100 may be left out; clients do not wait for it
 * forever.
 */
static void socket_interim(struct connection *connection, int status, struct slice lines)
{
	char head[RESPONSE_STATUS_MAX + TRANSACTION_INTERIM_MAX + 2];
	size_t length = response_status_line(status, NULL, head);
	ssize_t sent;

	if (lines.length)
		memcpy(head + length, lines.at, lines.length);
	length += lines.length;
	memcpy(head + length, "\r\n", 2);
	length += 2;
	if (lines.length && !has_room(connection, length))
		return;
	sent = connection_write(connection, head, length);
	if (sent > 0 && sent < (ssize_t)length)
		(void)shutdown(connection->carrier->fd,
			       SHUT_RDWR); /* what follows cannot be parsed */
}

static int socket_unsent(const struct connection *connection)
{
	return unsent_in_socket(connection->carrier->fd);
}

static void socket_reset_at_close(struct connection *connection)
{
	const struct linger none = {.l_onoff = 1};

	(void)setsockopt(connection->carrier->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

static void socket_close(struct connection *connection)
{
	loop_close_fd(connection->thread->loop, connection->carrier->fd);
}

static void socket_free_connection(struct connection *connection)
{
	free(connection->carrier);
}

const struct connection_transport connection_socket = {
	.send = socket_send_message,
	.cancel = socket_cancel,
	.client_stalls = socket_client_stalls,
	.pause = socket_pause_receiving,
	.resume = socket_resume_receiving,
	.interim = socket_interim,
	.unsent = socket_unsent,
	.shut = connection_shut_socket,
	.reset_at_close = socket_reset_at_close,
	.close = socket_close,
	.free = socket_free_connection,
};
