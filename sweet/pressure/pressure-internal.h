/* SPDX-License-Identifier: MIT */
/*
 * pressure-internal.h - private to this folder.  Each source calls those that are listed above it.
 *
 *   pace.c    limits the rate of a response
 *   held.c    counts the units that responses hold while they wait
 *   lent.c    holds the units that sockets refer to
 *   unsent.c  limits how much of a response the socket holds
 *   leave.c   moves a response off its unit
 *   slow.c    selects the responses that must leave their units
 */
#ifndef SWEET_PRESSURE_INTERNAL_H
#define SWEET_PRESSURE_INTERNAL_H

#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Responses that leave their units, and clients that are reset, in one turn of a loop. */
#define PRESSURE_SHED_MAX 64u
#define PRESSURE_RATE_MS 1000u /* minimum period to measure a rate */

struct server;
struct slow;
struct thread;
struct transaction;
struct unsent;

/* Returns the bytes of the body in a message. */
static inline uint64_t pressure_body_bytes(const struct NC_send *message)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < message->range_count; i++)
		bytes += message->ranges[i].length;
	return bytes;
}

/* --- held.c --- */

/* The transaction's response waits with that unit; NULL: a response sent earlier does. */
void held_add(struct thread *thread, size_t id, uint64_t bytes,
	      const struct transaction *transaction);
void held_remove(struct thread *thread, size_t id);

/* Returns the bytes held in the cache by all threads; whether they exceed the limit. */
uint64_t held_bytes(const struct server *server);
bool held_cache_is_over(const struct server *server);

/* Whether that unit, which a response waits with, is where too much is held. */
bool held_is_over(const struct thread *thread, size_t id);

/* Whether that may be true of any unit that responses wait with. */
bool held_may_be_over(const struct thread *thread);

/*
 * Whether the unit is in the memory of a program, and several clients hold more of that than the
 * program can spare; a single client may be a fast one.
 */
bool held_program_is_full(const struct thread *thread, size_t id);

/* Call it when no response waits. */
void held_close(struct thread *thread);

/* --- lent.c --- */

/* Holds the unit of the message as long as the socket may refer to its pages. */
void lent_begin(struct unsent *unsent, const struct NC_send *message);

/* The socket no longer refers to the lent unit, or is closed. */
void lent_end(struct unsent *unsent);

/* The client has acknowledged more: ends that if it was enough. */
void lent_acknowledged(struct unsent *unsent);

/* --- unsent.c --- */

void unsent_open(struct thread *thread);

/* Counts what the socket holds now, and measures its rate. */
void unsent_count(struct unsent *unsent);

/* Whether the socket needs more than a second to empty at its rate. */
bool unsent_is_slow(const struct unsent *unsent);

/* --- leave.c --- */

/* Moves the response off its unit, soon; it may have ended afterwards. */
void leave_unit(struct slow *slow);

/* The response need not leave its unit any more. */
void leave_end(struct slow *slow);

/* --- slow.c --- */

void slow_open(struct thread *thread);

#endif
