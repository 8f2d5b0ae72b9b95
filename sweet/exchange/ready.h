/* SPDX-License-Identifier: MIT */
/*
 * ready.h - keeps the responses with small files that are sent often: the head and a copy of the
 * body in one piece of memory, which one send takes.
 *
 * The phases and the responder run for each request, and decide about the response; only then its
 * bytes are taken from here.  The copy stays right: the bytes of a unit never change, and no second
 * unit gets its id.  The date is renewed each second.
 *
 * A thread keeps a response after READY_AFTER + 1 responses with that unit, for clients of HTTP/1.1
 * without TLS only.
 */
#ifndef SWEET_READY_H
#define SWEET_READY_H

#include <time.h>

#include "event/loop.h"

struct output;
struct thread;

#define READY_MAX LOOP_BATCHED_MAX /* bytes of head and body */
#define READY_UNITS 128u	   /* of each thread; a power of 2 */
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
