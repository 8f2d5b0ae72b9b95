/* SPDX-License-Identifier: MIT */
/*
 * responder.c - accepts requests from the server's lanes in turn and answers
 * with header and cache id.  One thread at a time.
 *
 * The pipe that wakes the worker ends with the server, so one blocking read
 * waits for work and for the end alike.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "join.h"
#include "peer.h"
#include "responder.h"

#define JOIN_TIMEOUT_MS 5000
#define RECORD_MAX (sizeof(struct nc_wire_request) + NC_WIRE_BLOCK_MAX)

int nc_responder_open(struct nc_cache *cache, int socket, struct nc_responder **result)
{
	struct nc_responder *responder = NULL;
	struct nc_wire_welcome welcome;
	int fds[NC_PEER_FDS_MAX];
	size_t footprint;
	int error = nc_join(cache, socket, JOIN_TIMEOUT_MS, &welcome, fds);

	if (error)
		return error;
	footprint = nc_lanes_footprint(welcome.lanes, welcome.queue_size);
	if (welcome.lanes == 0 || welcome.queue_size == 0 ||
	    (welcome.queue_size & (welcome.queue_size - 1)))
		error = -EPROTO;
	if (!error)
		responder =
			calloc(1, sizeof(*responder) + welcome.lanes * sizeof(responder->lane[0]));
	if (!error && responder)
		responder->record = malloc(RECORD_MAX);
	if (!error && (!responder || !responder->record))
		error = -ENOMEM;
	if (!error)
		error = nc_segment_adopt(&responder->queues, fds[0], footprint);
	if (error) {
		nc_peer_close_fds(fds, nc_wire_welcome_fds(&welcome) - 1);
		if (responder)
			free(responder->record);
		free(responder);
		nc_cache_fini(cache);
		return error;
	}
	responder->cache = cache;
	responder->watch = fds[1];
	responder->lanes = welcome.lanes;
	for (unsigned i = 0; i < responder->lanes; i++) {
		nc_lane_init(&responder->lane[i].queues, responder->queues.base, i,
			     welcome.queue_size);
		responder->lane[i].doorbell = fds[2 + i];
	}
	*result = responder;
	return 0;
}

/* Nothing follows for a while: a server that sleeps for more gets what there is. */
static void ring_all(struct nc_responder *responder)
{
	for (unsigned i = 0; i < responder->lanes; i++)
		if (nc_queue_must_ring_now(&responder->lane[i].queues.responses))
			nc_doorbell_ring(responder->lane[i].doorbell);
}

void nc_responder_close(struct nc_responder *responder)
{
	ring_all(responder);
	for (unsigned i = 0; i < responder->lanes; i++)
		close(responder->lane[i].doorbell);
	close(responder->watch);
	nc_segment_close(&responder->queues);
	free(responder->record);
	free(responder);
}

static int take(struct nc_responder *responder, unsigned lane, struct NC_request *request)
{
	struct nc_wire_request wire;
	int64_t length =
		nc_queue_pop(&responder->lane[lane].queues.requests, responder->record, RECORD_MAX);

	if (length <= 0)
		return (int)length;
	if (nc_wire_check_request(responder->record, (size_t)length, &wire))
		return -EPROTO;
	*request = (struct NC_request){.tag = wire.tag,
				       .lane = lane,
				       .variables = responder->record + sizeof(wire),
				       .variables_length = wire.length};
	return 1;
}

/* Says to every lane that this worker will sleep; true: one has work after all. */
static bool arm(struct nc_responder *responder)
{
	bool work = false;

	for (unsigned i = 0; i < responder->lanes && !work; i++)
		work = nc_queue_arm(&responder->lane[i].queues.requests, 1);
	return work;
}

int nc_responder_accept(struct nc_responder *responder, struct NC_request *request)
{
	for (;;) {
		int result;

		for (unsigned i = 0; i < responder->lanes; i++) {
			unsigned lane = (responder->next + i) % responder->lanes;

			result = take(responder, lane, request);
			if (result == 0)
				continue;
			responder->next = lane + 1;
			return result;
		}
		if (arm(responder))
			continue;
		ring_all(responder);
		result = nc_doorbell_wait(responder->watch);
		if (result <= 0)
			return result;
	}
}

int nc_responder_respond(struct nc_responder *responder, const struct NC_request *request,
			 const struct NC_response *response)
{
	const struct NC_range *body = &response->body;
	struct nc_wire_response wire = {.tag = request->tag,
					.status = response->status,
					.flags = response->flags,
					.id = body->id,
					.offset = body->id ? body->offset : 0,
					.length = body->id ? body->length : 0,
					.headers_length = (uint32_t)response->headers_length};
	struct nc_queue *queue;
	struct nc_view view;
	int error;

	if (request->lane >= responder->lanes || response->status < 200 || response->status > 599 ||
	    (response->flags & ~NC_RESPONSE_KEEP) ||
	    (response->headers_length && !response->headers))
		return -EINVAL;
	if (response->headers_length > NC_WIRE_BLOCK_MAX)
		return -EMSGSIZE;
	if (body->id) {
		error = nc_cache_hold(responder->cache, body->id, false, &view);
		if (error)
			return error;
		if (body->offset > view.unit->layout.size ||
		    body->length > view.unit->layout.size - body->offset)
			error = -ERANGE;
		(void)nc_cache_release(responder->cache, body->id);
		if (error)
			return error;
	}
	queue = &responder->lane[request->lane].queues.responses;
	for (;;) {
		error = nc_queue_push(queue, &wire, sizeof(wire), response->headers,
				      response->headers_length);
		if (error != -EAGAIN)
			break;
		if (nc_queue_arm_room(queue, sizeof(wire) + response->headers_length))
			continue;
		ring_all(responder);
		error = nc_doorbell_wait(responder->watch);
		if (error <= 0)
			return error ? error : -EPIPE;
	}
	if (!error && nc_queue_must_ring(queue))
		nc_doorbell_ring(responder->lane[request->lane].doorbell);
	return error;
}
