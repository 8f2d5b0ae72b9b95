/* SPDX-License-Identifier: MIT */
/*
 * fuzz-welcome.c - a worker that attaches to a server which sends arbitrary messages
 * (libnabc/membership/attach.c, responder.c): it attaches with valid data, or not at
 * all, and in both cases closes every descriptor.  The welcome is a valid one in which
 * the input overwrites some bytes.
 */
#include <fcntl.h>
#include <nabc-worker.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "cache/index.h"
#include "os/peer.h"
#include "os/segment.h"
#include "wire/wire.h"
#include "worker/responder.h"

#include "descriptors.h"
#include "fuzz.h"

#define PAGE ((size_t)4096)
#define MEMORY (16 * PAGE)

static void open_segment(struct nc_segment *segment, size_t size)
{
	MUST(nc_segment_create(segment, size, false, true) == 0);
}

/* Without a server at the other end the worker does not wait. */
static void use(struct nc_responder *responder, struct nc_index *attached)
{
	struct NC_request request;

	MUST(nc_responder_accept(responder, &request, 0) <= 0);
	nc_responder_close(responder);
	nc_index_fini(attached);
}

/* A pipe whose other end is already closed. */
static int open_end(void)
{
	int ends[2];

	MUST(pipe2(ends, O_CLOEXEC) == 0);
	close(ends[1]);
	return ends[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nc_wire_welcome welcome = {.magic = NC_WIRE_MAGIC,
					  .version = NC_WIRE_VERSION,
					  .member = 1,
					  .slots = (uint32_t)(PAGE / NC_WIRE_SLOT),
					  .generation = 1,
					  .channels = 1,
					  .queue_size = 4096,
					  .segment_size = MEMORY,
					  .data_offset = PAGE,
					  .max_unit = MEMORY};
	struct input input = {data, size};
	unsigned before = open_descriptors(), count;
	struct nc_segment segment, queues;
	struct nc_responder *responder;
	static struct nc_index attached;
	int pair[2], fds[NC_PEER_FDS_MAX];

	open_segment(&segment, MEMORY);
	open_segment(&queues, (1 + input_number(&input, 1) % 8) * 4 * PAGE);
	MUST(nc_peer_pair(pair) == 0);
	fds[0] = segment.fd;
	fds[1] = queues.fd;
	fds[2] = open_end();
	/* The maximum for a channel: they are all the same. */
	for (unsigned i = 3; i < NC_PEER_FDS_MAX; i++)
		fds[i] = fds[2];
	count = (unsigned)input_number(&input, 1);
	while (input.left) {
		size_t at = input_number(&input, 1) % sizeof(welcome);

		((uint8_t *)&welcome)[at] = (uint8_t)input_number(&input, 1);
	}
	/* Mostly the right number, so that further checks are reached. */
	count = count < 240 ? nc_wire_welcome_fds(&welcome) : count - 240;
	if (count > NC_PEER_FDS_MAX - 1)
		count = NC_PEER_FDS_MAX - 1;
	(void)nc_peer_send(pair[0], &welcome, sizeof(welcome), welcome.slots ? fds : fds + 1,
			   count);
	close(pair[0]);
	if (nc_responder_open(&attached, pair[1], &responder) == 0)
		use(responder, &attached);
	close(pair[1]);
	close(fds[2]);
	nc_segment_close(&segment);
	nc_segment_close(&queues);
	MUST(open_descriptors() == before);
	return 0;
}
