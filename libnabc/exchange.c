/* SPDX-License-Identifier: MIT */
/*
 * exchange.c - starts a worker and talks to it through shared queues.
 *
 * What the worker wrote is copied out of the queue, checked, and only then
 * looked at; the unit it names must be its own and is held before the caller
 * hears of it, so nothing that the worker does later can make a send fail.
 * A lane belongs to one thread; start and end to one at a time.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach.h"
#include "exchange.h"
#include "id.h"
#include "peer.h"

#define RECORD_MAX (sizeof(struct nc_wire_response) + NC_WIRE_BLOCK_MAX)

static_assert(NC_WIRE_BLOCK_MAX == NC_BLOCK_MAX, "the header promises it");
static_assert(NC_WIRE_LANES_MAX == NC_LANES_MAX, "the header promises it");

static int open_lanes(struct nc_exchange *exchange, int *extra)
{
	size_t footprint = nc_lanes_footprint(exchange->lanes, NC_LANE_QUEUE);
	int error = nc_segment_create(&exchange->queues,
				      (footprint + NC_PAGE - 1) / NC_PAGE * NC_PAGE, false, true);

	if (error)
		return error;
	extra[0] = exchange->queues.fd;
	error = nc_doorbell_open_pipe(&exchange->watch, &exchange->ring);
	if (error)
		return error;
	extra[1] = exchange->watch;
	for (unsigned i = 0; i < exchange->lanes; i++) {
		struct nc_exchange_lane *lane = &exchange->lane[i];

		nc_lane_init(&lane->queues, exchange->queues.base, i, NC_LANE_QUEUE);
		lane->record = malloc(RECORD_MAX);
		if (!lane->record)
			return -ENOMEM;
		lane->doorbell = nc_doorbell_open();
		if (lane->doorbell < 0)
			return lane->doorbell;
		extra[2 + i] = lane->doorbell;
	}
	return 0;
}

int nc_exchange_open(struct nc_attach *attach, const struct NC_exchange_options *options,
		     struct nc_exchange **result)
{
	int pair[2] = {-1, -1}, extra[NC_PEER_FDS_MAX];
	struct nc_cache *cache = attach->cache;
	struct nc_exchange *exchange;
	int error;

	if (!cache->owner)
		return -EPERM;
	if (!options || !options->argv || !options->argv[0] || options->lanes == 0 ||
	    options->lanes > NC_LANES_MAX)
		return -EINVAL;
	exchange = calloc(1, sizeof(*exchange) + options->lanes * sizeof(exchange->lane[0]));
	if (!exchange)
		return -ENOMEM;
	exchange->attach = attach;
	exchange->cache = cache;
	exchange->lanes = options->lanes;
	exchange->process = (struct nc_process){.pid = -1, .pidfd = -1};
	exchange->watch = exchange->ring = -1;
	exchange->queues.fd = -1;
	for (unsigned i = 0; i < exchange->lanes; i++)
		exchange->lane[i].doorbell = -1;
	error = open_lanes(exchange, extra);
	if (!error)
		error = nc_peer_pair(pair);
	if (!error) {
		struct nc_attach_offer offer = {.memory = options->memory ? options->memory
									  : cache->member_size,
						.lanes = exchange->lanes,
						.queue_size = NC_LANE_QUEUE,
						.extra = extra};

		error = nc_attach_offer(attach, pair[0], &offer, &exchange->guest);
		if (error) {
			close(pair[0]);
			exchange->guest = NULL;
		} else {
			exchange->foreign = nc_guest_foreign(exchange->guest);
		}
	}
	if (!error)
		error = nc_process_start(&exchange->process, pair[1], options->argv,
					 options->environment);
	if (!error)
		error = nc_attach_expect(attach, exchange->guest, exchange->process.pid,
					 exchange->process.pidfd);
	if (pair[1] >= 0)
		close(pair[1]);
	if (error) {
		nc_exchange_end(exchange);
		return error;
	}
	*result = exchange;
	return 0;
}

static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

void nc_exchange_end(struct nc_exchange *exchange)
{
	/* An idle worker sees the end of its doorbell; a busy one is not waited for. */
	close_if(exchange->ring);
	nc_process_end(&exchange->process);
	if (exchange->guest)
		nc_attach_dismiss(exchange->attach, exchange->guest);
	close_if(exchange->watch);
	for (unsigned i = 0; i < exchange->lanes; i++) {
		close_if(exchange->lane[i].doorbell);
		free(exchange->lane[i].record);
	}
	nc_segment_close(&exchange->queues);
	free(exchange);
}

