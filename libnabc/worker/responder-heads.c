/* SPDX-License-Identifier: MIT */
/*
 * responder-heads.c - what a worker says beside its responses: interim ones, and that it is to be
 * replaced.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include "os/queue.h"
#include "wire/pending.h"
#include "wire/wire.h"
#include "worker/responder.h"

/* --- interim responses ------------------------------------------------------------------------- */

/* Checks what needs no lock.  Returns 0 or -errno. */
static int check_interim(const struct nc_responder *responder, const struct NC_request *request,
			 const struct NC_response *response)
{
	if (request->channel >= responder->channels || !nc_wire_is_interim(response->status) ||
	    (response->flags & ~NC_RESPONSE_NOWAIT) || response->body.id || response->range_count ||
	    (response->headers_length && !response->headers))
		return -EINVAL;
	if (response->headers_length > NC_WIRE_BLOCK_MAX)
		return -EMSGSIZE;
	return responder->version < NC_RESPONDER_HEADS ? -EOPNOTSUPP : 0;
}

/* Pushes it when it fits, if the response has not begun.  Returns as nc_responder_push(). */
static int push_interim(struct nc_responder *responder, const struct NC_request *request,
			const struct NC_response *response)
{
	const struct nc_wire_response wire = {.tag = request->tag,
					      .status = response->status,
					      .flags = NC_RESPONSE_INTERIM,
					      .headers_length = (uint32_t)response->headers_length};
	struct nc_wait wait = {.channel = request->channel,
			       .tag = request->tag,
			       .nowait = response->flags & NC_RESPONSE_NOWAIT};

	for (;;) {
		struct nc_open_request *open = nc_responder_find(responder, request);
		int result;

		if (!open || open->begun)
			return -EINVAL;
		nc_responder_unwant(responder, open, NC_WANT_ROOM_ANSWER);
		result = nc_responder_push(responder, request, &wire, NULL, response->headers);
		if (result != -EAGAIN)
			return result;
		result = nc_responder_await_room(responder, &wait, NC_WANT_ROOM_ANSWER,
						 sizeof(wire) + wire.headers_length);
		if (result)
			return result;
	}
}

int nc_responder_interim(struct nc_responder *responder, const struct NC_request *request,
			 const struct NC_response *response)
{
	int result = check_interim(responder, request, response);

	if (result)
		return result;
	nc_responder_lock(responder);
	result = push_interim(responder, request, response);
	nc_responder_unlock(responder);
	if (result > 0)
		(void)sched_yield();
	return result < 0 ? result : 0;
}

/* --- the end of a worker ------------------------------------------------------------------------ */

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

	if (responder->version < NC_RESPONDER_HEADS)
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
