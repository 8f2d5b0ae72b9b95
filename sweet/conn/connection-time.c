/* SPDX-License-Identifier: MIT */
/*
 * connection-time.c - one timer for every state of a connection that waits
 * for the client; and the reset of one that is too slow.
 *
 * A head has its time as a whole.  A body, and an answer, must move by a
 * least rate in every period of theirs, so that nobody holds a connection
 * with a byte now and then.  Nothing is measured but when a period is over.
 */
#include <stddef.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "conn/connection-internal.h"

#define LEAST_RATE 500 /* bytes a second, of bodies and answers */

/* They are not on the client's account. */
int connection_unsent(const struct connection *connection)
{
	int bytes = 0;

	(void)ioctl(connection->fd, SIOCOUTQ, &bytes);
	return bytes;
}

/* Bytes that the client has taken of the piece that is being sent. */
static int64_t taken(const struct connection *connection)
{
	return (int64_t)connection->send.message.skip - connection_unsent(connection);
}

/* Whether there was progress enough in the last ms; an answer's first period only measures. */
static bool is_moving(struct connection *connection, int64_t progress, unsigned ms)
{
	bool moving = !connection->measured ||
		      progress - connection->progress >= (int64_t)ms * LEAST_RATE / 1000;

	connection->progress = progress;
	connection->measured = true;
	return moving;
}

static void too_slow(struct timer *timer)
{
	struct connection *connection =
		(struct connection *)((char *)timer - offsetof(struct connection, timer));
	const struct config_limits *limits = connection_limits(connection);

	if (connection->state == SENDING &&
	    is_moving(connection, taken(connection), limits->send_ms)) {
		connection_time(connection, limits->send_ms);
	} else if (!body_is_over(&connection->body) && connection->state <= RECEIVING &&
		   is_moving(connection, (int64_t)connection->body.length, limits->body_ms)) {
		connection_time(connection, limits->body_ms);
	} else {
		connection_timed_out(connection);
	}
}

void connection_time(struct connection *connection, unsigned ms)
{
	loop_timer_start(connection->thread->loop, &connection->timer, ms, too_slow);
}

void connection_time_body(struct connection *connection)
{
	connection->progress = (int64_t)connection->body.length;
	connection->measured = true;
	connection_time(connection, connection_limits(connection)->body_ms);
}

uint64_t connection_moved(const struct transaction *transaction)
{
	const struct output *output = (const struct output *)transaction;
	const struct connection *connection = transaction->connection;
	uint64_t moved = connection->body.length + output->sent;

	if (connection->state == SENDING)
		moved += connection->send.message.skip - transaction_piece(transaction);
	return moved - (unsigned)connection_unsent(connection);
}

/* --- a reset, which shows the client that it has not got all ----------------------- */

void connection_reset_at_close(const struct connection *connection)
{
	const struct linger none = {.l_onoff = 1};

	(void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

void connection_reset(struct connection *connection)
{
	connection_reset_at_close(connection);
	connection_close(connection);
}

void connection_reset_slow(struct connection *connection, const char *why)
{
	const struct output *output = connection->output;

	counter_add(&connection->thread->counters.slow_reset, 1);
	log_notice("%s: %s: too slow for its answer: resetting (%s; its socket holds %u bytes, "
		   "%llu left in a second)",
		   connection->addresses.remote,
		   output ? output->transaction.path : "after an answer", why, connection->unsent,
		   (unsigned long long)connection->rate);
	connection_reset(connection);
}
