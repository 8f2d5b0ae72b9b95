/* SPDX-License-Identifier: MIT */
/*
 * connection-close.c - the ends of a connection: at once, by a reset, or after the client's end; and
 * what the client's end means.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/container.h"
#include "base/counter.h"
#include "config/configuration.h"
#include "conn/connection-base.h"
#include "conn/connection-mux.h"
#include "core/server.h"
#include "core/site.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "exchange/output.h"
#include "log/log.h"
#include "pressure/slow.h"
#include "pressure/unsent.h"

#define LINGER_MS 5000
#define LINGER_LAST_MS 1000 /* for connections that end with the server */

/* Ends the session of a socket, and TLS.  Returns false if the connection lingers. */
static bool end_socket(struct carrier *carrier)
{
	struct connection *connection = &carrier->connection;
	bool waits = connection->state == READING;

	/* Otherwise the message in flight refers to memory of the streams. */
	if (carrier->session && !connection->sending) {
		waits = true;
		connection->mux->close(connection);
	}
	if (carrier->tls && waits) {
		connection_shut(connection);
		if (connection->shutting) {
			connection_linger(connection);
			return false;
		}
	}
	connection->transport->close(connection);
	if (carrier->session)
		connection->mux->close(connection);
	return true;
}

void connection_close(struct connection *connection)
{
	struct output *output = connection->output;

	if (connection_is_stream(connection))
		connection->transport->close(connection);
	else if (!end_socket(connection->carrier))
		return;
	/* Log it now, while the client's address exists. */
	if (output)
		output_log(output);
	if (output && connection->state == WORKING) {
		struct transaction *transaction = &output->transaction;

		transaction->connection = NULL; /* freed when the responder is done */
		transaction_gone(transaction);
	} else if (output && !leave_keeps_output(&connection->slow)) {
		output_close(output);
	}
	slow_keeps_up(&connection->slow);
	if (!connection_is_stream(connection))
		unsent_end(&connection->carrier->unsent);
	connection_free(connection);
}

/* --- a reset, which shows the client that it has not got all ----------------------- */

void connection_reset(struct connection *connection)
{
	connection_reset_at_close(connection);
	connection_close(connection);
}

/* For that reason; counts and logs it. */
static void reset_slow(struct connection *connection, const char *why)
{
	const struct output *output = connection->output;

	counter_add(&connection->thread->counters->slow_reset, 1);
	log_notice("%s: %s: reads too slowly: resetting (%s; its socket holds %u bytes, "
		   "%llu were acknowledged in a second)",
		   connection_remote(connection),
		   output ? output->transaction.path : "after a response", why,
		   connection->carrier->unsent.bytes,
		   (unsigned long long)connection->carrier->unsent.rate);
	connection_reset(connection);
}

static void connection_slow_reset(struct slow *slow, const char *why)
{
	reset_slow(container_of(slow, struct connection, slow), why);
}

void connection_unsent_reset(struct unsent *unsent, const char *why)
{
	reset_slow(&container_of(unsent, struct carrier, unsent)->connection, why);
}

static bool connection_slow_stop(struct slow *slow)
{
	struct connection *connection = container_of(slow, struct connection, slow);

	if (!connection->transport->cancel(connection))
		return false;
	connection->state = WORKING;
	return true;
}

const struct slow_owner connection_slow = {
	.stop = connection_slow_stop,
	.reset = connection_slow_reset,
};

/* --- the end of a connection that has sent everything ---------------------------------- */

void connection_linger(struct connection *connection)
{
	bool may = !connection_is_stream(connection) && !connection->ended &&
		   connection->thread->config_ref->config->sockets.linger;

	if (!may && !connection->shutting) {
		connection_close(connection);
		return;
	}
	connection->state = LINGERING;
	connection_count_as(connection, CONNECTION_LINGERING);
	free(connection->input);
	connection->input = NULL;
	connection->input_length = connection->input_room = 0;
	if (connection->paused)
		connection->transport->resume(connection);
	connection->paused = false;
	connection->measured = false;
	connection_time(connection, connection->shutting ? connection_limits(connection)->send_ms
				    : connection->thread->draining ? LINGER_LAST_MS
								   : LINGER_MS);
}

void connection_ended(struct connection *connection)
{
	connection->ended = true;
	if (connection_has_tunnel(connection))
		transaction_tunnel(&connection->output->transaction, NULL, 0);
	/*
	 * A client may close its end and still read the response (RFC 9112, section 9.6); but with
	 * HTTP/2 it could not open a window any more.
	 */
	if (connection->state != WORKING && connection->state != SENDING && !connection->shutting)
		connection_close(connection);
	else if (connection->state == WORKING)
		transaction_half_closed(&connection->output->transaction);
}
