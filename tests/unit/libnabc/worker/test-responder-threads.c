/* SPDX-License-Identifier: MIT */
/*
 * test-responder-threads.c - unit tests of responder*.c with several threads of one worker:
 * who is woken by what, requests that two threads use, and the server's end.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "membership/handle.h"
#include "os/queue.h"
#include "wire/channel.h"
#include "wire/wire.h"
#include "worker/responder.h"

#include "responder-fixture.h"
#include "suite.h"

#define THREADS 8u

static const struct NC_response empty = NC_RESPONSE_INIT(.status = 204);
static const struct NC_response begin = NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE);

static void ring_here(void)
{
	if (nc_queue_must_ring(&channel.requests))
		nc_doorbell_ring(ring);
}

static void push_record(uint64_t tag, enum nc_wire_kind kind, const void *what, size_t length)
{
	struct nc_wire_request wire = {.tag = tag, .length = (uint32_t)length, .kind = kind};

	ck_assert_int_eq(nc_queue_push(&channel.requests, &wire, sizeof(wire), what, length), 0);
	ring_here();
}

static void push_piece(uint64_t tag)
{
	const struct NC_range piece = {.id = 1, .length = 1};

	push_record(tag, NC_WIRE_PIECE, &piece, sizeof(piece));
}

static void accept_here(uint64_t tag, enum nc_wire_kind kind, struct NC_request *request)
{
	push_record(tag, kind, NULL, 0);
	ck_assert_int_eq(nc_responder_accept(responder, request, 0), 1);
	ck_assert_uint_eq(request->tag, tag);
}

static void end_server(void)
{
	close(ring);
	ring = -1;
}

/* --- requests at the same time --------------------------------------------------- */

static pthread_barrier_t all_have_one;

/* Responds when all threads have a request. */
static void *respond_together(void *context)
{
	struct NC_request request;
	int result;

	(void)context;
	while ((result = nc_responder_accept(responder, &request, 0)) == 1) {
		pthread_barrier_wait(&all_have_one);
		if (nc_responder_respond(responder, &request, &empty))
			return (void *)-1;
	}
	return (void *)(intptr_t)result;
}

static void start_threads(pthread_t *threads, unsigned count, void *(*run)(void *), void *context)
{
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, run, context), 0);
}

static intptr_t join(pthread_t thread)
{
	void *result;

	pthread_join(thread, &result);
	return (intptr_t)result;
}

static void await_response(uint64_t tag)
{
	char record[512];
	struct nc_wire_response wire;
	int64_t length;

	while ((length = nc_queue_pop(&channel.responses, record, sizeof(record))) == 0)
		sched_yield();
	ck_assert_int_gt(length, 0);
	if (nc_queue_must_ring_room(&channel.responses))
		nc_doorbell_ring(ring);
	memcpy(&wire, record, sizeof(wire));
	if (tag)
		ck_assert_uint_eq(wire.tag, tag);
}

/* As many requests as threads are in progress at the same time. */
START_TEST(test_as_many_as_threads)
{
	pthread_t threads[THREADS];

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	pthread_barrier_init(&all_have_one, NULL, THREADS);
	start_threads(threads, THREADS, respond_together, NULL);
	for (unsigned round = 0; round < scaled(200); round++) {
		for (unsigned i = 0; i < THREADS; i++) {
			push_record(1 + i, NC_WIRE_REQUEST, NULL, 0);
			if (round % 3 == i % 3)
				sched_yield();
		}
		for (unsigned i = 0; i < THREADS; i++)
			await_response(0);
	}
	end_server();
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(join(threads[i]), 0);
	pthread_barrier_destroy(&all_have_one);
	close_ends();
}
END_TEST

/* While another thread waits, a server that sleeps for several responses gets the first. */
START_TEST(test_response_leaves)
{
	struct NC_request request;
	pthread_t thread;

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	accept_here(7, NC_WIRE_REQUEST, &request);
	pthread_barrier_init(&all_have_one, NULL, 1);
	start_threads(&thread, 1, respond_together, NULL);
	await_waiting(1);
	ck_assert(!nc_queue_arm(&channel.responses, 3));
	ck_assert_int_eq(nc_responder_respond(responder, &request, &empty), 0);
	ck_assert_uint_eq(rings(), 1);
	end_server();
	ck_assert_int_eq(join(thread), 0);
	close_ends();
}
END_TEST

/* --- threads that wait for different records ---------------------------------------- */

static void *await_body(void *context)
{
	struct NC_range piece;

	return (void *)(intptr_t)nc_responder_body(responder, context, &piece, 0);
}

static void *await_request(void *context)
{
	return (void *)(intptr_t)nc_responder_accept(responder, context, 0);
}

