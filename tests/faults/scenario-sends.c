/* SPDX-License-Identifier: MIT */
/*
 * scenario-sends.c - units are sent by each method to sockets that accept little at a
 * time; then the same through rings, and through the program's own io_uring.
 */
#include "scenario.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <nabc-async.h>
#include <nabc.h>

#define SIZE ((size_t)400000)

/* --- direct sends ------------------------------------------------------------------------- */

/* The header is the unit's first bytes, so that all of it is one pattern. */
static struct NC_send message_of(const struct NC_range *ranges, const char *first)
{
	return (struct NC_send)NC_SEND_INIT(.header = first, .header_length = 6, .ranges = ranges,
					    .range_count = 2);
}

static void ranges_of(size_t id, struct NC_range ranges[2], char first[6])
{
	for (size_t i = 0; i < 6; i++)
		first[i] = (char)byte_of(i);
	ranges[0] = (struct NC_range){.id = id, .offset = 6, .length = 100000};
	ranges[1] = (struct NC_range){.id = id, .offset = 100006, .length = SIZE - 100006};
}

static void send_whole(NC_cache *cache, size_t id, bool tcp)
{
	struct NC_range ranges[2];
	char first[6];
	struct NC_send message = message_of(ranges, first);
	struct pollfd room;
	size_t at = 0;
	ssize_t sent;
	int ends[2];

	ranges_of(id, ranges, first);
	open_stream(ends, tcp);
	room = (struct pollfd){.fd = ends[0], .events = POLLOUT};
	message.flags = NC_SEND_CLOSE;
	while (message.skip < SIZE) {
		call_begin();
		sent = NC_send(cache, ends[0], &message);
		if (!call_end("NC_send", sent >= 0 || errno == EAGAIN))
			break;
		message.skip += sent > 0 ? (size_t)sent : 0;
		take_bytes(ends[1], &at, SIZE);
		if (sent < 0 && poll(&room, 1, 1000) <= 0)
			take_bytes(ends[1], &at, SIZE);
	}
	while (at < message.skip && await_either(ends[1], -1))
		take_bytes(ends[1], &at, SIZE);
	MUST(at == message.skip);
	(void)OK(NC_cache_dispatch(cache));
	close_pair(ends);
}

static void send_range(NC_cache *cache, size_t id)
{
	size_t at = 0;
	ssize_t sent;
	int ends[2];

	open_stream(ends, false);
	if (NUMBER(sent,
		   NC_send(cache, ends[0],
			   &(struct NC_send)NC_SEND_INIT(.ranges = &(struct NC_range){id, 0, 10000},
							 .range_count = 1)))) {
		take_bytes(ends[1], &at, SIZE);
		MUST(at == (size_t)sent);
	}
	close_pair(ends);
}

static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED, NC_KIND_SEALED};

/* If no other segment was possible, the first units were evicted for the last. */
static bool is_there(NC_cache *cache, size_t id)
{
	struct NC_stat stat;
	bool is;

	call_begin();
	is = NC_stat(cache, id, &stat, sizeof(stat)) == 0;
	(void)call_end("NC_stat", is || (errno == ENOENT && !is_clean()));
	return is;
}

static NC_cache *open_with_units(size_t ids[3])
{
	const struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB, .member_size = 256 * KIB,
				      .flags = NC_CACHE_NO_THREAD);
	NC_cache *cache;

	if (!GOT(cache, NC_cache_open(&options)))
		return NULL;
	for (unsigned i = 0; i < 3; i++)
		ids[i] = make_unit(cache, kinds[i], SIZE, 0);
	for (unsigned i = 0; i < 3; i++)
		if (ids[i] && !is_there(cache, ids[i]))
			ids[i] = 0;
	return cache;
}

