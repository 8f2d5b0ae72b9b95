/* SPDX-License-Identifier: MIT */
/*
 * client-calls.h - counts the calls of one client that it has abandoned, while programs still run
 * them: a client that resets its requests must not have more of them at work than one that waits.
 *
 * It exists as long as one of its users, which are all on one thread.
 */
#ifndef SWEET_CLIENT_CALLS_H
#define SWEET_CLIENT_CALLS_H

#include <stddef.h>

struct client_calls {
	unsigned users;
	unsigned abandoned;
};

/* Returns one with a user; NULL without memory. */
struct client_calls *client_calls_new(void);

/* Adds a user of calls, or of NULL; returns calls. */
static inline struct client_calls *client_calls_hold(struct client_calls *calls)
{
	if (calls)
		calls->users++;
	return calls;
}

void client_calls_release(struct client_calls *calls);

/* A call is abandoned, but its program continues: returns what client_calls_over() gets in the end. */
struct client_calls *client_calls_abandon(struct client_calls *calls);
void client_calls_over(struct client_calls *calls);

#endif
