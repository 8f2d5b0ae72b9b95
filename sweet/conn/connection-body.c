/* SPDX-License-Identifier: MIT */
/*
 * connection-body.c - the request body: collected for the responder that requested it, as a whole
 * or window by window; otherwise read and dropped.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/container.h"
#include "base/slice.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "conn/connection-base.h"
#include "conn/connection-mux.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "exchange/output.h"
#include "http/body.h"
#include "log/log.h"

static void begin_receiving(struct connection *connection)
{
	connection_count_as(connection, CONNECTION_READING);
	connection_time_body(connection);
}

/* The last byte of the body, or of a window, has come. */
static void hand_over(struct connection *connection)
{
	struct transaction *transaction = &connection->output->transaction;
	struct body *body = &connection->body;
	int error = body_unit(body, &transaction->upload.unit, &transaction->upload.hold);

	transaction->upload.length = body->length;
	transaction->upload.more = !body_is_over(body);
	if (error) {
		log_error("%s: request body, at byte %llu: %s", connection_remote(connection),
			  (unsigned long long)body->length, strerror(-error));
		connection_refuse(connection, 503, "no memory for the body");
		return;
	}
	if (!transaction->upload.more)
		body_end(body);
	timer_stop(&connection->timer);
	connection->state = WORKING;
	connection_count_as(connection, CONNECTION_WORKING);
	connection->calling = true;
	if (transaction_received(transaction) == RESPOND_NOW)
		connection_respond(connection);
	connection->calling = false;
	/* The current piece already exceeds the limit. */
	if (connection->state == RECEIVING)
		begin_receiving(connection);
}

/* Returns the reason for the log if a body gets that status. */
static const char *fault_of(int status)
{
	switch (status) {
	case 400:
		return "a malformed chunk";
	case 413:
		return "a body that is longer than max-body or the limit of its handler";
	case 431:
		return "chunk extensions or trailers that are too long";
	default:
		return "no memory for the body";
	}
}

size_t connection_receive_body(struct connection *connection, const char *data, size_t length)
{
	size_t used = 0;

	do {
		ssize_t took = body_take(&connection->body, data + used, length - used);

		if (took < 0) {
			connection_refuse(connection, (int)-took, fault_of((int)-took));
			return length;
		}
		used += (size_t)took;
		if (body_is_ready(&connection->body))
			hand_over(connection);
	} while (connection->state == RECEIVING && used < length);
	return used;
}

void connection_refuse_slow_body(struct connection *connection)
{
	connection_refuse(connection, 408, "a body that comes too slowly");
}

void connection_start_receiving(struct connection *connection, const char *data, size_t length)
{
	if (connection->expecting && length == 0)
		connection->transport->interim(connection, 100, (struct slice){0});
	connection->expecting = false;
	begin_receiving(connection);
	connection->mux->received(connection, data, length);
}

void connection_receive_piece(struct transaction *transaction, uint64_t limit, size_t window)
{
	struct connection *connection = transaction->connection;

	if (!connection) {
		output_close(container_of(transaction, struct output, transaction));
		return;
	}
	assert(connection->state == WORKING && !body_is_over(&connection->body));
	output_return_upload(connection->output);
	connection->state = RECEIVING;
	if (body_keep(&connection->body, limit, window, &connection->thread->server->bodies) < 0)
		connection_refuse(connection, 413, fault_of(413));
	else if (!connection->calling)
		connection_consume_input(connection, connection_start_receiving);
}

void connection_receive(struct transaction *transaction, uint64_t limit)
{
	connection_receive_piece(transaction, limit, BODY_WHOLE);
}

void connection_drop_upload(struct transaction *transaction)
{
	struct connection *connection = transaction->connection;

	output_return_upload(container_of(transaction, struct output, transaction));
	transaction->upload.more = false;
	if (!connection)
		return;
	if (connection->state == RECEIVING) {
		timer_stop(&connection->timer);
		connection->state = WORKING;
		connection_count_as(connection, CONNECTION_WORKING);
	}
	if (!body_is_over(&connection->body))
		body_drop(&connection->body, CONNECTION_DROPPED_MAX);
}

ssize_t connection_drop_body(struct connection *connection, const char *data, size_t length)
{
	ssize_t used = body_take(&connection->body, data, length);

	if (used < 0) {
		/* The response was sent already and announced that the connection continues. */
		body_end(&connection->body);
		connection_shut(connection);
		connection_linger(connection);
	} else if (body_is_over(&connection->body)) {
		connection_time(connection, connection_limits(connection)->keep_alive_ms);
	}
	return used;
}

void connection_hold_input(struct transaction *transaction, bool hold)
{
	struct connection *connection = transaction->connection;

	if (!connection || connection->paused == hold)
		return;
	connection->paused = hold;
	if (hold)
		connection->transport->pause(connection);
	else
		connection->transport->resume(connection);
}
