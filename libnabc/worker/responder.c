/* SPDX-License-Identifier: MIT */
/*
 * responder.c - accepts requests from the server's channels in turn and answers
 * with header and cache id.
 *
 * The pipe that wakes the worker is closed when the server ends, so one blocking
 * read waits for both work and the end.
 */
#include <errno.h>
#include <nabc.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fragment.h"
#include "base/hash-table.h"
#include "base/lock.h"
#include "cache/index.h"
#include "membership/attach.h"
#include "os/peer.h"
#include "os/queue.h"
#include "store/unit.h"
#include "worker/responder.h"

#define JOIN_TIMEOUT_MS 5000

/*
 * Bytes of bodies after which the worker yields the CPU to the server.  Measured
 * with two workers and the server on one CPU, 64 connections: pages of 1 MB cost
 * 0.80 times the CPU time with 1.23 times the throughput, those of 100 KB 0.91 and
 * 1.06 times.  512 KiB to 4 MiB differ by less than 5 %.
 */
#define YIELD_BYTES ((size_t)1 << 20)

/* No reply is awaited: the server may be between two looks at its members. */
static void report_joined(int socket)
{
	const struct nc_wire_call call = {.magic = NC_WIRE_MAGIC, .op = NC_WIRE_JOINED};

	(void)nc_peer_send(socket, &call, sizeof(call), NULL, 0);
}

int nc_responder_open(struct nc_index *index, int socket, struct nc_responder **result)
{
	struct nc_responder *responder = NULL;
	struct nc_wire_welcome welcome;
	int fds[NC_PEER_FDS_MAX];
	size_t footprint;
	int error = nc_attach(index, socket, JOIN_TIMEOUT_MS, &welcome, fds);

	/* Let the server report it: operators read its log. */
	if (error == -EPROTONOSUPPORT)
		(void)nc_attach_hello(socket, 0);
	if (error)
		return error;
	footprint = nc_channels_footprint(welcome.channels, welcome.queue_size);
	/* Each queue begins at the end of the previous one, and must be aligned. */
	if (welcome.channels == 0 || welcome.queue_size < alignof(struct nc_queue_shared) ||
	    (welcome.queue_size & (welcome.queue_size - 1)))
		error = -EPROTO;
	if (!error)
		responder = calloc(1, sizeof(*responder) +
					      welcome.channels * sizeof(responder->channel[0]));
	if (!error && responder && (welcome.flags & NC_WIRE_POSIX))
		responder->out = malloc(NC_RESPONDER_OUT);
	if (!error && (!responder || (!responder->out && (welcome.flags & NC_WIRE_POSIX))))
		error = -ENOMEM;
	if (!error)
		error = nc_pending_init(&responder->pending, welcome.channels);
	if (!error)
		error = nc_segment_adopt(&responder->queues, fds[0], footprint);
	if (error) {
		/* The cache owns the segment's descriptor, if there is one. */
		nc_peer_close_fds(fds, nc_wire_welcome_fds(&welcome) - (welcome.slots ? 1 : 0));
		if (responder) {
			nc_pending_fini(&responder->pending);
			free(responder->out);
		}
		free(responder);
		nc_index_fini(index);
		return error;
	}
	nc_lock_init(&responder->lock);
	responder->interrupt = responder->poll = responder->signal = -1;
	responder->index = index;
	responder->watch = fds[1];
	responder->version = nc_wire_common(welcome.version, welcome.oldest);
	responder->channels = welcome.channels;
	for (unsigned i = 0; i < responder->channels; i++) {
		nc_channel_init(&responder->channel[i].queues, responder->queues.base, i,
				welcome.queue_size);
		responder->channel[i].doorbell = fds[2 + i];
	}
	report_joined(socket);
	*result = responder;
	return 0;
}

/* Rings even if the server sleeps until more responses come. */
static void ring_now(struct nc_responder *responder, uint32_t channel)
{
	if (nc_queue_must_ring_now(&responder->channel[channel].queues.responses))
		nc_doorbell_ring(responder->channel[channel].doorbell);
}

/* Called when no response follows for a while. */
void nc_responder_ring_all(struct nc_responder *responder)
{
	for (unsigned i = 0; i < responder->channels; i++)
		ring_now(responder, i);
}

void nc_responder_close(struct nc_responder *responder)
{
	nc_responder_ring_all(responder);
	for (unsigned i = 0; i < responder->channels; i++)
		close(responder->channel[i].doorbell);
	close(responder->watch);
	if (responder->interrupt >= 0)
		close(responder->interrupt);
	nc_responder_fd_close(responder);
	pthread_mutex_destroy(&responder->lock);
	nc_segment_close(&responder->queues);
	nc_pending_fini(&responder->pending);
	free(responder->out);
	free(responder);
}

/* Returns 1 for an event, or 0. */
static int take_event(struct nc_responder *responder, struct NC_request *request)
{
	struct nc_open_request *open = responder->pending.events.first;

	if (!open)
		return 0;
	nc_pending_report(&responder->pending, open);
	*request = (struct NC_request){
		.tag = open->entry.key, .channel = open->channel, .flags = NC_REQUEST_GONE};
	return 1;
}