static void round_of_sends(void)
{
	static const int methods[] = {NC_ROUTE_LEARN, NC_METHOD_COPY, NC_METHOD_SPLICE,
				      NC_METHOD_ZEROCOPY};
	struct NC_route routes[4];
	size_t ids[3] = {0};
	NC_cache *cache = open_with_units(ids);
	int done;

	for (unsigned k = 0; cache && k < 4; k++) {
		call_begin();
		done = NC_route_set(cache, "127.0.0.1", methods[k]);
		/* io_uring was unavailable. */
		if (done < 0 && errno == EOPNOTSUPP && methods[k] == NC_METHOD_ZEROCOPY) {
			(void)call_end("NC_route_set", true);
			continue;
		}
		if (!call_end("NC_route_set", done >= 0))
			continue;
		for (unsigned i = 0; i < 3; i++)
			if (ids[i])
				send_whole(cache, ids[i], true);
	}
	for (unsigned i = 0; cache && i < 3; i++) {
		if (!ids[i])
			continue;
		send_whole(cache, ids[i], false);
		send_range(cache, ids[i]);
	}
	if (!cache)
		return;
	(void)OK(NC_routes(cache, routes, sizeof(*routes), 4));
	(void)OK(NC_cache_close(cache));
}

const struct scenario scenario_sends = {.name = "sends", .round = round_of_sends};

/* --- through rings -------------------------------------------------------------------------- */

/* Reaps one if it is complete; meanwhile reads the received bytes. */
static bool reap_one(NC_sender *ring, int fd, int socket, size_t *at, struct NC_completion *done)
{
	int count;

	for (unsigned turns = 0; turns < 5000; turns++) {
		if (!NUMBER(count, NC_sender_reap(ring, done, sizeof(*done), 1)))
			return false;
		take_bytes(socket, at, SIZE);
		if (count)
			return true;
		(void)await_either(fd, socket);
	}
	wrong("a message in a ring is never over");
	return false;
}

static void send_by_ring(NC_sender *ring, int fd, size_t id, bool tcp)
{
	struct NC_range ranges[2];
	char first[6];
	struct NC_send message = message_of(ranges, first);
	struct NC_completion done = {0};
	size_t at = 0;
	int ends[2];

	ranges_of(id, ranges, first);
	open_stream(ends, tcp);
	if (OK(NC_sender_send(ring, ends[0], &message, ring))) {
		/* If it cannot be submitted now, it is submitted later. */
		(void)OK(NC_sender_submit(ring));
		if (reap_one(ring, fd, ends[1], &at, &done)) {
			while (at < done.sent && await_either(ends[1], -1))
				take_bytes(ends[1], &at, SIZE);
			MUST(done.sent == at && done.data == ring);
			MUST(done.error || done.sent == SIZE);
			MUST(!done.error || !is_clean());
		}
	}
	close_pair(ends);
}

static void cancel(NC_sender *ring, int fd, size_t id)
{
	struct NC_range ranges[2];
	char first[6];
	struct NC_send message = message_of(ranges, first);
	struct NC_completion done[2];
	unsigned left = 0;
	int ends[2], count;

	ranges_of(id, ranges, first);
	open_stream(ends, true);
	left += OK(NC_sender_send(ring, ends[0], &message, NULL));
	left += OK(NC_sender_send(ring, ends[0], &message, NULL));
	(void)OK(NC_sender_submit(ring));
	/* A refused cancellation is repeated. */
	for (unsigned turns = 0; turns < 10 && !OK(NC_sender_cancel(ring, ends[0])); turns++)
		;
	for (unsigned turns = 0; left && turns < 10; turns++) {
		if (!NUMBER(count, NC_sender_reap(ring, done, sizeof(*done), 2)))
			continue;
		MUST((unsigned)count <= left);
		left -= (unsigned)count;
		if (left && !count)
			(void)await_either(fd, -1);
	}
	MUST(left == 0);
	close_pair(ends);
}

/* The messages of a ring that is closed while they are pending. */
static void leave(NC_sender *ring, size_t id)
{
	const struct NC_range range = {.id = id, .length = SIZE};
	const struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	int ends[2];

	open_stream(ends, true);
	(void)OK(NC_sender_send(ring, ends[0], &message, NULL));
	(void)OK(NC_sender_submit(ring));
	(void)OK(NC_sender_close(ring));
	close_pair(ends);
}

