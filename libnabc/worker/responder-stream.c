/* SPDX-License-Identifier: MIT */
/*
 * responder-stream.c - the worker's end of responses and bodies in several pieces,
 * and of clients that are gone.
 *
 * The server reports how many pieces were sent.  A worker with a full window of
 * unsent pieces waits, so a client that reads slowly occupies memory for one window
 * only.  While a thread waits, another one may complete the request.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "wire/pending.h"
#include "wire/wire.h"
#include "worker/responder.h"

/* Waits for a record about a request.  Returns as nc_responder_wait(). */
static int await_news(struct nc_responder *responder, struct nc_wait *wait, enum nc_want want)
{
	wait->kind = NC_WAIT_NEWS;
	wait->want = want;
	return nc_responder_wait(responder, wait);
}

/* Pushes one piece if the window is open.  Returns as nc_responder_push(), or -ECANCELED. */
static int push_piece(struct nc_responder *responder, struct nc_open_request *open,
		      const struct NC_request *request, const struct nc_wire_response *wire,
		      const struct NC_range *ranges, const char *lines)
{
	int result;

	if (open->gone) {
		result = nc_responder_report(responder, request, NC_RESPONSE_ABORTED);
		if (result == -EAGAIN)
			return result;
		if (!result)
			nc_responder_end(responder, open);
		return -ECANCELED;
	}
	result = nc_responder_push(responder, request, wire, ranges, lines);
	if (result < 0)
		return result;
	if (wire->flags & NC_RESPONSE_MORE)
		open->unsent++;
	else
		nc_responder_end(responder, open);
	return result;
}

/* Sends one piece when the window is open and the queue has space.  Returns as push_piece(). */
static int send_piece(struct nc_responder *responder, const struct NC_request *request,
		      const struct nc_wire_response *wire, const struct NC_range *ranges,
		      const char *lines, bool nowait)
{
	size_t length = sizeof(*wire) + wire->ranges * sizeof(*ranges) + wire->headers_length;
	struct nc_wait wait = {.channel = request->channel, .tag = request->tag, .nowait = nowait};

	for (;;) {
		int error = nc_responder_pump(responder, request->channel);
		struct nc_open_request *open = nc_responder_find(responder, request);

		if (!open || !open->begun)
			return error ? error : -EINVAL;
		nc_responder_unwant(responder, open, NC_WANT_WINDOW | NC_WANT_ROOM_ANSWER);
		if (open->gone || open->unsent < NC_WORKER_WINDOW) {
			int result = push_piece(responder, open, request, wire, ranges, lines);

			if (result != -EAGAIN)
				return result;
			error = nc_responder_await_room(responder, &wait, NC_WANT_ROOM_ANSWER,
							length);
		} else if (!error) {
			error = await_news(responder, &wait, NC_WANT_WINDOW);
		}
		if (error)
			return error;
	}
}

static bool has_begun(struct nc_responder *responder, const struct NC_request *request)
{
	struct nc_open_request *open;
	bool begun;

	nc_responder_lock(responder);
	open = nc_responder_find(responder, request);
	begun = open && open->begun;
	pthread_mutex_unlock(&responder->lock);
	return begun;
}

int nc_responder_send(struct nc_responder *responder, const struct NC_request *request,
		      const struct NC_range *ranges, unsigned count, unsigned flags)
{
	bool nowait = flags & NC_RESPONSE_NOWAIT;
	struct nc_wire_response wire = {.tag = request->tag, .ranges = count};
	int result;

	flags &= ~NC_RESPONSE_NOWAIT;
	wire.flags = flags | NC_RESPONSE_PIECE;

	if (!has_begun(responder, request) || count > NC_WIRE_RANGES_MAX ||
	    !nc_wire_flags_good(flags, count))
		return -EINVAL;
	result = nc_responder_check_ranges(responder, ranges, count);
	if (!result && flags & NC_RESPONSE_MORE && !nc_wire_has_bytes(ranges, count))
		result = -EINVAL;
	if (result)
		return result;
	nc_responder_lock(responder);
	result = send_piece(responder, request, &wire, ranges, NULL, nowait);
	nc_responder_unlock(responder);
	if (result > 0)
		(void)sched_yield();
	return result < 0 ? result : 0;
}

