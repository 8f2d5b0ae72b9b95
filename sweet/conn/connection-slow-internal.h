/* SPDX-License-Identifier: MIT */
/*
 * connection-slow-internal.h - shared by connection-slow.c, which selects responses that must leave
 * their units, connection-leave.c, which moves them, and connection-held.c, which counts.
 */
#ifndef SWEET_CONNECTION_SLOW_INTERNAL_H
#define SWEET_CONNECTION_SLOW_INTERNAL_H

#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Responses that leave their units, and connections that are reset, in one turn of a loop. */
#define CONNECTION_SHED_MAX 64u

struct connection;
struct server;
struct thread;
struct transaction;

/* Returns the bytes of the body in a message. */
static inline uint64_t connection_body_bytes(const struct NC_send *message)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < message->range_count; i++)
		bytes += message->ranges[i].length;
	return bytes;
}

/* --- connection-held.c --- */

/* The transaction's response waits with that unit; NULL: a response sent earlier does. */
void connection_held_add(struct thread *thread, size_t id, uint64_t bytes,
			 const struct transaction *transaction);
void connection_held_remove(struct thread *thread, size_t id);

/* Returns the bytes held in the cache by all threads; whether they exceed the limit. */
uint64_t connection_held_bytes(const struct server *server);
bool connection_cache_is_over(const struct server *server);

/* Whether the unit that the connection waits with is where too much is held. */
bool connection_held_is_over(const struct connection *connection);

/* Whether that may be true of any unit that responses wait with. */
bool connection_held_may_be_over(const struct thread *thread);

/*
 * Whether the unit is in the memory of a program, and several clients hold more of that than the
 * program can spare; a single client may be a fast one.
 */
bool connection_program_is_full(const struct connection *connection);

/* Holds the unit as long as the socket may refer to its pages. */
void connection_lend(struct connection *connection);

/* --- connection-leave.c --- */

/* Moves the response off its unit, soon; the connection may have ended afterwards. */
void connection_leave_unit(struct connection *connection);

/* The response need not leave its unit any more. */
void connection_leaving_end(struct connection *connection);

#endif
