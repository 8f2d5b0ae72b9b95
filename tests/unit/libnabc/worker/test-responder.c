/* SPDX-License-Identifier: MIT */
/*
 * test-responder.c - unit tests of responder.c: both ends of a backend in one process,
 * with a thread of its own for the worker.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "cache/index.h"
#include "membership/serve.h"
#include "membership/handle.h"
#include "os/peer.h"
#include "os/queue.h"
#include "os/segment.h"
#include "wire/channel.h"
#include "wire/wire.h"
#include "worker/responder.h"

#include "responder-fixture.h"
#include "suite.h"

START_TEST(test_bad_server)
{
	static const struct {
		unsigned channels;
		uint32_t queue_size;
		size_t memory;
	} bad[] = {
		{0, 0, 256 << 10},	 {1, 0, 256 << 10},	   {1, 65535, 256 << 10},
		{1, 3 << 14, 256 << 10}, {1, 1u << 31, 256 << 10}, {1, NC_CHANNEL_QUEUE, 128 << 10},
		{1, 1, 256 << 10},	 {1, 32, 256 << 10},
	};
	unsigned descriptors = open_descriptors();

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(open_pair(bad[i].channels, bad[i].queue_size, bad[i].memory),
				 -EPROTO);
		close_owner();
		ck_assert_uint_eq(open_descriptors(), descriptors);
	}
}
END_TEST

/* A worker with neither segment nor channels is refused. */
START_TEST(test_nothing_to_work_with)
{
	unsigned descriptors = open_descriptors();

	own_memory = 0;
	ck_assert_int_eq(open_pair(0, 0, 256 << 10), -EPROTO);
	close_owner();
	own_memory = 256 << 10;
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

static _Atomic unsigned accepted;

/* Accepts until told otherwise; the result is the last return value. */
static void *accept_all(void *context)
{
	struct NC_request request;
	int result;

	(void)context;
	while ((result = nc_responder_accept(responder, &request, 0)) == 1)
		atomic_fetch_add(&accepted, 1);
	return (void *)(intptr_t)result;
}

/* A sleeping worker learns from the end of the pipe that the server has exited. */
START_TEST(test_accept_ends)
{
	pthread_t thread;
	void *result;

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	atomic_store(&accepted, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, accept_all, NULL), 0);
	for (unsigned i = 0; i < 100; i++) {
		submit_here(i);
		while (i % 3 == 0 && atomic_load(&accepted) <= i)
			sched_yield();
	}
	close(ring);
	ring = -1;
	pthread_join(thread, &result);
	ck_assert_int_eq((intptr_t)result, 0);
	/* Earlier requests were accepted first. */
	ck_assert_uint_eq(atomic_load(&accepted), 100);
	close_ends();
}
END_TEST

START_TEST(test_bad_requests)
{
	struct nc_wire_request request = {.length = 100};
	struct NC_request got;

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	ck_assert_int_eq(nc_queue_push(&channel.requests, &request, sizeof(request), "A=1", 4), 0);
	ck_assert_int_eq(nc_responder_accept(responder, &got, 0), -EPROTO);
	request.length = 3;
	ck_assert_int_eq(nc_queue_push(&channel.requests, &request, sizeof(request), "A=1", 3), 0);
	ck_assert_int_eq(nc_responder_accept(responder, &got, 0), -EPROTO);
	atomic_store(&channel.requests.shared->head, UINT64_MAX / 2);
	ck_assert_int_eq(nc_responder_accept(responder, &got, 0), -EPROTO);
	close_ends();
}
END_TEST

/* Submits a request with one variable, a letter that is repeated. */
static void submit_letter(uint64_t tag, char letter, size_t count)
{
	struct nc_wire_request request = {.tag = tag, .length = (uint32_t)count + 1};
	char value[NC_WIRE_BLOCK_MAX] = "";

	memset(value, letter, count);
	ck_assert_int_eq(
		nc_queue_push(&channel.requests, &request, sizeof(request), value, count + 1), 0);
}

static void check_letter(const struct NC_request *request, char letter, size_t count)
{
	ck_assert_uint_eq(request->variables_length, count + 1);
	ck_assert_uint_eq(strlen(request->variables), count);
	for (size_t i = 0; i < count; i++)
		ck_assert_int_eq(request->variables[i], letter);
}

