/* SPDX-License-Identifier: MIT */
/*
 * fuzz-responder.c - a server that sends arbitrary messages to its worker
 * (libnabc/worker/responder*.c, wire/pending.c): the worker finds readable requests,
 * or an error, and no message breaks it.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/fragment.h"
#include "cache/index.h"
#include "membership/serve.h"
#include "os/peer.h"
#include "os/queue.h"
#include "os/segment.h"
#include "wire/channel.h"
#include "wire/wire.h"
#include "worker/responder.h"

#include "descriptors.h"
#include "fuzz.h"

#define MIB ((size_t)1 << 20)
#define REQUESTS_MAX 8u
#define TAGS 6u

static struct nc_index own, attached;
static struct nc_serve serve;
static struct nc_guest *guest;
static struct nc_segment queues;
static struct nc_responder *responder;
static struct nc_channel channel; /* the server's end */
static int ends[2], fds[3];
static size_t unit; /* one of the worker's */

/* Requests that the worker has. */
static struct NC_request requests[REQUESTS_MAX];
static unsigned request_count;

static void make_unit(void)
{
	struct nc_layout layout;
	struct nc_unit *filled;

	MUST(nc_layout_init(&layout, 5000, 0) == 0);
	MUST(nc_index_alloc(&attached, &layout, NC_KIND_RECYCLED, &filled) == 0);
	MUST(nc_index_insert(&attached, filled, NULL, &unit) == 0);
}

/* The doorbell has no other end: instead of waiting, a worker finds that the server has exited. */
static void open_all(void)
{
	static const struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB, .flags = NC_CACHE_NO_URING);
	struct nc_serve_offer offer = {
		.memory = 64 << 10, .channels = 1, .queue_size = NC_CHANNEL_QUEUE, .extra = fds};
	int ring;

	MUST(nc_index_init_owner(&own, &options) == 0);
	MUST(nc_segment_create(&queues, 256 << 10, false, true) == 0);
	MUST(nc_doorbell_open_pipe(&fds[1], &ring) == 0);
	close(ring);
	fds[0] = queues.fd;
	fds[2] = nc_doorbell_open();
	MUST(fds[2] >= 0 && nc_peer_pair(ends) == 0);
	MUST(nc_serve_init(&serve, &own) == 0);
	MUST(nc_serve_offer(&serve, ends[0], &offer, &guest) == 0);
	MUST(nc_responder_open(&attached, ends[1], &responder) == 0);
	nc_channel_init(&channel, queues.base, 0, NC_CHANNEL_QUEUE);
	nc_queue_set_claims(&channel.requests, NC_CHANNEL_CLAIMS);
	make_unit();
	request_count = 0;
}

static void close_all(void)
{
	nc_responder_close(responder);
	nc_index_fini(&attached);
	nc_serve_dismiss(&serve, guest);
	close(ends[1]);
	close(fds[1]);
	close(fds[2]);
	nc_segment_close(&queues);
	nc_serve_fini(&serve);
	nc_index_fini(&own);
}

/* Adds a record that is almost valid. */
static void push(struct input *input)
{
	unsigned how = (unsigned)input_number(input, 1);
	struct NC_range range = {.id = input_number(input, 1), .length = 100};
	struct nc_wire_request record = {.tag = input_number(input, 1) % TAGS, .kind = how % 8};
	char variables[256] = "A=b";
	size_t length = 0;

	if (record.kind <= NC_WIRE_REQUEST_BODY)
		length = how & 8 ? input_number(input, 1) : 4;
	else if (record.kind <= NC_WIRE_LAST)
		length = how & 8 ? 0 : sizeof(range);
	else if (record.kind == NC_WIRE_SENT)
		record.count = (uint32_t)input_number(input, 1);
	if (record.kind != NC_WIRE_SENT)
		record.length = (uint32_t)length + (how >> 6 == 3);
	(void)nc_queue_push(&channel.requests, &record, sizeof(record),
			    record.kind <= NC_WIRE_REQUEST_BODY ? (const void *)variables
								: (const void *)&range,
			    length);
}

static void scribble(struct input *input)
{
	size_t at = input_number(input, 2), length = 1 + input_number(input, 1) % 16;
	const uint8_t *bytes;

	if (at & 0x8000)
		at %= sizeof(struct nc_queue_shared);
	bytes = input_bytes(input, &length);
	if (length)
		memcpy(queues.base + at, bytes, length);
}

/* The server withdraws requests, or writes another number of begun ones. */
static void withdraw(struct input *input, unsigned how)
{
	uint64_t told = nc_queue_claims(&channel.requests), number = input_number(input, 1);

	if (how & 8)
		nc_queue_set_claims(&channel.requests,
				    NC_CHANNEL_CLAIMS + (uint64_t)(int8_t)number);
	else
		(void)nc_queue_claim(&channel.requests, &told, told + number % 8);
}

static void accept_one(unsigned flags)
{
	struct NC_request request;
	size_t walked = 0;
	int result = nc_responder_accept(responder, &request, flags);

	MUST(result <= 1);
	if (result != 1 || request.flags & NC_REQUEST_GONE)
		return;
	MUST(request.channel == 0 && request.variables_length <= NC_WIRE_BLOCK_MAX);
	while (walked < request.variables_length)
		walked += strlen(request.variables + walked) + 1;
	MUST(walked == request.variables_length);
	if (request_count < REQUESTS_MAX)
		requests[request_count++] = request;
}

static void answer(struct input *input, unsigned how)
{
	struct NC_request *request = &requests[how % request_count];
	struct NC_range range = {.id = unit, .length = 1000}, piece;
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_KEEP, .body = range);
	unsigned flags = (how & 8 ? NC_RESPONSE_MORE : 0) | (how & 4 ? NC_RESPONSE_NOWAIT : 0);
	int result;

	switch (input_number(input, 1) % 6) {
	case 0:
		response.flags |= flags;
		result = nc_responder_respond(responder, request, &response);
		break;
	case 1:
		result = nc_responder_send(responder, request, &range, 1, NC_RESPONSE_KEEP | flags);
		break;
	case 2:
		result = nc_responder_body(responder, request, &piece, how & NC_BODY_NOWAIT);
		break;
	case 3:
		result = nc_responder_gone(responder, request);
		break;
	case 4:
		result = nc_responder_abort(responder, request);
		break;
	default:
		*request = requests[--request_count];
		return;
	}
	MUST(result <= 1 && result > -4096);
}

static void act(struct input *input)
{
	unsigned choice = (unsigned)input_number(input, 1);

	switch (choice % 8) {
	case 0:
	case 1:
	case 2:
		push(input);
		break;
	case 3:
		scribble(input);
		break;
	case 4:
		accept_one(choice >> 3 & (NC_ACCEPT_NOWAIT | NC_ACCEPT_EVENTS));
		if (choice & 64)
			MUST(nc_responder_fd(responder) >= 0);
		break;
	case 7:
		withdraw(input, choice >> 3);
		break;
	default:
		if (request_count)
			answer(input, choice >> 3);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned before = open_descriptors();
	struct input input = {data, size};

	open_all();
	while (input.left)
		act(&input);
	close_all();
	MUST(open_descriptors() == before);
	return 0;
}
