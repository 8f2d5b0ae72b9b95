/* SPDX-License-Identifier: MIT */
/*
 * client-calls.c - see client-calls.h.
 */
#include <stdlib.h>

#include "core/client-calls.h"

struct client_calls *client_calls_new(void)
{
	struct client_calls *calls = calloc(1, sizeof(*calls));

	return client_calls_hold(calls);
}

void client_calls_release(struct client_calls *calls)
{
	if (calls && --calls->users == 0)
		free(calls);
}

struct client_calls *client_calls_abandon(struct client_calls *calls)
{
	if (calls)
		calls->abandoned++;
	return client_calls_hold(calls);
}

void client_calls_over(struct client_calls *calls)
{
	if (calls)
		calls->abandoned--;
	client_calls_release(calls);
}
