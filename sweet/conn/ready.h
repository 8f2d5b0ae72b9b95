/* SPDX-License-Identifier: MIT */
/*
 * ready.h - small files that are sent often, as responses that are ready: head and body in one
 * piece of memory.
 *
 * Everything that decides about a response has run before, as for every other one: what is kept is
 * only the bytes that its status, its header lines and its unit amount to.  The bytes of a unit never
 * change for its id, and an id is never given to a second unit.  The date is renewed each second.
 * Only a response to a client of HTTP/1.1 without TLS can be ready, after READY_AFTER + 1 responses
 * of a thread with that unit.
 */
#ifndef SWEET_READY_H
#define SWEET_READY_H

#include <time.h>

#include "event/loop.h"

struct output;
struct thread;

#define READY_MAX LOOP_BATCHED_MAX /* bytes of head and body */
#define READY_PLACES 128u	   /* of each thread; a power of 2 */
#define READY_AFTER 2u		   /* responses of the unit; the next one is kept */

struct ready {
	size_t id;		     /* of the body's unit */
	const struct config *config; /* with which the head was made */
	unsigned config_number;
	time_t dated; /* the second of its date */
	size_t date_at;
	size_t lines_at, lines_length; /* the lines of the responder */
	size_t head_length, body_length;
	unsigned users; /* responses that are being sent */
	char bytes[];
};

/*
 * Returns the bytes of the response, for ready_put(); NULL: they are to be made.  The connection
 * continues after it.
 */
struct ready *ready_find(struct output *output);

/* The response was made by output_head(): keeps it, if it is one that ready_find() could return. */
void ready_keep(struct output *output);

/* It is sent. */
static inline void ready_put(struct ready *ready)
{
	ready->users--;
}

void ready_free(struct thread *thread);

#endif
