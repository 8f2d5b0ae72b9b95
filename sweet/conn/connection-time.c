/* SPDX-License-Identifier: MIT */
/*
 * connection-time.c - one timer for each state in which a connection waits for the client.
 *
 * A head has a timeout as a whole.  A body, and a response, must progress with a minimum rate in
 * each period, so that a client cannot keep a connection with a byte now and then.  Progress is
 * measured only at the end of a period.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/container.h"
#include "config/configuration.h"
#include "conn/connection-base.h"
#include "conn/connection-mux.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/piece.h"
#include "exchange/output.h"
#include "http/body.h"

#define LEAST_RATE 500 /* bytes per second, of bodies and responses */
#define POLL_MAX_MS 64u

/* Returns how many bytes the client has taken of the piece that is being sent. */
static int64_t taken(const struct connection *connection)
{
	return (int64_t)connection->send.message.skip - connection_unsent(connection);
}

/* Whether there was enough progress in ms; a response's first period only measures. */
static bool is_moving(struct connection *connection, int64_t progress, unsigned ms)
{
	bool moving = !connection->measured ||
		      progress - connection->progress >= (int64_t)ms * LEAST_RATE / 1000;

	connection->progress = progress;
	connection->measured = true;
	return moving;
}

static void connection_too_slow(struct timer *timer)
{
	struct connection *connection = container_of(timer, struct connection, timer);
	const struct config_limits *limits = connection_limits(connection);

	if ((connection->state == SENDING || connection->sending || connection->shutting) &&
	    (is_moving(connection, taken(connection), limits->send_ms) ||
	     !connection->transport->client_stalls(connection))) {
		connection_time(connection, limits->send_ms);
	} else if (!body_is_over(&connection->body) && connection->state <= RECEIVING &&
		   is_moving(connection, (int64_t)connection->body.length, limits->body_ms)) {
		connection_time(connection, limits->body_ms);
	} else {
		connection->mux->timed_out(connection);
	}
}

void connection_time(struct connection *connection, unsigned ms)
{
	loop_timer_start(connection->thread->loop, &connection->timer, ms, connection_too_slow);
}

unsigned connection_poll_ms(struct connection *connection)
{
	unsigned ms = 1;

	/* Powers of two: timers are cheap with few different durations. */
	while (ms * 8 <= connection->settle_ms && ms < POLL_MAX_MS)
		ms *= 2;
	connection->settle_ms += ms;
	return ms;
}

void connection_time_body(struct connection *connection)
{
	connection->progress = (int64_t)connection->body.length;
	connection->measured = true;
	connection_time(connection, connection_limits(connection)->body_ms);
}

uint64_t connection_moved(const struct transaction *transaction)
{
	const struct output *output = container_of(transaction, const struct output, transaction);
	const struct connection *connection = transaction->connection;
	uint64_t moved = connection->body.length + output->sent;

	if (connection->state == SENDING)
		moved += connection->send.message.skip - transaction->piece.length;
	return moved - (unsigned)connection_unsent(connection);
}
