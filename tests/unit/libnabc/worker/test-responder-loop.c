/* SPDX-License-Identifier: MIT */
/*
 * test-responder-loop.c - unit tests of responder-poll.c: calls that do not wait, and the
 * descriptor that says when to make them again.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "membership/handle.h"
#include "os/queue.h"
#include "wire/channel.h"
#include "wire/pending.h"
#include "wire/wire.h"
#include "worker/responder.h"

#include "responder-fixture.h"
#include "suite.h"

#define LOOP (NC_ACCEPT_NOWAIT | NC_ACCEPT_EVENTS)
#define PIECE (NC_RESPONSE_MORE | NC_RESPONSE_KEEP)

static const struct NC_response empty =
	NC_RESPONSE_INIT(.status = 204, .flags = NC_RESPONSE_NOWAIT);
static const struct NC_response begin =
	NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE | NC_RESPONSE_NOWAIT);
static struct NC_range part;
static int fd;

static void open_loop(unsigned channels)
{
	NC_handle handle;

	ck_assert_int_eq(open_pair(channels, NC_CHANNEL_QUEUE, 512 << 10), 0);
	ck_assert_int_eq(nc_handle_alloc(&handle, &attached, 16, 0, NC_KIND_RECYCLED, 0), 0);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	part = (struct NC_range){.id = NC_cache_id(&handle), .length = 1};
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	fd = nc_responder_fd(responder);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(nc_responder_fd(responder), fd);
}

static void push_record(uint64_t tag, enum nc_wire_kind kind, uint32_t count)
{
	const struct NC_range piece = {.id = 1, .length = 1};
	bool has_piece = kind == NC_WIRE_PIECE;
	struct nc_wire_request wire = {.tag = tag, .kind = kind, .count = count};

	if (has_piece)
		wire.length = sizeof(piece);
	ck_assert_int_eq(nc_queue_push(&channel.requests, &wire, sizeof(wire), &piece,
				       has_piece ? sizeof(piece) : 0),
			 0);
	if (nc_queue_must_ring(&channel.requests))
		nc_doorbell_ring(ring);
}

static int accept_any(struct NC_request *request)
{
	return nc_responder_accept(responder, request, LOOP);
}

/* No request is left: only a record that comes later makes the descriptor readable. */
static void accept_none(void)
{
	struct NC_request none;

	ck_assert_int_eq(accept_any(&none), -EAGAIN);
	ck_assert(!readable(fd));
}

static void accept_next(uint64_t tag, struct NC_request *request)
{
	ck_assert(readable(fd));
	ck_assert_int_eq(accept_any(request), 1);
	ck_assert_uint_eq(request->tag, tag);
}

static int try_body(struct NC_request *request)
{
	struct NC_range piece;

	return nc_responder_body(responder, request, &piece, NC_BODY_NOWAIT);
}

static int try_send(struct NC_request *request)
{
	return nc_responder_send(responder, request, &part, 1, PIECE | NC_RESPONSE_NOWAIT);
}

/* Takes all responses out of the queue.  Returns how many. */
static unsigned reap_all(void)
{
	unsigned count = 0;
	char record[512];

	while (nc_queue_pop(&channel.responses, record, sizeof(record)) > 0) {
		struct nc_wire_response wire;

		memcpy(&wire, record, sizeof(wire));
		ck_assert(!(wire.flags & NC_RESPONSE_NOWAIT));
		count++;
		if (nc_queue_must_ring_room(&channel.responses))
			nc_doorbell_ring(ring);
	}
	return count;
}

START_TEST(test_requests)
{
	struct NC_request request;

	open_loop(1);
	ck_assert(!readable(fd));
	accept_none();
	for (unsigned round = 0; round < 3; round++) {
		for (uint64_t tag = 0; tag < 3; tag++)
			push_record(tag, NC_WIRE_REQUEST, 0);
		for (uint64_t tag = 0; tag < 3; tag++) {
			accept_next(tag, &request);
			ck_assert_int_eq(nc_responder_respond(responder, &request, &empty), 0);
		}
		accept_none();
		ck_assert_uint_eq(reap_all(), 3);
	}
	close_ends();
}
END_TEST