int nc_responder_trailers(struct nc_responder *responder, const struct NC_request *request,
			  const char *lines, size_t length, unsigned flags)
{
	const struct nc_wire_response wire = {.tag = request->tag,
					      .flags = NC_RESPONSE_PIECE,
					      .headers_length = (uint32_t)length};
	int result;

	if (!has_begun(responder, request) || (length && !lines) || (flags & ~NC_RESPONSE_NOWAIT))
		return -EINVAL;
	if (length > NC_WIRE_BLOCK_MAX)
		return -EMSGSIZE;
	if (responder->version < NC_RESPONDER_HEADS)
		return -EOPNOTSUPP;
	nc_responder_lock(responder);
	result = send_piece(responder, request, &wire, NULL, lines, flags & NC_RESPONSE_NOWAIT);
	nc_responder_unlock(responder);
	return result < 0 ? result : 0;
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

/* Returns the worker's current piece to the server, so that another one may come. */
static int give_back(struct nc_responder *responder, const struct NC_request *request,
		     struct nc_inbox *inbox)
{
	int error = nc_responder_report(responder, request, NC_RESPONSE_TAKEN);

	inbox->reading = error;
	return error;
}

static int next_piece(struct nc_inbox *inbox, struct NC_range *piece)
{
	*piece = inbox->piece[inbox->first];
	inbox->first = (inbox->first + 1) % NC_WORKER_WINDOW;
	inbox->count--;
	inbox->reading = true;
	return 1;
}

/* Returns as nc_responder_body(). */
static int receive_piece(struct nc_responder *responder, const struct NC_request *request,
			 struct NC_range *piece, bool nowait)
{
	struct nc_wait wait = {.channel = request->channel, .tag = request->tag, .nowait = nowait};
	int error = 0;

	for (;;) {
		struct nc_open_request *open = nc_responder_find(responder, request);

		if (!open)
			return -EINVAL;
		if (!open->inbox)
			return whole_body(open, piece);
		nc_responder_unwant(responder, open, NC_WANT_PIECE | NC_WANT_ROOM_BODY);
		if (open->inbox->reading) {
			error = give_back(responder, request, open->inbox);
			if (error == -EAGAIN)
				error = nc_responder_await_room(responder, &wait, NC_WANT_ROOM_BODY,
								sizeof(struct nc_wire_response));
			if (error)
				return error;
			continue;
		}
		error = nc_responder_pump(responder, request->channel);
		if (open->gone)
			return -ECANCELED;
		if (open->inbox->count)
			return next_piece(open->inbox, piece);
		if (open->inbox->ended)
			return 0;
		if (!error)
			error = await_news(responder, &wait, NC_WANT_PIECE);
		if (error)
			return error;
	}
}

int nc_responder_body(struct nc_responder *responder, const struct NC_request *request,
		      struct NC_range *piece, unsigned flags)
{
	int result;

	nc_responder_lock(responder);
	result = receive_piece(responder, request, piece, flags & NC_BODY_NOWAIT);
	nc_responder_unlock(responder);
	return result;
}

int nc_responder_abort(struct nc_responder *responder, const struct NC_request *request)
{
	struct nc_wait wait = {.channel = request->channel, .tag = request->tag};
	struct nc_open_request *open;
	int error;

	nc_responder_lock(responder);
	do {
		open = nc_responder_find(responder, request);
		/* If it is over, that is what the caller wants. */
		error = open ? nc_responder_report(responder, request, NC_RESPONSE_ABORTED) : 0;
		if (open && !error)
			nc_responder_end(responder, open);
		if (error != -EAGAIN)
			break;
		error = nc_responder_await_room(responder, &wait, NC_WANT_ROOM_ANSWER,
						sizeof(struct nc_wire_response));
	} while (!error);
	nc_responder_unlock(responder);
	return error;
}

int nc_responder_gone(struct nc_responder *responder, const struct NC_request *request)
{
	struct nc_open_request *open;
	int error;

	if (request->channel >= responder->channels)
		return -EINVAL;
	nc_responder_lock(responder);
	error = nc_responder_pump(responder, request->channel);
	open = nc_responder_find(responder, request);
	/* If too many bytes are kept, answer with what is known. */
	if (!error || error == -ENOBUFS)
		error = !open || open->gone;
	nc_responder_unlock(responder);
	return error;
}
