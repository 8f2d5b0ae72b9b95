/* SPDX-License-Identifier: MIT */
/*
 * fuzz-rpc-client.c - a member's calls to an owner with arbitrary replies
 * (libnabc/wire/rpc-client.c): each call ends, with a valid reply or an error, and no
 * received descriptor stays open.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/peer.h"
#include "os/segment.h"
#include "store/revocation-map.h"
#include "wire/rpc-client.h"
#include "wire/wire.h"

#include "descriptors.h"
#include "fuzz.h"

#define QUESTIONS 4u

static struct nc_revocation_map map;

/* Chooses descriptors for replies: a revocation map, a pipe's end, and so on. */
static unsigned choose_fds(unsigned choice, const int *pipe_ends, int *fds)
{
	unsigned count = choice & 3;

	for (unsigned i = 0; i < count; i++)
		fds[i] = choice >> (2 + i) & 1 ? map.segment.fd : pipe_ends[i & 1];
	return count;
}

/* Sends a reply with an arbitrary head, or plain bytes. */
static void reply(struct input *input, int socket, const int *pipe_ends)
{
	unsigned choice = (unsigned)input_number(input, 1), count;
	size_t length = input_number(input, 1);
	const uint8_t *bytes;
	int fds[3];
	struct {
		struct nc_wire_reply reply;
		uint8_t behind[255];
	} message = {.reply = {.magic = NC_WIRE_MAGIC}};

	count = choose_fds((unsigned)input_number(input, 1), pipe_ends, fds);
	message.reply.tag = input_number(input, 1);
	message.reply.error = (int32_t)input_number(input, 1);
	message.reply.flags = (uint32_t)input_number(input, 1) & 7;
	bytes = input_bytes(input, &length);
	message.reply.length = (uint32_t)length;
	if (length)
		memcpy(message.behind, bytes, length);
	if (choice & 1)
		(void)nc_peer_send(socket, bytes, length, fds, count);
	else
		(void)nc_peer_send(socket, &message, sizeof(message.reply) + length, fds, count);
}

static void call(struct nc_rpc_client *rpc, unsigned choice)
{
	char room[100];
	struct nc_rpc_client_load load = {.room = choice & 16 ? room : NULL,
					  .room_size = sizeof(room)};
	struct nc_wire_call call = {.op = 1 + choice % (NC_WIRE_OPS - 1)};
	struct nc_wire_reply reply;
	int error = nc_rpc_client_call(rpc, &call, &load, &reply);

	MUST(error <= 0 && error > -4096);
	if (error) {
		MUST(load.fd == -1);
		return;
	}
	MUST(reply.tag == call.tag && reply.error == 0);
	MUST(reply.length <= (load.room ? sizeof(room) : 0));
	if (load.fd >= 0)
		close(load.fd);
	/* An accepted revocation map is readable. */
	if (rpc->revocations.base)
		for (unsigned slot = 0; slot < NC_REVOCATION_MAP_SLOTS; slot += 512)
			(void)atomic_load(nc_revocation_map_slot(&rpc->revocations, slot));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct nc_rpc_client rpc;
	int pair[2], ends[2];
	unsigned before;

	if (!map.segment.base)
		MUST(nc_revocation_map_open(&map) == 0);
	before = open_descriptors();
	MUST(nc_peer_pair(pair) == 0 && pipe2(ends, O_CLOEXEC) == 0);
	nc_rpc_client_init(&rpc);
	nc_rpc_client_open(&rpc, pair[1]);
	for (unsigned i = 0; i < QUESTIONS && input.left; i++) {
		unsigned choice = (unsigned)input_number(&input, 1);

		/* All replies are sent before, the last time followed by the end. */
		for (unsigned k = choice >> 6; k > 0 && input.left; k--)
			reply(&input, pair[0], ends);
		if (i == QUESTIONS - 1 || !input.left || choice & 32)
			shutdown(pair[0], SHUT_WR);
		else
			(void)nc_peer_send(
				pair[0],
				&(struct nc_wire_reply){.magic = NC_WIRE_MAGIC, .tag = rpc.tag + 1},
				sizeof(struct nc_wire_reply), NULL, 0);
		call(&rpc, choice & 31);
	}
	nc_rpc_client_fini(&rpc);
	close(pair[0]);
	close(pair[1]);
	close(ends[0]);
	close(ends[1]);
	MUST(open_descriptors() == before);
	return 0;
}