int nc_exchange_send(struct nc_exchange *exchange, unsigned lane, uint64_t tag,
		     const char *variables, size_t length)
{
	struct nc_wire_request request = {.tag = tag, .length = (uint32_t)length};
	int error;

	if (length > NC_WIRE_BLOCK_MAX)
		return -EMSGSIZE;
	if (length && variables[length - 1] != '\0')
		return -EINVAL;
	error = nc_queue_push(&exchange->lane[lane].queues.requests, &request, sizeof(request),
			      variables, length);
	/* Full for ever if nobody is left to read. */
	return error == -EAGAIN && nc_identity_ended(exchange->process.pidfd) ? -EPIPE : error;
}

void nc_exchange_wake(struct nc_exchange *exchange, unsigned lane)
{
	if (nc_queue_must_ring(&exchange->lane[lane].queues.requests))
		nc_doorbell_ring(exchange->ring);
}

/* In its own segment, or sealed by it. */
static bool is_workers(struct nc_exchange *exchange, size_t id)
{
	bool made;

	if (nc_id_member(id) == exchange->foreign->number)
		return true;
	(void)nc_grants_known(&exchange->cache->grants, id, nc_guest_borrower(exchange->guest),
			      &made);
	return made;
}

/* Holds the unit a response names if it is the worker's and the range is inside. */
static bool accept_body(struct nc_exchange *exchange, const struct nc_wire_response *wire)
{
	struct nc_view view;
	bool inside;

	if (!is_workers(exchange, wire->id) ||
	    nc_cache_hold(exchange->cache, wire->id, false, &view))
		return false;
	inside = wire->offset <= view.unit->layout.size &&
		 wire->length <= view.unit->layout.size - wire->offset;
	/* Once sent it is the worker's again: the hold is all that keeps it. */
	if (!inside || !(wire->flags & NC_RESPONSE_KEEP))
		(void)nc_cache_destroy(exchange->cache, wire->id);
	if (!inside)
		(void)nc_cache_release(exchange->cache, wire->id);
	return inside;
}

int nc_exchange_take(struct nc_exchange *exchange, unsigned number, uint64_t *tag,
		     struct NC_response *response)
{
	struct nc_exchange_lane *lane = &exchange->lane[number];
	int64_t length = nc_queue_pop(&lane->queues.responses, lane->record, RECORD_MAX);
	struct nc_wire_response wire;

	if (length <= 0)
		return (int)length;
	if (nc_wire_check_response(lane->record, (size_t)length, &wire))
		return -EPROTO;
	if (nc_queue_must_ring_room(&lane->queues.responses))
		nc_doorbell_ring(exchange->ring);
	*tag = wire.tag;
	if (wire.id && !accept_body(exchange, &wire)) {
		*response = (struct NC_response){.status = 502};
		return 1;
	}
	*response = (struct NC_response){
		.status = wire.status,
		.flags = wire.flags,
		.headers = lane->record + sizeof(wire),
		.headers_length = wire.headers_length,
		.body = {.id = wire.id,
			 .offset = wire.id ? wire.offset : 0,
			 .length = wire.id ? wire.length : 0},
	};
	return 1;
}

int nc_exchange_sleep(struct nc_exchange *exchange, unsigned lane, unsigned responses)
{
	return nc_queue_arm(&exchange->lane[lane].queues.responses, responses);
}