/* Variables remain until the request is over, whatever is accepted and answered before. */
START_TEST(test_variables_remain)
{
	const struct NC_response empty = NC_RESPONSE_INIT(.status = 204);
	struct NC_request request[26];

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	for (unsigned i = 0; i < 26; i++) {
		submit_letter(i, (char)('a' + i), 100 * i);
		ck_assert_int_eq(nc_responder_accept(responder, &request[i], 0), 1);
	}
	for (unsigned i = 0; i < 26; i += 2)
		ck_assert_int_eq(nc_responder_respond(responder, &request[i], &empty), 0);
	submit_letter(26, 'z', 1000);
	ck_assert_int_eq(nc_responder_accept(responder, &request[0], 0), 1);
	check_letter(&request[0], 'z', 1000);
	for (unsigned i = 1; i < 26; i += 2)
		check_letter(&request[i], (char)('a' + i), 100 * i);
	close_ends();
}
END_TEST

/* A second request with the tag of one whose body is being read. */
START_TEST(test_two_of_one_tag)
{
	struct nc_wire_request wire = {.tag = 7, .kind = NC_WIRE_REQUEST_BODY};
	struct NC_request request;
	struct NC_range piece;

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	ck_assert_int_eq(nc_queue_push(&channel.requests, &wire, sizeof(wire), NULL, 0), 0);
	ck_assert_int_eq(nc_responder_accept(responder, &request, 0), 1);
	submit_here(7);
	close(ring);
	ring = -1;
	ck_assert_int_eq(nc_responder_body(responder, &request, &piece, 0), -EPROTO);
	close_ends();
}
END_TEST

/* The one that the worker has is answered; the other one is never accepted. */
START_TEST(test_withdrawn_of_one_tag)
{
	const struct NC_response begun = NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE);
	uint64_t told = NC_CHANNEL_CLAIMS + 1;
	struct NC_request request;

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	nc_queue_set_claims(&channel.requests, NC_CHANNEL_CLAIMS);
	submit_here(7);
	ck_assert_int_eq(nc_responder_accept(responder, &request, 0), 1);
	ck_assert_int_eq(nc_responder_respond(responder, &request, &begun), 0);
	submit_here(7);
	ck_assert(nc_queue_claim(&channel.requests, &told, told + 1));
	ck_assert_int_eq(nc_responder_send(responder, &request, NULL, 0, 0), 0);
	ck_assert_int_eq(nc_responder_send(responder, &request, NULL, 0, 0), -EINVAL);
	ck_assert_int_eq(nc_responder_accept(responder, &request, 0), -EPROTO);
	close_ends();
}
END_TEST

static void *respond_until_full(void *context)
{
	struct NC_request request = {.tag = 1};
	struct NC_response response = NC_RESPONSE_INIT(.status = 204);
	int result;

	(void)context;
	while ((result = nc_responder_respond(responder, &request, &response)) == 0)
		;
	return (void *)(intptr_t)result;
}

/* A worker that waits at a full queue does not wait for a server that has exited. */
START_TEST(test_respond_ends)
{
	pthread_t thread;
	void *result;

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, respond_until_full, NULL), 0);
	while (!atomic_load(&channel.responses.shared->blocked))
		sched_yield();
	close(ring);
	ring = -1;
	pthread_join(thread, &result);
	ck_assert_int_eq((intptr_t)result, -EPIPE);
	close_ends();
}
END_TEST

static void respond_here(uint64_t tag)
{
	struct NC_request request = {.tag = tag};
	struct NC_response response = NC_RESPONSE_INIT(.status = 204);

	ck_assert_int_eq(nc_responder_respond(responder, &request, &response), 0);
}

/*
 * A server that sleeps for several responses is woken for them, and for fewer when no
 * more follow.
 */
