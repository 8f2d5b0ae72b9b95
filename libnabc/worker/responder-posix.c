/* SPDX-License-Identifier: MIT */
/*
 * responder-posix.c - the worker's end of answers that go as bytes through a
 * pipe, as they would without shared memory.  One thread at a time.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "send/passage.h"
#include "worker/responder.h"

#define VECTORS 64u

static int write_all(struct nc_passage *passage, int fd)
{
	int error = nc_passage_fetch(passage, passage->message->range_count);

	if (error)
		return error;
	while (passage->at < passage->total) {
		struct iovec iov[VECTORS];
		size_t planned;
		unsigned count = nc_passage_plan(passage, passage->message->range_count, iov,
						 VECTORS, &planned);
		ssize_t done = writev(fd, iov, (int)count);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0)
			nc_passage_advance(passage, (size_t)done);
	}
	return 0;
}

int nc_responder_write(struct nc_responder *responder, uint32_t lane,
		       const struct nc_wire_response *wire, const struct NC_range *ranges,
		       const char *headers)
{
	size_t list = wire->ranges * sizeof(*ranges), room = responder->index->max_unit;
	struct NC_send message = {
		.header = responder->out,
		.header_length = sizeof(*wire) + list + wire->headers_length,
		.ranges = ranges,
		.range_count = wire->ranges,
	};
	struct nc_view views[NC_WIRE_RANGES_MAX];
	struct nc_passage passage;
	int error;

	for (uint32_t i = 0; i < wire->ranges; i++) {
		if (ranges[i].length > room)
			return -EMSGSIZE;
		room -= ranges[i].length;
	}
	memcpy(responder->out, wire, sizeof(*wire));
	if (list)
		memcpy(responder->out + sizeof(*wire), ranges, list);
	if (wire->headers_length)
		memcpy(responder->out + sizeof(*wire) + list, headers, wire->headers_length);
	error = nc_passage_open(&passage, responder->index, &message, views, true);
	if (error)
		return error;
	error = write_all(&passage, responder->lane[lane].doorbell);
	nc_passage_close(&passage);
	/* Their bytes have left this process. */
	for (uint32_t i = 0; !error && i < wire->ranges; i++)
		if (!nc_wire_keeps(wire->flags, i))
			(void)nc_index_destroy(responder->index, ranges[i].id);
	return error;
}
