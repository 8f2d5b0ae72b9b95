/* SPDX-License-Identifier: MIT */
/*
 * connection-reset.c - a connection that ends with a reset, so that the client sees
 * that it has not got all.
 */
#include <sys/socket.h>

#include "conn/connection-internal.h"

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
	log_notice("%s: %s: reads too slowly: resetting (%s; its socket holds %u bytes, "
		   "%llu were acknowledged in a second)",
		   connection->addresses.remote,
		   output ? output->transaction.path : "after a response", why, connection->unsent,
		   (unsigned long long)connection->rate);
	connection_reset(connection);
}