/* Each gets its record, whichever leads, and whatever comes first. */
START_TEST(test_each_its_own)
{
	for (unsigned way = 0; way < 4; way++) {
		void *(*const run[])(void *) = {await_body, await_request};
		struct NC_request open, other;
		void *context[] = {&open, &other};
		bool body_leads = way & 1, body_first = way & 2;
		pthread_t threads[2];

		ck_assert_int_eq(open_pair(2, NC_CHANNEL_QUEUE, 512 << 10), 0);
		accept_here(7, NC_WIRE_REQUEST_BODY, &open);
		for (unsigned i = 0; i < 2; i++) {
			unsigned which = body_leads ? i : 1 - i;

			start_threads(&threads[which], 1, run[which], context[which]);
			await_waiting(i + 1);
		}
		if (body_first) {
			push_piece(7);
			ck_assert_int_eq(join(threads[0]), 1);
		}
		push_record(8, NC_WIRE_REQUEST, NULL, 0);
		ck_assert_int_eq(join(threads[1]), 1);
		ck_assert_uint_eq(other.tag, 8);
		if (!body_first) {
			push_piece(7);
			ck_assert_int_eq(join(threads[0]), 1);
		}
		close_ends();
	}
}
END_TEST

/* Records that a thread takes for others, without waiting itself, reach them. */
START_TEST(test_taken_for_others)
{
	struct NC_request open, other;
	pthread_t threads[2];

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	for (unsigned round = 0; round < scaled(200); round++) {
		uint64_t tag = 10 + 2 * round;

		accept_here(tag, NC_WIRE_REQUEST_BODY, &open);
		start_threads(&threads[0], 1, await_request, &other);
		start_threads(&threads[1], 1, await_body, &open);
		if (round % 2)
			await_waiting(2);
		push_record(tag + 1, NC_WIRE_REQUEST, NULL, 0);
		ck_assert_int_eq(nc_responder_gone(responder, &open), 0);
		push_piece(tag);
		ck_assert_int_eq(nc_responder_gone(responder, &open), 0);
		ck_assert_int_eq(join(threads[0]), 1);
		ck_assert_int_eq(join(threads[1]), 1);
		ck_assert_int_eq(nc_responder_abort(responder, &open), 0);
		ck_assert_int_eq(nc_responder_respond(responder, &other, &empty), 0);
		await_response(tag);
		await_response(tag + 1);
	}
	close_ends();
}
END_TEST

/* A thread that waits for a request does not remain when another one completes it. */
START_TEST(test_completed_by_another)
{
	struct NC_request open, other;
	pthread_t threads[2];

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	for (unsigned way = 0; way < 2; way++) {
		accept_here(7, NC_WIRE_REQUEST_BODY, &open);
		if (way) {
			start_threads(&threads[1], 1, await_request, &other);
			await_waiting(1);
		}
		start_threads(&threads[0], 1, await_body, &open);
		await_waiting(1 + way);
		ck_assert_int_eq(nc_responder_respond(responder, &open, &empty), 0);
		ck_assert_int_eq(join(threads[0]), -EINVAL);
		await_response(7);
	}
	end_server();
	ck_assert_int_eq(join(threads[1]), 0);
	close_ends();
}
END_TEST

/* --- the end ------------------------------------------------------------------------ */

static void *fill_queue(void *context)
{
	struct NC_request request = {.tag = 99};
	int result;

	(void)context;
	while ((result = nc_responder_respond(responder, &request, &empty)) == 0)
		;
	return (void *)(intptr_t)result;
}

/* Whatever they wait for, all threads return. */
START_TEST(test_all_return)
{
	struct NC_request open, other, third;
	pthread_t threads[5];

	ck_assert_int_eq(open_pair(2, NC_CHANNEL_QUEUE, 512 << 10), 0);
	accept_here(7, NC_WIRE_REQUEST_BODY, &open);
	start_threads(&threads[0], 1, await_request, &other);
	start_threads(&threads[1], 1, await_request, &third);
	start_threads(&threads[2], 1, await_body, &open);
	start_threads(&threads[3], 2, fill_queue, NULL);
	await_waiting(5);
	end_server();
	ck_assert_int_eq(join(threads[0]), 0);
	ck_assert_int_eq(join(threads[1]), 0);
	for (unsigned i = 2; i < 5; i++)
		ck_assert_int_eq(join(threads[i]), -EPIPE);
	close_ends();
}
END_TEST

/* --- many requests with bodies and responses in pieces -------------------------------- */

#define JOBS 24u
#define PIECES 20u

static size_t unit;

static bool variables_good(const struct NC_request *request)
{
	char wanted[32];

	snprintf(wanted, sizeof(wanted), "TAG=%llu", (unsigned long long)request->tag);
	return request->variables_length == strlen(wanted) + 1 &&
	       strcmp(request->variables, wanted) == 0;
}

