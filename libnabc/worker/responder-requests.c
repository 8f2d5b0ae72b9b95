/* SPDX-License-Identifier: MIT */
/*
 * responder-requests.c - the worker's end of the queues of requests: takes records out,
 * keeps requests that come while the worker waits for another record, and claims those
 * that it accepts.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <nabc-worker.h>

#include "base/hash-table.h"
#include "os/queue.h"
#include "wire/channel.h"
#include "wire/pending.h"
#include "wire/wire.h"
#include "worker/responder.h"

/*
 * Claims the channel's next request, before the caller gets it: even if this
 * process dies, no other worker processes it as well.  Returns 1, 0 if the server
 * has withdrawn it, or -EPROTO.
 */
static int claim(struct nc_responder *responder, uint32_t channel)
{
	uint64_t counter = NC_CHANNEL_CLAIMS + responder->channel[channel].claimed++;

	if (nc_queue_claim(&responder->channel[channel].queues.requests, &counter, counter + 1))
		return 1;
	/* The server's claims are ahead of this end's; a value far off is a stray write. */
	return counter - NC_CHANNEL_CLAIMS - responder->channel[channel].claimed <= UINT32_MAX
		       ? 0
		       : -EPROTO;
}

/* Frees the kept requests of a channel that the server has withdrawn.  Returns 0 or -EPROTO. */
static int prune(struct nc_responder *responder, uint32_t channel)
{
	uint64_t counter = nc_queue_claims(&responder->channel[channel].queues.requests);

	while (counter != NC_CHANNEL_CLAIMS + responder->channel[channel].claimed) {
		struct nc_open_request *kept = nc_pending_oldest(&responder->pending, channel);

		/* The others are still in the queue. */
		if (!kept)
			return 0;
		nc_pending_remove(&responder->pending, kept);
		/* The server has claimed it, so a claim that succeeds here is a protocol error. */
		if (claim(responder, channel))
			return -EPROTO;
	}
	return 0;
}

static void describe(const struct nc_open_request *open, struct NC_request *request)
{
	*request = (struct NC_request){.tag = open->entry.key,
				       .channel = open->channel,
				       .flags = open->inbox ? NC_REQUEST_BODY : 0,
				       .variables = nc_pending_variables(open),
				       .variables_length = nc_pending_variables_length(open)};
}

/*
 * Takes records out of a channel's queue up to a request, which is then open.  Returns 1,
 * 0 if the queue has none, or -errno.
 */
static int next_request(struct nc_responder *responder, uint32_t channel,
			struct nc_open_request **open)
{
	struct nc_pending *pending = &responder->pending;

	for (;;) {
		struct nc_wire_request wire;
		int error = nc_pending_reserve(pending);
		const char *record;
		int64_t length;

		if (error)
			return error;
		record = pending->blank->record;
		length = nc_queue_pop(&responder->channel[channel].queues.requests,
				      pending->blank->record, NC_PENDING_RECORD_MAX);
		if (length <= 0)
			return (int)length;
		if (nc_wire_check_request(record, (size_t)length, &wire))
			return -EPROTO;
		if (wire.kind <= NC_WIRE_REQUEST_BODY) {
			*open = nc_pending_add(pending, channel, &wire, (size_t)length);
			return *open ? 1 : -EPROTO;
		}
		error = nc_pending_note(pending, channel, &wire, record + sizeof(wire));
		if (error)
			return error;
		nc_responder_noted(responder, channel, wire.tag);
	}
}

/* A record that violates the protocol may have been any: no call gets further than it. */
static int next_good(struct nc_responder *responder, uint32_t channel,
		     struct nc_open_request **open)
{
	int result = responder->broken ? -EPROTO : next_request(responder, channel, open);

	if (result == -EPROTO)
		responder->broken = true;
	return result;
}

int nc_responder_pump(struct nc_responder *responder, uint32_t channel)
{
	int result = prune(responder, channel);

	if (result)
		return result;
	for (;;) {
		struct nc_open_request *open;

		if (nc_pending_is_full(&responder->pending))
			return -ENOBUFS;
		result = next_good(responder, channel, &open);
		if (result <= 0)
			return result;
		nc_pending_keep(&responder->pending, open);
		nc_responder_kept(responder);
	}
}

/*
 * Claims an open request and describes it.  Returns 1, 0 if the server has withdrawn it,
 * which ends it, or -errno.
 */
static int accept_open(struct nc_responder *responder, struct nc_open_request *open,
		       struct NC_request *request)
{
	int result = claim(responder, open->channel);

	/* A request that has the tag of another one is not withdrawn, against the protocol. */
	if (result > 0 && open->replaced)
		result = -EPROTO;
	if (result <= 0) {
		nc_pending_remove(&responder->pending, open);
		return result;
	}
	nc_pending_accept(&responder->pending, open);
	describe(open, request);
	return 1;
}

int nc_responder_take(struct nc_responder *responder, uint32_t channel, struct NC_request *request)
{
	struct nc_open_request *open;
	int result;

	do {
		result = next_good(responder, channel, &open);
		if (result <= 0)
			return result;
		result = accept_open(responder, open, request);
	} while (result == 0);
	return result;
}

bool nc_responder_is_stuck(const struct nc_responder *responder, const struct nc_open_request *open)
{
	return open->gone && !responder->out &&
	       !nc_queue_has_room(&responder->channel[open->channel].queues.responses,
				  sizeof(struct nc_wire_response));
}

int nc_responder_take_kept(struct nc_responder *responder, struct NC_request *request)
{
	struct nc_open_request *open;

	while ((open = responder->pending.kept.first)) {
		bool gone = open->gone;
		int result;

		if (nc_responder_is_stuck(responder, open)) {
			describe(open, request);
			return -EAGAIN;
		}
		result = accept_open(responder, open, request);
		if (result < 0)
			return result;
		if (result == 0)
			continue;
		if (!gone)
			return 1;
		result = nc_responder_report(responder, request, NC_RESPONSE_ABORTED);
		if (result)
			return result;
		nc_responder_end(responder, open);
	}
	return 0;
}
