/* SPDX-License-Identifier: MIT */
/*
 * backend-requests.c - what a server sends to a worker: requests and their bodies,
 * how much of a response was sent, and that a client is gone.
 *
 * Requests and bodies leave a part of the queue free for the other records, so that
 * these always reach a worker that waits.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "base/hash-table.h"
#include "os/identity.h"
#include "os/process.h"
#include "os/queue.h"
#include "wire/channel.h"
#include "wire/pending-tags.h"
#include "wire/send-window.h"
#include "wire/wire.h"
#include "worker/backend.h"

/* If no process is left to read, the queue remains full forever. */
static int full(const struct NC_backend *backend, int error)
{
	return error == -EAGAIN && nc_identity_ended(backend->process.pidfd) ? -EPIPE : error;
}

static int push(struct NC_backend *backend, unsigned channel, const struct nc_wire_request *record,
		const void *what)
{
	return full(backend, nc_queue_push_leaving(&backend->channel[channel].queues.requests,
						   record, sizeof(*record), what, record->length,
						   NC_CHANNEL_RESERVED));
}

int nc_backend_send(struct NC_backend *backend, unsigned channel, uint64_t tag,
		    const char *variables, size_t length, unsigned flags)
{
	struct nc_send_windows *windows = &backend->channel[channel].windows;
	struct nc_pending_tags *tags = &backend->channel[channel].tags;
	uint64_t number = backend->channel[channel].submitted + 1;
	bool body = flags & NC_REQUEST_BODY;
	struct nc_wire_request request = {.tag = tag,
					  .length = (uint32_t)length,
					  .kind = body ? NC_WIRE_REQUEST_BODY : NC_WIRE_REQUEST};
	int error;

	if (length > NC_WIRE_BLOCK_MAX)
		return -EMSGSIZE;
	if ((length && variables[length - 1] != '\0') || (flags & ~NC_REQUEST_BODY))
		return -EINVAL;
	error = nc_pending_tags_add(tags, tag, number);
	if (error)
		return error;
	error = body ? nc_send_windows_open(windows, tag, number) : 0;
	if (!error) {
		error = push(backend, channel, &request, variables);
		if (error && body)
			nc_send_windows_close(windows, tag);
	}
	if (error)
		nc_pending_tags_remove(tags, tag);
	else
		backend->channel[channel].submitted = number;
	return error;
}

/* Returns how many of the channel's requests are unclaimed, by the claim counter, or -EPROTO. */
static int unclaimed(const struct nc_backend_channel *channel, uint64_t counter)
{
	uint64_t claimed = counter - NC_CHANNEL_CLAIMS, left = channel->submitted - claimed;

	/* A counter below the first value gives a large number here. */
	if (claimed > channel->submitted || left > INT_MAX)
		return -EPROTO;
	return (int)left;
}

/*
 * A live worker may claim the next request at any time.  The counter of a dead one
 * is final; it may be false, but only for requests that this worker was given.
 */
int nc_backend_pending(const struct NC_backend *backend, unsigned number)
{
	const struct nc_backend_channel *channel = &backend->channel[number];

	if (!nc_identity_ended(backend->process.pidfd))
		return -EBUSY;
	return unclaimed(channel, nc_queue_claims(&channel->queues.requests));
}

/*
 * Whichever end succeeds with compare-and-swap, worker or server, gets the request.
 * Only one attempt: a worker that changes the counter repeatedly would block the
 * caller, and a worker that claims requests is not stuck.
 */
int nc_backend_withdraw(struct NC_backend *backend, unsigned number, unsigned most, unsigned *left)
{
	struct nc_backend_channel *channel = &backend->channel[number];
	uint64_t counter = nc_queue_claims(&channel->queues.requests), first;
	int waiting = unclaimed(channel, counter);
	unsigned count;

	if (waiting < 0)
		return waiting;
	count = most < (unsigned)waiting ? most : (unsigned)waiting;
	if (count && !nc_queue_claim(&channel->queues.requests, &counter, counter + count)) {
		count = 0;
		waiting = unclaimed(channel, counter);
		if (waiting < 0)
			return waiting;
	}
	*left = (unsigned)waiting - count;
	first = channel->submitted - (unsigned)waiting + 1;
	if (count && nc_send_windows_any(&channel->windows))
		nc_send_windows_withdraw(&channel->windows, first, first + count - 1);
	if (count)
		nc_pending_tags_withdraw(&channel->tags, first, first + count - 1);
	return (int)count;
}

int nc_backend_give(struct NC_backend *backend, unsigned channel, uint64_t tag,
		    const struct NC_range *piece, unsigned flags)
{
	struct nc_send_window *window =
		nc_send_windows_find(&backend->channel[channel].windows, tag);
	bool last = flags & NC_BODY_LAST;
	struct nc_wire_request record = {.tag = tag,
					 .length = piece ? sizeof(*piece) : 0,
					 .kind = last ? NC_WIRE_LAST : NC_WIRE_PIECE};
	int error;

	if ((flags & ~NC_BODY_LAST) || (!piece && !last) || (piece && piece->id == 0))
		return -EINVAL;
	if (!window || !window->body || window->broken)
		return -ENOENT;
	if (window->ended)
		return -EINVAL;
	if (piece && window->pieces == NC_WORKER_WINDOW)
		return -EAGAIN;
	error = push(backend, channel, &record, piece);
	if (error)
		return error;
	window->pieces += !!piece;
	window->ended = last;
	return 0;
}

static int say(struct NC_backend *backend, unsigned channel, uint64_t tag, enum nc_wire_kind kind,
	       uint32_t count)
{
	struct nc_wire_request record = {.tag = tag, .kind = kind, .count = count};

	return nc_queue_push(&backend->channel[channel].queues.requests, &record, sizeof(record),
			     NULL, 0);
}

int nc_backend_cancel(struct NC_backend *backend, unsigned channel, uint64_t tag)
{
	return full(backend, say(backend, channel, tag, NC_WIRE_CANCEL, 0));
}

/* A full queue is not an error: the credit is sent again when the channel is next woken. */
static int send_credit(struct NC_backend *backend, unsigned number, struct nc_send_window *window)
{
	int error = say(backend, number, window->entry.key, NC_WIRE_SENT, window->credit);

	if (!error)
		window->credit = 0;
	else
		backend->channel[number].notify_pending = true;
	return error == -EAGAIN ? 0 : error;
}

int nc_backend_sent(struct NC_backend *backend, unsigned channel, uint64_t tag)
{
	struct nc_send_window *window =
		nc_send_windows_sent(&backend->channel[channel].windows, tag);

	return window ? send_credit(backend, channel, window) : 0;
}

static void send_credits(struct NC_backend *backend, unsigned number)
{
	struct nc_backend_channel *channel = &backend->channel[number];
	struct nc_send_window *window = nc_send_windows_next(&channel->windows, NULL);

	channel->notify_pending = false;
	for (; window && !channel->notify_pending;
	     window = nc_send_windows_next(&channel->windows, window))
		if (window->credit)
			(void)send_credit(backend, number, window);
}

void nc_backend_wake(struct NC_backend *backend, unsigned channel)
{
	if (backend->channel[channel].notify_pending)
		send_credits(backend, channel);
	if (nc_queue_must_ring(&backend->channel[channel].queues.requests))
		nc_doorbell_ring(backend->ring);
}
