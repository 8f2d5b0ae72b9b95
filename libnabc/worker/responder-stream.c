/* SPDX-License-Identifier: MIT */
/*
 * responder-stream.c - the worker's end of responses and bodies in several pieces,
 * and of clients that are gone.  One thread at a time.
 *
 * The server reports how many pieces were sent.  A worker with a full window of
 * unsent pieces waits, so a client that reads slowly occupies memory for one window
 * only.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "wire/pending.h"
#include "wire/wire.h"
#include "worker/responder.h"

static struct nc_open_request *find(struct nc_responder *responder,
				    const struct NC_request *request)
{
	return nc_pending_find(&responder->pending, request->channel, request->tag);
}

/* Waits until the window is open.  Returns 0, -ECANCELED or -errno. */
static int await_window(struct nc_responder *responder, const struct NC_request *request)
{
	for (;;) {
		int error = nc_responder_pump(responder, request->channel);
		struct nc_open_request *open = find(responder, request);

		/* The server withdrew another request to which it gave the same tag. */
		if (!open)
			return error ? error : -EPROTO;
		if (open->gone)
			return -ECANCELED;
		if (open->unsent < NC_WORKER_WINDOW)
			return 0;
		if (!error)
			error = nc_responder_await(responder, request->channel);
		if (error)
			return error;
	}
}

int nc_responder_send(struct nc_responder *responder, const struct NC_request *request,
		      const struct NC_range *ranges, unsigned count, unsigned flags)
{
	struct nc_open_request *open = find(responder, request);
	bool more = flags & NC_RESPONSE_MORE;
	struct nc_wire_response wire = {
		.tag = request->tag, .flags = flags | NC_RESPONSE_PIECE, .ranges = count};
	int error;

	if (!open || !open->begun || count > NC_WIRE_RANGES_MAX ||
	    !nc_wire_flags_good(flags, count))
		return -EINVAL;
	error = nc_responder_check_ranges(responder, ranges, count);
	if (!error && more && !nc_wire_has_bytes(ranges, count))
		error = -EINVAL;
	if (!error)
		error = await_window(responder, request);
	if (error == -ECANCELED)
		(void)nc_responder_abort(responder, request);
	if (!error)
		error = nc_responder_push(responder, request->channel, &wire, ranges, NULL);
	if (error)
		return error;
	open = find(responder, request);
	if (more)
		open->unsent++;
	else
		nc_pending_remove(&responder->pending, open);
	return 0;
}

/* Returns the worker's current piece to the server, so that another one may come. */
static int give_back(struct nc_responder *responder, const struct NC_request *request)
{
	struct nc_wire_response wire = {.tag = request->tag, .flags = NC_RESPONSE_TAKEN};
	struct nc_inbox *inbox = find(responder, request)->inbox;
	int error;

	if (!inbox->reading)
		return 0;
	error = nc_responder_push(responder, request->channel, &wire, NULL, NULL);
	inbox->reading = error;
	return error;
}

int nc_responder_body(struct nc_responder *responder, const struct NC_request *request,
		      const struct NC_range *whole, struct NC_range *piece)
{
	struct nc_open_request *open = find(responder, request);
	int error;

	if (!open)
		return -EINVAL;
	if (!open->inbox) {
		bool first = !open->taken;

		open->taken = true;
		*piece = *whole;
		return first && whole->id;
	}
	error = give_back(responder, request);
	while (!error) {
		struct nc_inbox *inbox;

		error = nc_responder_pump(responder, request->channel);
		open = find(responder, request);
		inbox = open ? open->inbox : NULL;
		/*
		 * The server gave the tag to another request, which has no body or
		 * was withdrawn.
		 */
		if (!inbox)
			return -EPROTO;
		if (open->gone)
			return -ECANCELED;
		if (inbox->count) {
			*piece = inbox->piece[inbox->first];
			inbox->first = (inbox->first + 1) % NC_WORKER_WINDOW;
			inbox->count--;
			inbox->reading = true;
			return 1;
		}
		if (inbox->ended)
			return 0;
		if (!error)
			error = nc_responder_await(responder, request->channel);
	}
	return error;
}

int nc_responder_abort(struct nc_responder *responder, const struct NC_request *request)
{
	struct nc_wire_response wire = {.tag = request->tag, .flags = NC_RESPONSE_ABORTED};
	struct nc_open_request *open = find(responder, request);
	int error;

	/* The request is already over. */
	if (!open)
		return 0;
	error = nc_responder_push(responder, request->channel, &wire, NULL, NULL);
	if (!error)
		nc_pending_remove(&responder->pending, open);
	return error;
}

int nc_responder_gone(struct nc_responder *responder, const struct NC_request *request)
{
	struct nc_open_request *open;
	int error;

	if (request->channel >= responder->channels)
		return -EINVAL;
	error = nc_responder_pump(responder, request->channel);
	open = find(responder, request);
	/* If too many bytes are kept, answer with what is known. */
	return error && error != -ENOBUFS ? error : !open || open->gone;
}