/* A call that waits for one request takes the records of others: the descriptor knows them. */
START_TEST(test_taken_for_others)
{
	struct NC_request first, second, other;

	open_loop(1);
	push_record(1, NC_WIRE_REQUEST_BODY, 0);
	push_record(2, NC_WIRE_REQUEST_BODY, 0);
	accept_next(1, &first);
	accept_next(2, &second);
	ck_assert_int_eq(try_body(&first), -EAGAIN);
	ck_assert_int_eq(try_body(&second), -EAGAIN);
	accept_none();
	push_record(3, NC_WIRE_REQUEST, 0);
	/* It empties the pipe, and fails. */
	ck_assert_int_eq(try_body(&first), -EAGAIN);
	accept_next(3, &other);
	accept_none();
	push_record(2, NC_WIRE_PIECE, 0);
	ck_assert_int_eq(try_body(&first), -EAGAIN);
	ck_assert(readable(fd));
	ck_assert_int_eq(accept_any(&other), -EAGAIN);
	ck_assert(readable(fd));
	ck_assert_int_eq(try_body(&second), 1);
	accept_none();
	push_record(1, NC_WIRE_LAST, 0);
	ck_assert(readable(fd));
	ck_assert_int_eq(try_body(&first), 0);
	accept_none();
	close_ends();
}
END_TEST

START_TEST(test_window)
{
	struct NC_request request;

	open_loop(1);
	push_record(1, NC_WIRE_REQUEST, 0);
	accept_next(1, &request);
	ck_assert_int_eq(nc_responder_respond(responder, &request, &begin), 0);
	for (unsigned i = 1; i < NC_WORKER_WINDOW; i++)
		ck_assert_int_eq(try_send(&request), 0);
	ck_assert_int_eq(try_send(&request), -EAGAIN);
	ck_assert(!readable(fd));
	reap_all();
	push_record(1, NC_WIRE_SENT, 4);
	/* Another call takes the record. */
	ck_assert(readable(fd));
	ck_assert_int_eq(accept_any(&(struct NC_request){0}), -EAGAIN);
	ck_assert(readable(fd));
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(try_send(&request), 0);
	ck_assert_int_eq(try_send(&request), -EAGAIN);
	ck_assert(!readable(fd));
	push_record(1, NC_WIRE_CANCEL, 0);
	ck_assert(readable(fd));
	ck_assert_int_eq(try_send(&request), -ECANCELED);
	accept_none();
	close_ends();
}
END_TEST

/* Two calls find the queue full: both may try again, also when one does first. */
START_TEST(test_full_queue)
{
	const struct NC_response large =
		NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_NOWAIT,
				 .headers = (const char[20000]){0}, .headers_length = 20000);
	struct NC_request filler = {.tag = 99}, small, big;
	int error;

	open_loop(1);
	push_record(1, NC_WIRE_REQUEST, 0);
	push_record(2, NC_WIRE_REQUEST, 0);
	accept_next(1, &small);
	accept_next(2, &big);
	accept_none();
	while ((error = nc_responder_respond(responder, &filler, &empty)) == 0)
		;
	ck_assert_int_eq(error, -EAGAIN);
	ck_assert_int_eq(nc_responder_respond(responder, &big, &large), -EAGAIN);
	ck_assert_int_eq(nc_responder_respond(responder, &small, &empty), -EAGAIN);
	ck_assert(!readable(fd));
	reap_all();
	ck_assert(readable(fd));
	ck_assert_int_eq(accept_any(&filler), -EAGAIN);
	ck_assert(readable(fd));
	ck_assert_int_eq(nc_responder_respond(responder, &small, &empty), 0);
	ck_assert(readable(fd));
	ck_assert_int_eq(nc_responder_respond(responder, &big, &large), 0);
	ck_assert(!readable(fd));
	ck_assert_uint_eq(responder->spaces, 0);
	close_ends();
}
END_TEST

