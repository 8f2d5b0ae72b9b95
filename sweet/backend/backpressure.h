/* SPDX-License-Identifier: MIT */
/*
 * backpressure.h - limits how far a program's response may be ahead of its client, and how long a
 * client may keep a program waiting.
 *
 * The server queues what a program has sent, up to a limit of the pool, so that the program can
 * continue with other work.  Beyond the limit the program waits for the client, as it does for
 * pieces of a request body.  If that takes too long the server closes the client's connection.
 *
 * Everything belongs to the call's thread and uses the call's timer, which is not used otherwise
 * then; only the budgets are shared by all threads.
 */
#ifndef SWEET_BACKPRESSURE_H
#define SWEET_BACKPRESSURE_H

#include <stdbool.h>
#include <stdint.h>

struct backend_call;
struct budget;

/* Sets how many bytes of the response are queued, which count against a shared budget. */
void backpressure_ahead(struct backend_call *call, struct budget *shared, uint64_t bytes);

/* Whether the program may continue, even if the client does not read. */
bool backpressure_has_room(const struct backend_call *call, const struct budget *shared);

/* The program waits for the client: starts the timeout unless it runs already. */
void backpressure_wait(struct backend_call *call);

/* The program continues, or has ended: stops the timeout. */
void backpressure_go_on(struct backend_call *call);

void backpressure_end(struct backend_call *call);

#endif
