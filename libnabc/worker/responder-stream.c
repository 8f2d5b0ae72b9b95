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
#include <stdlib.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "wire/pending.h"
#include "wire/wire.h"
#include "worker/responder.h"

/* Waits until the window is open.  Returns 0, -ECANCELED or -errno. */
static int await_window(struct nc_responder *responder, const struct NC_request *request)
{
	for (;;) {
		int error = nc_responder_pump(responder, request->channel);
		struct nc_open_request *open = nc_responder_find(responder, request);

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
	struct nc_open_request *open = nc_responder_find(responder, request);
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
	open = nc_responder_find(responder, request);
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
	struct nc_inbox *inbox = nc_responder_find(responder, request)->inbox;
	int error;

	if (!inbox->reading)
		return 0;
	error = nc_responder_push(responder, request->channel, &wire, NULL, NULL);
	inbox->reading = error;
	return error;
}

static size_t number_in(const struct nc_open_request *open, const char *name)
{
	const char *text = nc_wire_variable(nc_pending_variables(open),
					    nc_pending_variables_length(open), name);

	return text ? strtoull(text, NULL, 10) : 0;
}

/* Returns the whole body of a request without pieces.  Returns 1, or 0 if it was returned. */
static int whole_body(struct nc_open_request *open, struct NC_range *piece)
{
	bool first = !open->taken;

	open->taken = true;
	*piece = (struct NC_range){.id = number_in(open, "NABC_BODY_ID"),
				   .length = number_in(open, "CONTENT_LENGTH")};
	return first && piece->id;
}

int nc_responder_body(struct nc_responder *responder, const struct NC_request *request,
		      struct NC_range *piece)
{
	struct nc_open_request *open = nc_responder_find(responder, request);
	int error;

	if (!open)
		return -EINVAL;
	if (!open->inbox)
		return whole_body(open, piece);
	error = give_back(responder, request);
	while (!error) {
		struct nc_inbox *inbox;

		error = nc_responder_pump(responder, request->channel);
		open = nc_responder_find(responder, request);
		inbox = open->inbox;
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
	struct nc_open_request *open = nc_responder_find(responder, request);
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
	open = nc_responder_find(responder, request);
	/* If too many bytes are kept, answer with what is known. */
	return error && error != -ENOBUFS ? error : !open || open->gone;
}
