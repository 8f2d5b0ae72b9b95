/* SPDX-License-Identifier: MIT */
/*
 * backpressure.h - programs and slow clients: how far an answer may be ahead of who
 * reads it, and how long a client may keep a program waiting.
 *
 * What a program has given up to a bound of its pool waits in the server, so
 * that the program can go on with something else.  Past that it waits for the
 * client, as it does for pieces of a request's body; a client that takes too
 * long over that is given up.
 *
 * A call's thread, with a timer of the call's that nobody else uses then; only
 * the budgets are of all threads.
 */
#ifndef SWEET_BACKPRESSURE_H
#define SWEET_BACKPRESSURE_H

#include "backend/backend-call.h"

/* That many bytes of the call's answer have come and not left, of memory that others share. */
void backpressure_ahead(struct backend_call *call, struct body_budget *shared, uint64_t bytes);

/* Whether the program may go on, whatever the client does. */
bool backpressure_has_room(const struct backend_call *call, const struct body_budget *shared);

/* The program waits for the client, from now on if it has not before. */
void backpressure_wait(struct backend_call *call);

/* It goes on, or has ended. */
void backpressure_go_on(struct backend_call *call);

/* The call is over. */
void backpressure_end(struct backend_call *call);

#endif