/* Takes a request or an event if there is one.  Returns as nc_responder_take_kept(). */
static int accept_now(struct nc_responder *responder, struct NC_request *request, bool events)
{
	int result = events ? take_event(responder, request) : 0;

	if (result == 0)
		result = nc_responder_take_kept(responder, request);
	for (unsigned i = 0; i < responder->channels && result == 0; i++) {
		unsigned channel = (responder->next + i) % responder->channels;

		result = nc_responder_take(responder, channel, request);
		if (result != 0)
			responder->next = channel + 1;
	}
	/* The records that precede a request may have brought one. */
	return result == 0 && events ? take_event(responder, request) : result;
}

int nc_responder_accept(struct nc_responder *responder, struct NC_request *request, unsigned flags)
{
	bool events = flags & NC_ACCEPT_EVENTS;
	struct nc_wait wait = {.nowait = flags & NC_ACCEPT_NOWAIT, .events = events};
	int result, error = 0;

	nc_responder_lock(responder);
	responder->events |= events;
	do {
		wait.kind = NC_WAIT_REQUEST;
		result = accept_now(responder, request, events);
		if (result == 0) {
			error = nc_responder_wait(responder, &wait);
		} else if (result == -EAGAIN) {
			wait.channel = request->channel;
			wait.tag = request->tag;
			error = nc_responder_await_room(responder, &wait, NC_WANT_ROOM_ANSWER,
							sizeof(struct nc_wire_response));
		}
	} while (!error && (result == 0 || result == -EAGAIN));
	nc_responder_unlock(responder);
	return error == -EPIPE ? 0 : error ? error : result;
}

/*
 * A worker that shares its CPU with the server would otherwise fill one body after
 * the other, in memory that has left the CPU's caches when the server sends it and
 * when the next body is filled.  If the server runs on another CPU, this costs only
 * a system call.
 */
static bool must_yield(struct nc_responder *responder, uint32_t channel, size_t bytes, bool taken)
{
	size_t *waiting = &responder->channel[channel].waiting;

	*waiting = (taken ? 0 : *waiting) + bytes;
	if (*waiting < YIELD_BYTES)
		return false;
	*waiting = 0;
	ring_now(responder, channel);
	return true;
}

int nc_responder_push(struct nc_responder *responder, const struct NC_request *request,
		      const struct nc_wire_response *wire, const struct NC_range *ranges,
		      const char *headers)
{
	uint32_t channel = request->channel;
	struct nc_queue *queue = &responder->channel[channel].queues.responses;
	size_t length = sizeof(*wire) + wire->ranges * sizeof(*ranges), bytes = 0;
	struct {
		struct nc_wire_response wire;
		struct NC_range ranges[NC_WIRE_RANGES_MAX];
	} head;
	bool taken;
	int error;

	if (responder->out)
		return nc_responder_write(responder, channel, wire, ranges, headers);
	taken = nc_queue_is_taken(queue);
	for (unsigned i = 0; i < wire->ranges; i++)
		bytes += ranges[i].length;
	head.wire = *wire;
	if (wire->ranges)
		memcpy(head.ranges, ranges, wire->ranges * sizeof(*ranges));
	error = nc_queue_push(queue, &head, length, headers, wire->headers_length);
	if (error)
		return error;
	if (nc_queue_must_ring(queue))
		nc_doorbell_ring(responder->channel[channel].doorbell);
	/* This thread may not come back soon, and those that wait would have rung before. */
	if (responder->first)
		ring_now(responder, channel);
	return bytes && must_yield(responder, channel, bytes, taken);
}

int nc_responder_report(struct nc_responder *responder, const struct NC_request *request,
			uint32_t flags)
{
	const struct nc_wire_response wire = {.tag = request->tag, .flags = flags};

	return nc_responder_push(responder, request, &wire, NULL, NULL);
}

int nc_responder_await_room(struct nc_responder *responder, struct nc_wait *wait, enum nc_want want,
			    size_t length)
{
	wait->kind = NC_WAIT_ROOM;
	wait->want = want;
	wait->length = length;
	return nc_responder_wait(responder, wait);
}

void nc_responder_end(struct nc_responder *responder, struct nc_open_request *open)
{
	uint32_t channel = open->channel;
	uint64_t tag = open->entry.key;

	nc_responder_unwant(responder, open, NC_WANT_NEWS | NC_WANT_ROOM);
	nc_pending_remove(&responder->pending, open);
	nc_responder_over(responder, channel, tag);
}

int nc_responder_check_ranges(struct nc_responder *responder, const struct NC_range *ranges,
			      unsigned count)
{
	if (count > NC_WIRE_RANGES_MAX || (count && !ranges))
		return -EINVAL;
	for (unsigned i = 0; i < count; i++) {
		struct nc_view view;
		int error = ranges[i].id
				    ? nc_index_hold(responder->index, ranges[i].id, false, &view)
				    : -EINVAL;

		if (error)
			return error;
		if (ranges[i].offset > view.unit->layout.size ||
		    ranges[i].length > view.unit->layout.size - ranges[i].offset)
			error = -ERANGE;
		(void)nc_index_release(responder->index, ranges[i].id);
		if (error)
			return error;
	}
	return 0;
}

