/* SPDX-License-Identifier: MIT */
/*
 * fuzz-backend.c - a worker that sends arbitrary responses (libnabc/worker/backend.c,
 * backend-requests.c, send-window.c, queue.c): the server can read and send what it
 * accepts, these are bytes of that worker, and all is released in the end.  For any
 * number of begun requests that the worker writes, the server withdraws only requests
 * that it has submitted.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "cache/remote-member.h"
#include "os/queue.h"
#include "os/segment.h"
#include "store/unit.h"
#include "wire/channel.h"
#include "wire/wire.h"
#include "worker/backend.h"

#include "fuzz.h"
#include "server.h"
#include "withdraw.h"

#define KEPT 8u

/* Responses that are being sent. */
static struct {
	struct NC_response response;
	struct NC_range ranges[NC_RESPONSE_RANGES_MAX];
} kept[KEPT];
static unsigned kept_count;
static unsigned named[SERVER_SLOTS]; /* generation */
static bool broken;		     /* the worker would be killed */

static void publish(struct input *input, uint32_t slot)
{
	struct nc_unit_shared *entry = server_entry(slot);
	unsigned how = (unsigned)input_number(input, 1);

	named[slot] += how >> 6;
	atomic_store(&entry->at, server_first() + SERVER_PAGE * (how % 8));
	atomic_store(&entry->size, input_number(input, 2));
	atomic_store(&entry->fraglen, how & 32 ? input_number(input, 2) : SERVER_PAGE);
	atomic_store(&entry->word,
		     nc_shared_word(named[slot], how & 16 ? how % 5 : NC_SHARED_LIVE));
}

static size_t choose_id(struct input *input)
{
	unsigned choice = (unsigned)input_number(input, 1);

	if (choice < 224)
		return server_id(choice % SERVER_SLOTS,
				 named[choice % SERVER_SLOTS] - (choice >> 5 == 6));
	return choice < 240 ? server_unit : input_number(input, 8);
}

/* Adds a response that is almost valid. */
static void push(struct input *input)
{
	unsigned how = (unsigned)input_number(input, 1);
	struct {
		struct nc_wire_response wire;
		struct NC_range ranges[NC_WIRE_RANGES_MAX + 1];
		char headers[256];
	} record = {.wire = {.tag = input_number(input, 1) % 8, .status = 200, .ranges = how % 4}};
	size_t length;

	if (how & 4)
		record.wire.status = (int32_t)input_number(input, 2);
	if (how & 8)
		record.wire.flags = (uint32_t)input_number(input, 4);
	if (how & 16)
		record.wire.flags = NC_RESPONSE_MORE;
	if (how & 32) {
		record.wire.flags |= NC_RESPONSE_PIECE;
		record.wire.status = 0;
	}
	if (how & 64)
		record.wire.ranges = (uint32_t)input_number(input, 1) % (NC_WIRE_RANGES_MAX + 2);
	if (how & 128)
		record.wire.headers_length = (uint32_t)input_number(input, 1);
	length = sizeof(record.wire) + record.wire.ranges * sizeof(record.ranges[0]);
	for (unsigned i = 0; i < record.wire.ranges; i++) {
		record.ranges[i].id = choose_id(input);
		record.ranges[i].offset = input_number(input, 1);
		record.ranges[i].length = input_number(input, 2);
	}
	(void)nc_queue_push(&server_channel.responses, &record, length, record.headers,
			    record.wire.headers_length);
}

/* Overwrites bytes of the queues; the positions matter most. */
static void scribble(struct input *input)
{
	size_t at = input_number(input, 2), length = 1 + input_number(input, 1) % 16;
	const uint8_t *bytes;

	if (at & 0x8000)
		at %= sizeof(struct nc_queue_shared);
	at += at & 1 ? nc_queue_footprint(NC_CHANNEL_QUEUE) : 0;
	bytes = input_bytes(input, &length);
	if (length)
		memcpy(server->queues.base + at % (2 * NC_CHANNEL_QUEUE), bytes, length);
}

static void keep(const struct NC_response *response)
{
	struct NC_response *to = &kept[kept_count].response;

	*to = *response;
	if (response->range_count)
		memcpy(kept[kept_count].ranges, response->ranges,
		       response->range_count * sizeof(response->ranges[0]));
	to->ranges = kept[kept_count++].ranges;
}

static void release_response(unsigned which)
{
	struct NC_response *response = &kept[which % kept_count].response;

	for (unsigned i = 0; i < response->range_count; i++)
		server_read(&response->ranges[i]);
	server_release(response);
	kept_count--;
	kept[which % (kept_count + 1)] = kept[kept_count];
	kept[which % (kept_count + 1)].response.ranges = kept[which % (kept_count + 1)].ranges;
}

static void take(void)
{
	struct NC_response response;
	uint64_t tag;
	int result = nc_backend_take(server, 0, &tag, &response);

	MUST(result == 1 || result == 0 || result == -EPROTO);
	broken |= result < 0;
	if (result != 1)
		return;
	server_check(&response);
	keep(&response);
	if (kept_count == KEPT)
		release_response(0);
}

/* The worker begins its next request, or writes another number. */
static void claim(struct input *input, unsigned how)
{
	struct nc_queue *requests = &server_channel.requests;
	uint64_t told = nc_queue_claims(requests);

	if (how & 8)
		nc_queue_set_claims(requests,
				    NC_CHANNEL_CLAIMS + (uint64_t)(int8_t)input_number(input, 1));
	else
		(void)nc_queue_claim(requests, &told, told + 1);
}

static void tell(struct input *input, unsigned how)
{
	struct NC_range piece = {.id = server_unit, .length = 10};
	uint64_t tag = input_number(input, 1);

	if ((how & 7) < 4)
		tag %= 8;
	switch (how & 7) {
	case 0:
		(void)nc_backend_send(server, 0, tag, "A=b", 4, how & 8 ? NC_REQUEST_BODY : 0);
		break;
	case 1:
		(void)nc_backend_give(server, 0, tag, &piece, how & 8 ? NC_BODY_LAST : 0);
		break;
	case 2:
		(void)nc_backend_sent(server, 0, tag);
		break;
	case 3:
		(void)nc_backend_cancel(server, 0, tag);
		break;
	case 4:
		broken |= !withdraw_checked((unsigned)tag);
		break;
	case 5:
		claim(input, how);
		break;
	case 6:
		withdraw_check_pending();
		break;
	default:
		nc_backend_wake(server, 0);
		MUST(nc_backend_sleep(server, 0, 1) >= 0);
		break;
	}
}

/* A word after which the rest of this is the same again. */
static void act(struct input *input)
{
	unsigned choice = (unsigned)input_number(input, 1);

	switch (choice % 8) {
	case 0:
		publish(input, choice >> 3 & 7);
		break;
	case 1:
	case 2:
		push(input);
		break;
	case 3:
		scribble(input);
		break;
	case 4:
		if (kept_count)
			release_response(choice >> 3);
		break;
	case 5:
		tell(input, choice >> 3);
		break;
	default:
		take();
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};

	server_open();
	kept_count = 0;
	broken = false;
	for (unsigned i = 0; i < SERVER_SLOTS; i++)
		named[i] = 1;
	while (input.left && !broken)
		act(&input);
	while (kept_count)
		release_response(0);
	MUST(server->remote->held == 0);
	server_close();
	return 0;
}