/* Each client that is gone is reported once, if the worker has its request. */
START_TEST(test_events)
{
	struct NC_request request, event;

	open_loop(1);
	for (uint64_t tag = 1; tag <= 3; tag++) {
		push_record(tag, NC_WIRE_REQUEST, 0);
		accept_next(tag, &request);
	}
	accept_none();
	push_record(2, NC_WIRE_CANCEL, 0);
	push_record(2, NC_WIRE_CANCEL, 0);
	accept_next(2, &event);
	ck_assert_uint_eq(event.flags, NC_REQUEST_GONE);
	ck_assert_ptr_null(event.variables);
	accept_none();
	ck_assert_int_eq(nc_responder_gone(responder, &event), 1);
	/* Another call takes the record. */
	push_record(3, NC_WIRE_CANCEL, 0);
	ck_assert_int_eq(nc_responder_gone(responder, &request), 1);
	accept_next(3, &event);
	accept_none();
	/* No event about what is complete, or was not accepted. */
	push_record(4, NC_WIRE_REQUEST, 0);
	push_record(4, NC_WIRE_CANCEL, 0);
	push_record(1, NC_WIRE_CANCEL, 0);
	ck_assert_int_eq(nc_responder_gone(responder, &request), 1);
	request.tag = 1;
	ck_assert_int_eq(nc_responder_abort(responder, &request), 0);
	accept_none();
	close_ends();
}
END_TEST

static void *await_event(void *context)
{
	return (void *)(intptr_t)nc_responder_accept(responder, context, NC_ACCEPT_EVENTS);
}

static void *await_request(void *context)
{
	return (void *)(intptr_t)nc_responder_accept(responder, context, 0);
}

static intptr_t join(pthread_t thread)
{
	void *result;

	pthread_join(thread, &result);
	return (intptr_t)result;
}

/* Of two threads that wait, the one that asks for events gets them, whichever leads. */
START_TEST(test_event_wakes)
{
	void *(*const run[])(void *) = {await_event, await_request};
	struct NC_request open, got[2];
	pthread_t threads[2];

	for (unsigned first = 0; first < 2; first++) {
		ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
		push_record(1, NC_WIRE_REQUEST, 0);
		ck_assert_int_eq(nc_responder_accept(responder, &open, 0), 1);
		for (unsigned i = 0; i < 2; i++) {
			unsigned which = i ? 1 - first : first;

			ck_assert_int_eq(
				pthread_create(&threads[which], NULL, run[which], &got[which]), 0);
			await_waiting(i + 1);
		}
		push_record(1, NC_WIRE_CANCEL, 0);
		ck_assert_int_eq(join(threads[0]), 1);
		ck_assert_uint_eq(got[0].tag, 1);
		ck_assert_uint_eq(got[0].flags, NC_REQUEST_GONE);
		push_record(2, NC_WIRE_REQUEST, 0);
		ck_assert_int_eq(join(threads[1]), 1);
		ck_assert_uint_eq(got[1].tag, 2);
		close_ends();
	}
}
END_TEST

/* Requests that no blocking call has seen: the descriptor is opened late. */
START_TEST(test_opened_late)
{
	struct NC_request request;

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	ck_assert_int_eq(accept_any(&request), -EAGAIN);
	push_record(1, NC_WIRE_REQUEST_BODY, 0);
	ck_assert_int_eq(accept_any(&request), 1);
	ck_assert_int_eq(try_body(&request), -EAGAIN);
	push_record(1, NC_WIRE_PIECE, 0);
	ck_assert_int_eq(nc_responder_gone(responder, &request), 0);
	fd = nc_responder_fd(responder);
	ck_assert_int_ge(fd, 0);
	ck_assert(readable(fd));
	ck_assert_int_eq(try_body(&request), 1);
	accept_none();
	push_record(2, NC_WIRE_REQUEST, 0);
	ck_assert(readable(fd));
	close_ends();
}
END_TEST