static void use_ring(NC_cache *cache, const size_t ids[3], unsigned flags)
{
	NC_sender *ring;
	int fd;

	if (!GOT(ring, NC_sender_open(cache, 4, flags)))
		return;
	if (!NUMBER(fd, NC_sender_fd(ring)))
		fd = -1;
	for (unsigned i = 0; i < 3; i++) {
		if (!ids[i])
			continue;
		send_by_ring(ring, fd, ids[i], true);
		send_by_ring(ring, fd, ids[i], false);
	}
	if (ids[1]) {
		cancel(ring, fd, ids[1]);
		leave(ring, ids[1]);
	} else {
		(void)OK(NC_sender_close(ring));
	}
}

/* --- through an io_uring of the program ------------------------------------------------------- */

/* Prepares the next step; returns false if that failed. */
static bool prepare_step(struct io_uring *ring, NC_send_op *operation, NC_ring_buffers *buffers)
{
	int steps = 1;

	if (buffers && !NUMBER(steps, NC_send_op_steps(operation, buffers)))
		return false;
	for (int i = 0; i < steps; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

		if (!OK(NC_prep_send(sqe, operation))) {
			io_uring_prep_nop(sqe);
			return false;
		}
	}
	return true;
}

bool run_operation(struct io_uring *ring, NC_send_op *operation, NC_ring_buffers *buffers,
		   int socket, size_t *at, size_t size)
{
	enum NC_progress progress = NC_PROGRESS_AGAIN;
	struct io_uring_cqe *cqe;
	int next;

	while (progress != NC_PROGRESS_DONE) {
		if ((progress == NC_PROGRESS_AGAIN || progress == NC_PROGRESS_FULL) &&
		    !prepare_step(ring, operation, buffers))
			return false;
		if (io_uring_submit_and_wait(ring, 1) < 0 || io_uring_peek_cqe(ring, &cqe) < 0)
			return false;
		call_begin();
		next = NC_send_op_complete(operation, cqe);
		io_uring_cqe_seen(ring, cqe);
		if (!call_end("NC_send_op_complete", next >= 0))
			return false;
		progress = (enum NC_progress)next;
		take_bytes(socket, at, size);
	}
	return true;
}

void end_operation(NC_send_op *operation)
{
	call_begin();
	if (NC_send_op_close(operation) < 0)
		(void)NC_send_op_abandon(operation);
	(void)call_end("NC_send_op_close", true);
}

static void send_by_operation(NC_cache *cache, struct io_uring *ring, size_t id)
{
	struct NC_range ranges[2];
	char first[6];
	struct NC_send message = message_of(ranges, first);
	NC_send_op *operation;
	size_t at = 0;
	int ends[2];

	ranges_of(id, ranges, first);
	open_stream(ends, true);
	if (GOT(operation, NC_send_op_open(cache, ends[0], &message, 0))) {
		if (run_operation(ring, operation, NULL, ends[1], &at, SIZE))
			MUST(NC_send_op_sent(operation) == SIZE);
		end_operation(operation);
	}
	close_pair(ends);
}

static void round_of_rings(void)
{
	size_t ids[3] = {0};
	NC_cache *cache = open_with_units(ids);
	struct io_uring ring;

	if (!cache)
		return;
	use_ring(cache, ids, 0);
	use_ring(cache, ids, NC_SENDER_NO_URING);
	if (io_uring_queue_init(4, &ring, 0) == 0) {
		for (unsigned i = 0; i < 3; i++)
			if (ids[i])
				send_by_operation(cache, &ring, ids[i]);
		io_uring_queue_exit(&ring);
	}
	(void)OK(NC_cache_close(cache));
}

const struct scenario scenario_rings = {.name = "rings", .round = round_of_rings};
