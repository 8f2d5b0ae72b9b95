/* SPDX-License-Identifier: MIT */
/*
 * connection-slow-internal.h - what connection-slow.c, which finds who is to be
 * taken off its unit, and connection-leave.c, which does it, share.
 */
#ifndef SWEET_CONNECTION_SLOW_INTERNAL_H
#define SWEET_CONNECTION_SLOW_INTERNAL_H

#include "conn/connection-internal.h"

/* Bytes of the body in a message. */
static inline uint64_t connection_body_bytes(const struct NC_send *message)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < message->range_count; i++)
		bytes += message->ranges[i].length;
	return bytes;
}

/* --- connection-slow.c --- */

/* Holds the unit as long as the socket may refer to pages of it. */
void connection_lend(struct connection *connection);

/* --- connection-leave.c --- */

/* Its answer goes on from elsewhere, soon; the connection may be gone behind it. */
void connection_leave_unit(struct connection *connection);

/* The answer needs no more to be taken off its unit. */
void connection_leaving_end(struct connection *connection);

#endif
