/* SPDX-License-Identifier: MIT */
/*
 * fuzz-backend-racing.c - a worker that writes to its queue, to its table and to the
 * number of begun requests at the very moment when the server reads them.  The input
 * is what it writes; meanwhile the server takes responses, some of which are valid,
 * and submits and withdraws requests.
 */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "cache/remote-member.h"
#include "os/queue.h"
#include "store/unit.h"
#include "wire/channel.h"
#include "wire/wire.h"
#include "worker/backend.h"

#include "fuzz.h"
#include "racer.h"
#include "server.h"

#define ROUNDS 30u

/* Adds a place in the queue of responses or in the table, and a word for it. */
static void add_write(struct input *input)
{
	unsigned where = (unsigned)input_number(input, 1), place = (unsigned)input_number(input, 1);
	struct nc_queue_shared *queue = server_channel.responses.shared;
	uint64_t word = input_number(input, where & 1 ? 8 : 2);
	struct nc_unit_shared *entry = server_entry(place / 4 % SERVER_SLOTS);
	struct nc_queue_shared *requests = server_channel.requests.shared;

	if (where & 8) {
		racer_add(where & 2 ? &requests->tail : &requests->claims,
			  where & 4 ? word : NC_CHANNEL_CLAIMS + place);
		return;
	}
	switch (where >> 1 & 3) {
	case 0:
		racer_add(&queue->head, word);
		break;
	case 1:
		racer_add(queue->data + 8 * place, word);
		break;
	case 2:
		racer_add(&entry->word + place % 4,
			  place % 4 ? word : nc_shared_word(1, NC_SHARED_LIVE));
		break;
	default:
		racer_add(&entry->word + place % 4, place % 4 == 1 ? server_first() : word);
		break;
	}
}

static void publish(uint32_t slot)
{
	struct nc_unit_shared *entry = server_entry(slot);

	atomic_store(&entry->at, server_first());
	atomic_store(&entry->size, 5000);
	atomic_store(&entry->fraglen, SERVER_PAGE);
	atomic_store(&entry->word, nc_shared_word(1, NC_SHARED_LIVE));
}

static void push(unsigned round)
{
	struct {
		struct nc_wire_response wire;
		struct NC_range ranges[2];
	} record = {.wire = {.tag = round, .status = 200, .ranges = 2, .flags = NC_RESPONSE_KEEP}};

	for (unsigned i = 0; i < 2; i++)
		record.ranges[i] = (struct NC_range){.id = server_id((round + i) % SERVER_SLOTS, 1),
						     .length = 4000};
	(void)nc_queue_push(&server_channel.responses, &record, sizeof(record), NULL, 0);
}

/* Returns false if the server would kill the worker. */
static bool take(void)
{
	struct NC_response response;
	uint64_t tag;
	int result = nc_backend_take(server, 0, &tag, &response);

	MUST(result == 1 || result == 0 || result == -EPROTO);
	if (result == 1) {
		server_check(&response);
		server_release(&response);
	}
	return result >= 0;
}

/* Every second request has a body.  Returns false if the server would kill the worker. */
static bool submit_and_withdraw(unsigned round)
{
	unsigned left = UINT_MAX;
	int result;

	for (unsigned i = 0; i < 2; i++)
		(void)nc_backend_send(server, 0, 2 * round + i, "A=b", 4, i ? NC_REQUEST_BODY : 0);
	result = nc_backend_withdraw(server, 0, round % 3, &left);
	MUST(result == -EPROTO || (result >= 0 && (unsigned)result <= round % 3));
	if (result < 0)
		return false;
	MUST((unsigned)result + left <= server->channel[0].submitted);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	bool good = true;

	server_open();
	for (unsigned i = 0; i < SERVER_SLOTS; i++)
		publish(i);
	while (input.left)
		add_write(&input);
	racer_start();
	for (unsigned i = 0; i < ROUNDS && good; i++) {
		push(i);
		good = take() && submit_and_withdraw(i) && nc_backend_sleep(server, 0, 1) >= 0;
	}
	racer_stop();
	MUST(server->remote->held == 0);
	server_close();
	return 0;
}
