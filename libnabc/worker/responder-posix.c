/* SPDX-License-Identifier: MIT */
/*
 * responder-posix.c - the worker's end of responses that are sent as bytes through
 * a pipe, as without shared memory.  Call it with the lock, so that no two threads mix
 * their bytes.
 */
#include <errno.h>
#include <nabc.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "cache/index.h"
#include "send/message.h"
#include "wire/wire.h"
#include "worker/responder.h"

#define VECTORS 64u

static int write_all(struct nc_message *message, int fd)
{
	int error = nc_message_fetch(message, message->spec->range_count);

	if (error)
		return error;
	while (message->at < message->total) {
		struct iovec iov[VECTORS];
		size_t planned;
		unsigned count = nc_message_plan(message, message->spec->range_count, iov, VECTORS,
						 &planned);
		ssize_t done = writev(fd, iov, (int)count);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0)
			nc_message_advance(message, (size_t)done);
	}
	return 0;
}

int nc_responder_write(struct nc_responder *responder, uint32_t channel,
		       const struct nc_wire_response *wire, const struct NC_range *ranges,
		       const char *headers)
{
	size_t list = wire->ranges * sizeof(*ranges), room = responder->index->max_unit;
	struct NC_send spec =
		NC_SEND_INIT(.header = responder->out,
			     .header_length = sizeof(*wire) + list + wire->headers_length,
			     .ranges = ranges, .range_count = wire->ranges);
	struct nc_view views[NC_WIRE_RANGES_MAX];
	struct nc_message message;
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
	error = nc_message_open(&message, responder->index, &spec, views);
	if (error)
		return error;
	error = write_all(&message, responder->channel[channel].doorbell);
	nc_message_close(&message);
	/* The bytes have been written: destroy units that are not kept. */
	for (uint32_t i = 0; !error && i < wire->ranges; i++)
		if (!nc_wire_keeps(wire->flags, i))
			(void)nc_index_destroy(responder->index, ranges[i].id);
	return error;
}