/* Sends a piece for each piece of the body.  Returns NULL if all went as it should. */
static const char *serve_one(struct NC_request *request)
{
	const struct NC_range part = {.id = unit, .length = 1};
	struct NC_range piece;
	unsigned count = 0;
	int got;

	if (nc_responder_respond(responder, request, &begin))
		return "respond";
	while ((got = nc_responder_body(responder, request, &piece, 0)) == 1) {
		count++;
		if (nc_responder_send(responder, request, &part, 1,
				      NC_RESPONSE_MORE | NC_RESPONSE_KEEP))
			return "send";
	}
	if (got || count != PIECES)
		return "body";
	if (!variables_good(request))
		return "variables";
	return nc_responder_send(responder, request, NULL, 0, 0) ? "the last piece" : NULL;
}

static void *serve_all(void *context)
{
	struct NC_request request;
	const char *wrong = NULL;
	int got;

	(void)context;
	while (!wrong && (got = nc_responder_accept(responder, &request, 0)) == 1)
		wrong = variables_good(&request) ? serve_one(&request) : "variables at first";
	return (void *)(uintptr_t)(wrong ? wrong : got ? "accept" : NULL);
}

/* The server's side of a request. */
struct job {
	unsigned given, held; /* pieces of its body: all, and those that the worker has */
	unsigned unsent;      /* pieces of the response */
	bool ended, complete;
};

static bool push_if_room(uint64_t tag, enum nc_wire_kind kind, const void *what, size_t length)
{
	struct nc_wire_request wire = {.tag = tag, .length = (uint32_t)length, .kind = kind};

	return nc_queue_push_leaving(&channel.requests, &wire, sizeof(wire), what, length,
				     NC_CHANNEL_RESERVED) == 0;
}

static void push_job(uint64_t tag, struct job *job)
{
	const struct NC_range piece = {.id = 1, .length = 1};

	while (job->given < PIECES && job->held < NC_WORKER_WINDOW &&
	       push_if_room(tag, NC_WIRE_PIECE, &piece, sizeof(piece))) {
		job->given++;
		job->held++;
	}
	if (job->given == PIECES && !job->ended)
		job->ended = push_if_room(tag, NC_WIRE_LAST, NULL, 0);
	if (job->unsent >= NC_WORKER_WINDOW / 2) {
		struct nc_wire_request sent = {
			.tag = tag, .kind = NC_WIRE_SENT, .count = job->unsent};

		ck_assert_int_eq(nc_queue_push(&channel.requests, &sent, sizeof(sent), NULL, 0), 0);
		job->unsent = 0;
	}
	ring_here();
}

static void note_response(struct job *job, const struct nc_wire_response *wire)
{
	if (wire->flags & NC_RESPONSE_TAKEN) {
		ck_assert_uint_gt(job->held, 0);
		job->held--;
		return;
	}
	ck_assert(!(wire->flags & NC_RESPONSE_ABORTED));
	job->unsent++;
	ck_assert_uint_le(job->unsent, NC_WORKER_WINDOW);
	job->complete = !(wire->flags & NC_RESPONSE_MORE);
}

static void run_jobs(uint64_t first)
{
	struct job jobs[JOBS] = {0};
	unsigned complete = 0;
	char text[32];

	for (unsigned i = 0; i < JOBS; i++) {
		int length =
			snprintf(text, sizeof(text), "TAG=%llu", (unsigned long long)(first + i));

		while (!push_if_room(first + i, NC_WIRE_REQUEST_BODY, text, (size_t)length + 1))
			sched_yield();
		push_job(first + i, &jobs[i]);
	}
	while (complete < JOBS) {
		struct nc_wire_response wire;
		char record[512];
		struct job *job;
		int64_t length = nc_queue_pop(&channel.responses, record, sizeof(record));

		ck_assert_int_ge(length, 0);
		if (length == 0) {
			sched_yield();
			continue;
		}
		if (nc_queue_must_ring_room(&channel.responses))
			nc_doorbell_ring(ring);
		memcpy(&wire, record, sizeof(wire));
		ck_assert(wire.tag >= first && wire.tag < first + JOBS);
		job = &jobs[wire.tag - first];
		ck_assert(!job->complete);
		note_response(job, &wire);
		complete += job->complete;
		if (!job->complete)
			push_job(wire.tag, job);
	}
}

START_TEST(test_many_in_pieces)
{
	pthread_t threads[THREADS];
	NC_handle handle;

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	ck_assert_int_eq(nc_handle_alloc(&handle, &attached, 16, 0, NC_KIND_RECYCLED, 0), 0);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	unit = NC_cache_id(&handle);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	start_threads(threads, THREADS, serve_all, NULL);
	for (unsigned round = 0; round < scaled(50); round++)
		run_jobs(1 + round * JOBS);
	end_server();
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_pstr_eq((const char *)join(threads[i]), NULL);
	close_ends();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_as_many_as_threads);
	tcase_add_test(tcase, test_response_leaves);
	tcase_add_test(tcase, test_each_its_own);
	tcase_add_test(tcase, test_taken_for_others);
	tcase_add_test(tcase, test_completed_by_another);
	tcase_add_test(tcase, test_all_return);
	tcase_add_test(tcase, test_many_in_pieces);
}

RUN_SUITE("responder-threads", fill)