/* At the end it is readable, whatever is called. */
START_TEST(test_end)
{
	struct NC_request request;

	open_loop(2);
	push_record(1, NC_WIRE_REQUEST_BODY, 0);
	accept_next(1, &request);
	ck_assert_int_eq(try_body(&request), -EAGAIN);
	accept_none();
	close(ring);
	ring = -1;
	ck_assert(readable(fd));
	ck_assert_int_eq(try_body(&request), -EPIPE);
	ck_assert(readable(fd));
	ck_assert_int_eq(accept_any(&request), 0);
	ck_assert_int_eq(accept_any(&request), 0);
	ck_assert(readable(fd));
	close_ends();
}
END_TEST

/* After a violation of the protocol, every call says so. */
START_TEST(test_violation)
{
	struct NC_request request;

	open_loop(1);
	push_record(1, NC_WIRE_REQUEST, 0);
	accept_next(1, &request);
	accept_none();
	push_record(1, NC_WIRE_KINDS, 0);
	ck_assert(readable(fd));
	ck_assert_int_eq(accept_any(&request), -EPROTO);
	ck_assert(readable(fd));
	ck_assert_int_eq(accept_any(&request), -EPROTO);
	close_ends();
}
END_TEST

/* After a response 101, what the client sends comes as pieces, also while the worker sends. */
START_TEST(test_switch)
{
	struct NC_response response = begin;
	struct NC_request request, with_body;

	open_loop(1);
	push_record(1, NC_WIRE_REQUEST, 0);
	push_record(2, NC_WIRE_REQUEST_BODY, 0);
	accept_next(1, &request);
	accept_next(2, &with_body);
	ck_assert_uint_eq(request.flags, 0);
	ck_assert_int_eq(try_body(&request), 0);
	response.status = 101;
	ck_assert_int_eq(nc_responder_respond(responder, &with_body, &response), -EINVAL);
	response.flags = 0;
	ck_assert_int_eq(nc_responder_respond(responder, &request, &response), -EINVAL);
	response.flags = NC_RESPONSE_MORE;
	response.status = 100;
	ck_assert_int_eq(nc_responder_respond(responder, &request, &response), -EINVAL);
	response.status = 101;
	ck_assert_int_eq(nc_responder_respond(responder, &request, &response), 0);
	ck_assert_int_eq(nc_responder_respond(responder, &request, &response), -EINVAL);
	ck_assert_uint_eq(responder->pending.begun, 0);
	for (unsigned round = 0; round < 3; round++) {
		ck_assert_int_eq(try_body(&request), -EAGAIN);
		ck_assert(!readable(fd));
		push_record(1, NC_WIRE_PIECE, 0);
		ck_assert(readable(fd));
		ck_assert_int_eq(try_body(&request), 1);
		ck_assert_int_eq(try_send(&request), 0);
	}
	/* The client's end is not the worker's. */
	push_record(1, NC_WIRE_LAST, 0);
	ck_assert_int_eq(try_body(&request), 0);
	ck_assert_int_eq(try_body(&request), 0);
	ck_assert_int_eq(try_send(&request), 0);
	ck_assert_int_eq(nc_responder_send(responder, &request, NULL, 0, 0), 0);
	ck_assert_int_eq(try_body(&request), -EINVAL);
	/* 101, three pieces that were returned, five records of the response. */
	ck_assert_uint_eq(reap_all(), 9);
	close_ends();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_requests);
	tcase_add_test(tcase, test_taken_for_others);
	tcase_add_test(tcase, test_window);
	tcase_add_test(tcase, test_full_queue);
	tcase_add_test(tcase, test_events);
	tcase_add_test(tcase, test_event_wakes);
	tcase_add_test(tcase, test_opened_late);
	tcase_add_test(tcase, test_switch);
	tcase_add_test(tcase, test_end);
	tcase_add_test(tcase, test_violation);
}

RUN_SUITE("responder-loop", fill)
