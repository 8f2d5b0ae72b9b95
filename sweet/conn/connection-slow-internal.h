/* SPDX-License-Identifier: MIT */
/*
 * connection-slow-internal.h - what connection-slow.c, which finds who is to be
 * taken off its unit, connection-leave.c, which does it, and connection-held.c, which
 * counts, share.
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

/* --- connection-held.c --- */

/* The answer of transaction waits with that unit; NULL: what was sent before does. */
void connection_held_add(struct thread *thread, size_t id, uint64_t bytes,
			 const struct transaction *transaction);
void connection_held_remove(struct thread *thread, size_t id);

/* In the cache, of all threads; whether that is too much. */
uint64_t connection_held_bytes(const struct server *server);
bool connection_cache_is_over(const struct server *server);

/* Whether the unit that the connection waits on lies where too much is held. */
bool connection_held_is_over(const struct connection *connection);

/* The same of any unit that is waited on: it may be. */
bool connection_held_may_be_over(const struct thread *thread);

/*
 * That unit lies in the memory of a program, of which several clients have more than
 * it can wait for; one alone may be a fast one.
 */
bool connection_program_is_full(const struct connection *connection);

/* Holds the unit as long as the socket may refer to pages of it. */
void connection_lend(struct connection *connection);

/* --- connection-leave.c --- */

/* Its answer goes on from elsewhere, soon; the connection may be gone behind it. */
void connection_leave_unit(struct connection *connection);

/* The answer needs no more to be taken off its unit. */
void connection_leaving_end(struct connection *connection);

#endif