/* Checks what needs no lock.  Returns 0 or -errno. */
static int check_response(const struct nc_responder *responder, const struct NC_request *request,
			  const struct NC_response *response, unsigned count)
{
	unsigned flags = response->flags & ~NC_RESPONSE_NOWAIT;

	bool switches = nc_wire_switches(response->status, flags);

	if (request->channel >= responder->channels ||
	    (!switches && (response->status < 200 || response->status > 599)) ||
	    !nc_wire_flags_good(flags, count) || (response->headers_length && !response->headers) ||
	    (response->body.id && response->range_count))
		return -EINVAL;
	return 0;
}

/* Checks that the response may begin; open: NULL if the request is not pending. */
static int check_begin(const struct nc_responder *responder, const struct nc_open_request *open,
		       const struct NC_response *response)
{
	bool more = response->flags & NC_RESPONSE_MORE, switches = response->status == 101;

	if (open ? open->begun || (switches && open->inbox) : more)
		return -EINVAL;
	if (response->headers_length > NC_WIRE_BLOCK_MAX)
		return -EMSGSIZE;
	return more && !switches && responder->pending.begun == NC_WORKER_STREAMS_MAX ? -ENOBUFS
										      : 0;
}

/* Begins the response, with what push_response() has allocated, or ends the request. */
static void note_response(struct nc_responder *responder, struct nc_open_request *open, bool more,
			  struct nc_inbox **inbox)
{
	if (!more) {
		nc_responder_end(responder, open);
		return;
	}
	nc_pending_begin(&responder->pending, open, *inbox);
	*inbox = NULL;
}

/*
 * Pushes the response when it fits.  Takes *inbox if the response begins with it.  Returns as
 * nc_responder_push().
 */
static int push_when_it_fits(struct nc_responder *responder, const struct NC_request *request,
			     const struct NC_response *response,
			     const struct nc_wire_response *wire, const struct NC_range *ranges,
			     bool pending, struct nc_inbox **inbox)
{
	size_t length = sizeof(*wire) + wire->ranges * sizeof(*ranges) + wire->headers_length;
	struct nc_wait wait = {.channel = request->channel,
			       .tag = request->tag,
			       .nowait = response->flags & NC_RESPONSE_NOWAIT};

	for (;;) {
		struct nc_open_request *open = nc_responder_find(responder, request);
		/* Another thread may have completed it. */
		int result = pending && !open ? -EINVAL : check_begin(responder, open, response);

		if (open)
			nc_responder_unwant(responder, open, NC_WANT_ROOM_ANSWER);
		if (!result)
			result = nc_responder_push(responder, request, wire, ranges,
						   response->headers);
		if (result >= 0 && open)
			note_response(responder, open, response->flags & NC_RESPONSE_MORE, inbox);
		if (result != -EAGAIN)
			return result;
		result = nc_responder_await_room(responder, &wait, NC_WANT_ROOM_ANSWER, length);
		if (result)
			return result;
	}
}

/* After a response 101, the client's bytes have a place before the server knows of it. */
static int push_response(struct nc_responder *responder, const struct NC_request *request,
			 const struct NC_response *response, const struct nc_wire_response *wire,
			 const struct NC_range *ranges, bool pending)
{
	struct nc_inbox *inbox = NULL;
	int result;

	if (response->status == 101) {
		inbox = malloc(sizeof(*inbox));
		if (!inbox)
			return -ENOMEM;
	}
	result = push_when_it_fits(responder, request, response, wire, ranges, pending, &inbox);
	free(inbox);
	return result;
}

int nc_responder_respond(struct nc_responder *responder, const struct NC_request *request,
			 const struct NC_response *response)
{
	bool single = response->body.id;
	const struct NC_range *ranges = single ? &response->body : response->ranges;
	unsigned count = single ? 1 : response->range_count;
	struct nc_wire_response wire = {
		.tag = request->tag,
		.status = response->status,
		.flags = response->flags & ~NC_RESPONSE_NOWAIT,
		.headers_length = (uint32_t)response->headers_length,
		.ranges = count,
	};
	int result = check_response(responder, request, response, count);
	const struct nc_open_request *open;
	bool pending;

	if (result)
		return result;
	nc_responder_lock(responder);
	open = nc_responder_find(responder, request);
	pending = open;
	result = check_begin(responder, open, response);
	if (!result && count) {
		pthread_mutex_unlock(&responder->lock);
		result = nc_responder_check_ranges(responder, ranges, count);
		nc_responder_lock(responder);
	}
	if (!result)
		result = push_response(responder, request, response, &wire, ranges, pending);
	nc_responder_unlock(responder);
	if (result > 0)
		(void)sched_yield();
	return result < 0 ? result : 0;
}
