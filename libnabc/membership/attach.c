/* SPDX-License-Identifier: MIT */
/* attach.c - sends the hello and receives the welcome; see attach.h.  It keeps no state. */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/diagnostics.h"
#include "cache/index.h"
#include "membership/attach.h"
#include "os/peer.h"
#include "os/segment.h"
#include "wire/wire.h"

int nc_attach_hello(int socket, uint32_t flags)
{
	struct nc_wire_hello hello = {
		.magic = NC_WIRE_MAGIC,
		.version = NC_WIRE_VERSION,
		.flags = flags,
		.oldest = NC_WIRE_OLDEST,
	};

	return nc_peer_send(socket, &hello, sizeof(hello), NULL, 0);
}

void nc_attach_report(struct nc_diagnostics *diagnostics, const char *end, pid_t pid,
		      uint32_t version, uint32_t oldest)
{
	nc_diagnostics_report(
		diagnostics, NC_DIAGNOSTIC_VERSION,
		"%s %d speaks versions %u to %u of the cache's protocol, this process "
		"%u to %u: upgrade the older libnabc and start its process again",
		end, (int)pid, oldest ? oldest : version, version, NC_WIRE_OLDEST, NC_WIRE_VERSION);
}

int nc_attach_last_word(struct nc_diagnostics *diagnostics, pid_t pid, const void *message,
			size_t length)
{
	struct nc_wire_hello hello = {0};

	memcpy(&hello, message, length < sizeof(hello) ? length : sizeof(hello));
	if (nc_wire_check_hello(&hello, length) != -EPROTONOSUPPORT)
		return -EPROTO;
	nc_attach_report(diagnostics, "worker", pid, hello.version, hello.oldest);
	return -EPROTONOSUPPORT;
}

static int join_segment(struct nc_index *index, const struct nc_wire_welcome *welcome, int fd)
{
	struct nc_segment segment;
	int error = nc_segment_adopt(&segment, fd, welcome->segment_size);

	if (error) {
		close(fd);
		return error;
	}
	error = nc_index_init_attached(index, welcome->member, &segment, welcome->data_offset,
				       welcome->slots, welcome->generation, welcome->max_unit);
	if (error)
		nc_segment_close(&segment);
	return error;
}

int nc_attach(struct nc_index *index, int socket, int timeout_ms, struct nc_wire_welcome *welcome,
	      int *fds)
{
	int received[NC_PEER_FDS_MAX], error;
	unsigned count, first;
	ssize_t got =
		nc_peer_receive(socket, welcome, sizeof(*welcome), received, &count, timeout_ms);

	/*
	 * The owner refused and closed without reading the hello.  Its reason is
	 * the next message.
	 */
	if (got == -ECONNRESET)
		got = nc_peer_receive(socket, welcome, sizeof(*welcome), received, &count,
				      timeout_ms);
	if (got < 0)
		return (int)got;
	/* The connection closed without a message: that does not indicate another version. */
	error = got ? nc_wire_check_welcome(welcome, (size_t)got, count) : -ECONNRESET;
	if (error) {
		nc_peer_close_fds(received, count);
		return error;
	}
	first = welcome->slots ? 1 : 0;
	error = first ? join_segment(index, welcome, received[0])
		      : nc_index_init_guest(index, welcome->max_unit);
	if (error) {
		nc_peer_close_fds(received + first, count - first);
		return error;
	}
	index->device_offered = welcome->slots && welcome->flags & NC_WIRE_KERNEL;
	if (welcome->flags & NC_WIRE_EAGER_SUMS)
		index->flags |= NC_CACHE_EAGER_SUMS;
	nc_index_connect(index, socket);
	if (count > first)
		memcpy(fds, received + first, (count - first) * sizeof(*fds));
	return 0;
}
