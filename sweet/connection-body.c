/* SPDX-License-Identifier: MIT */
/*
 * connection-body.c - the body behind a head: gathered for the responder that
 * asked for it, else read past.
 */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include <connection-inside.h>

/*
 * Past the loop, which has no operation for it: the few bytes fit in a socket
 * that was idle.  In one that is full they may be left out; the client does
 * not wait for ever.
 */
static void send_continue(struct connection *connection)
{
	static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
	ssize_t sent = send(connection->fd, line, sizeof(line) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);

	connection->expecting = false;
	if (sent > 0 && sent < (ssize_t)sizeof(line) - 1)
		(void)shutdown(connection->fd, SHUT_RDWR); /* what follows would make no sense */
}

/* The last byte of the body has come. */
static void complete_upload(struct connection *connection)
{
	struct transaction *transaction = &connection->output->transaction;
	int error = body_unit(&connection->body, &transaction->upload);

	transaction->upload_length = connection->body.length;
	if (error) {
		log_error("%s: a body of %llu bytes: %s", connection->ends.remote,
			  (unsigned long long)connection->body.length, strerror(-error));
		connection_refuse(connection, 503);
		return;
	}
	body_end(&connection->body);
	timer_stop(&connection->timer);
	connection->state = WORKING;
	connection_count_as(connection, CONNECTION_WORKING);
	if (transaction->received(transaction) == RESPOND_NOW)
		connection_respond(connection);
}

size_t connection_receive_body(struct connection *connection, const char *data, size_t length)
{
	ssize_t used = body_take(&connection->body, data, length);

	if (used < 0) {
		connection_refuse(connection, (int)-used);
		return length;
	}
	if (body_is_over(&connection->body))
		complete_upload(connection);
	return (size_t)used;
}

void connection_start_receiving(struct connection *connection, const char *data, size_t length)
{
	if (connection->expecting && length == 0)
		send_continue(connection);
	connection->expecting = false;
	connection_count_as(connection, CONNECTION_READING);
	connection_time_body(connection);
	connection_consume(connection, data, length);
}

void connection_receive(struct transaction *transaction, uint64_t limit)
{
	struct connection *connection = transaction->connection;

	if (!connection) {
		output_close((struct output *)transaction);
		return;
	}
	assert(connection->state == WORKING && transaction->has_upload);
	connection->state = RECEIVING;
	if (body_keep(&connection->body, limit, &connection->server->site->bodies) < 0)
		connection_refuse(connection, 413);
	else if (!connection->starting)
		connection_consume_input(connection, connection_start_receiving);
}

ssize_t connection_drop_body(struct connection *connection, const char *data, size_t length)
{
	ssize_t used = body_take(&connection->body, data, length);

	if (used < 0) {
		/* The answer was sent before, and promised to go on. */
		body_end(&connection->body);
		(void)shutdown(connection->fd, SHUT_WR);
		connection_linger(connection);
	} else if (body_is_over(&connection->body)) {
		connection_time(connection, connection_limits(connection)->keep_alive_ms);
	}
	return used;
}