START_TEST(test_rings_for_several)
{
	struct NC_request request;
	pthread_t thread;
	char record[512];
	void *result;

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	ck_assert(!nc_queue_arm(&channel.responses, 3));
	respond_here(1);
	respond_here(2);
	ck_assert_uint_eq(rings(), 0);
	respond_here(3);
	ck_assert_uint_eq(rings(), 1);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_gt(nc_queue_pop(&channel.responses, record, sizeof(record)), 0);

	/* With a pending request it continues; without one it rings before it sleeps. */
	ck_assert(!nc_queue_arm(&channel.responses, 3));
	respond_here(4);
	submit_here(1);
	ck_assert_int_eq(nc_responder_accept(responder, &request, 0), 1);
	ck_assert_uint_eq(rings(), 0);
	atomic_store(&accepted, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, accept_all, NULL), 0);
	while (!rings())
		sched_yield();
	close(ring);
	ring = -1;
	pthread_join(thread, &result);
	ck_assert_int_eq((intptr_t)result, 0);

	/* It also rings before it exits. */
	ck_assert_int_gt(nc_queue_pop(&channel.responses, record, sizeof(record)), 0);
	ck_assert(!nc_queue_arm(&channel.responses, 3));
	respond_here(5);
	nc_responder_close(responder);
	ck_assert_uint_eq(rings(), 1);
	nc_index_fini(&attached);
	close_owner();
}
END_TEST

/* A server that sleeps for more than fit into the queue is woken when it is full. */
START_TEST(test_rings_when_full)
{
	pthread_t thread;
	void *result;

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	ck_assert(!nc_queue_arm(&channel.responses, UINT32_MAX));
	ck_assert_int_eq(pthread_create(&thread, NULL, respond_until_full, NULL), 0);
	while (!rings())
		sched_yield();
	ck_assert(atomic_load(&channel.responses.shared->blocked));
	close(ring);
	ring = -1;
	pthread_join(thread, &result);
	ck_assert_int_eq((intptr_t)result, -EPIPE);
	close_ends();
}
END_TEST

/*
 * For any number that it sleeps for, it is woken at 1 MiB of bodies that it has not
 * taken; taken bodies no longer count.
 */
START_TEST(test_rings_for_bytes)
{
	const size_t size = 128 << 10;
	struct NC_request request = {.tag = 1};
	struct NC_response response = NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_KEEP,
						       .body = {.length = size});
	char record[512];
	NC_handle handle;

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	ck_assert_int_eq(nc_handle_alloc(&handle, &attached, size, 0, NC_KIND_RECYCLED, 0), 0);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	response.body.id = NC_cache_id(&handle);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	for (unsigned round = 0; round < 2; round++) {
		ck_assert(!nc_queue_arm(&channel.responses, 100));
		for (unsigned i = 1; i <= 8; i++) {
			ck_assert_int_eq(nc_responder_respond(responder, &request, &response), 0);
			ck_assert_uint_eq(rings(), i == 8);
		}
		while (nc_queue_pop(&channel.responses, record, sizeof(record)) > 0)
			;
		ck_assert(!nc_queue_arm(&channel.responses, 100));
		for (unsigned i = 0; i < 20; i++) {
			ck_assert_int_eq(nc_responder_respond(responder, &request, &response), 0);
			ck_assert_int_gt(nc_queue_pop(&channel.responses, record, sizeof(record)),
					 0);
		}
		ck_assert_uint_eq(rings(), 0);
	}
	close_ends();
}
END_TEST

/* A server that corrupts the tail of the responses cannot make the worker wait forever. */
START_TEST(test_respond_to_nonsense)
{
	struct NC_request request = {.tag = 1};
	struct NC_response response = NC_RESPONSE_INIT(.status = 204);

	ck_assert_int_eq(open_pair(1, NC_CHANNEL_QUEUE, 256 << 10), 0);
	atomic_store(&channel.responses.shared->tail, UINT64_MAX / 2);
	ck_assert_int_eq(nc_responder_respond(responder, &request, &response), -EPROTO);
	close_ends();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_bad_server);
	tcase_add_test(tcase, test_nothing_to_work_with);
	tcase_add_test(tcase, test_accept_ends);
	tcase_add_test(tcase, test_bad_requests);
	tcase_add_test(tcase, test_variables_remain);
	tcase_add_test(tcase, test_two_of_one_tag);
	tcase_add_test(tcase, test_withdrawn_of_one_tag);
	tcase_add_test(tcase, test_respond_ends);
	tcase_add_test(tcase, test_rings_for_several);
	tcase_add_test(tcase, test_rings_when_full);
	tcase_add_test(tcase, test_rings_for_bytes);
	tcase_add_test(tcase, test_respond_to_nonsense);
}

RUN_SUITE("responder", fill)
