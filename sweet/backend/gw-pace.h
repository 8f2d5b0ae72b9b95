/* SPDX-License-Identifier: MIT */
/*
 * gw-pace.h - programs and slow clients: how far an answer may be ahead of who
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
#ifndef SWEET_GW_PACE_H
#define SWEET_GW_PACE_H

#include "backend/gw-call.h"

/* That many bytes of the call's answer have come and not left, of memory that others share. */
void gw_pace_ahead(struct gw_call *call, struct body_budget *shared, uint64_t bytes);

/* Whether the program may go on, whatever the client does. */
bool gw_pace_has_room(const struct gw_call *call, const struct body_budget *shared);

/* The program waits for the client, from now on if it has not before. */
void gw_pace_wait(struct gw_call *call);

/* It goes on, or has ended. */
void gw_pace_go_on(struct gw_call *call);

/* The call is over. */
void gw_pace_end(struct gw_call *call);

#endif
