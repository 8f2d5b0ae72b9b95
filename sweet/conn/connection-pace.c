/* SPDX-License-Identifier: MIT */
/*
 * connection-pace.c - the key rate: how fast a response is sent.  The kernel paces what leaves the
 * socket (SO_MAX_PACING_RATE), so that a response with a limit is a response to a slow client, and
 * what protects the server's memory from these applies.
 *
 * The streams of a session share a socket: as long as one of them has a limit, the lowest one counts
 * for all of them.  Otherwise a client could lift the limit with another request.
 */
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "config/configuration.h"
#include "conn/connection-base.h"
#include "core/transaction.h"
#include "exchange/output.h"
#include "log/log.h"

#define UNLIMITED UINT32_MAX /* of the kernel */

static void set_rate(struct connection *carrier, uint32_t rate)
{
	uint32_t value = rate ? rate : UNLIMITED;

	/* Other sockets than those of TCP ignore it; after the end of a session there is none. */
	if (carrier->fd >= 0 &&
	    setsockopt(carrier->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &value, sizeof(value)) < 0)
		log_info("%s: cannot limit the rate of the response: %s",
			 connection_remote(carrier), strerror(errno));
	carrier->pace = rate;
}

void connection_pace(struct connection *connection)
{
	const struct scope *scope = connection->output->transaction.scope;
	uint32_t rate = scope ? (uint32_t)MIN(scope->send_rate, UNLIMITED - 1) : 0;
	struct connection *carrier = connection->carrier;

	if (connection->paced) {
		connection->paced = false;
		carrier->paced_responses--;
	}
	/* When the last response with a limit has ended, the limit remains until the next one. */
	if (!carrier->paced_responses ? rate != carrier->pace : rate && rate < carrier->pace)
		set_rate(carrier, rate);
	if (rate) {
		connection->paced = true;
		carrier->paced_responses++;
	}
}

void connection_pace_end(struct connection *connection)
{
	if (connection->paced)
		connection->carrier->paced_responses--;
	connection->paced = false;
}
