/* SPDX-License-Identifier: MIT */
/*
 * responder-heads.c - what a worker says beside its responses: that it is to be replaced.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <stdint.h>

#include "os/queue.h"
#include "worker/responder.h"

#define VERSION_REPLACE 9u

/* The server may wait for no response, and sleep without a look at the queue. */
static int ask(struct nc_responder *responder, uint32_t channel)
{
	const struct NC_request none = {.channel = channel};
	int error = nc_responder_report(responder, &none, NC_RESPONSE_REPLACE);

	if (!error && !responder->out)
		nc_doorbell_ring(responder->channel[channel].doorbell);
	return error;
}

int nc_responder_replace(struct nc_responder *responder)
{
	int error = -EAGAIN;

	if (responder->version < VERSION_REPLACE)
		return -EOPNOTSUPP;
	nc_responder_lock(responder);
	if (responder->replace)
		error = 0;
	/* Any thread of the server can pass it on. */
	for (unsigned i = 0; i < responder->channels && error == -EAGAIN; i++)
		error = ask(responder, i);
	responder->replace = !error;
	nc_responder_unlock(responder);
	return error;
}
