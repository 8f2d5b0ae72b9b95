/* SPDX-License-Identifier: MIT */
/* library.c - implements library.h. */
#include <errno.h>
#include <fcntl.h>
#include <nabc-uapi.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "guest.h"
#include "library.h"

#define HEADER 300

size_t library_unit(uint64_t seed, size_t size, enum NC_kind kind)
{
	unsigned char *bytes = malloc(size);
	NC_handle handle;
	size_t id;

	must(bytes);
	guest_fill(bytes, seed, 0, size);
	must(NC_unit_alloc(NULL, &handle, size, 0, kind, 0) == 0);
	must(NC_write(&handle, bytes, size, 0) == (ssize_t)size);
	must(NC_insert(&handle) == 0);
	id = NC_cache_id(&handle);
	must(NC_free(&handle) == 0);
	free(bytes);
	return id;
}

enum NC_kind library_kind(size_t id)
{
	struct NC_stat stat;

	must(NC_stat(NULL, id, &stat, sizeof(stat)) == 0);
	return stat.kind;
}

struct NC_cache_stat library_stat(void)
{
	struct NC_cache_stat stat;

	must(NC_cache_stat(NULL, &stat, sizeof(stat)) == 0);
	return stat;
}

struct reading {
	int socket;
	uint64_t seed;
	size_t offset, length;
};

static int read_all(void *context)
{
	const struct reading *reading = context;

	return guest_receive(reading->socket, 99, 0, HEADER) &&
			       guest_receive(reading->socket, reading->seed, reading->offset,
					     reading->length)
		       ? 0
		       : 1;
}

void library_send(int near, int far, size_t id, uint64_t seed, size_t offset, size_t length,
		  unsigned flags, const struct NC_hold *hold)
{
	struct reading reading = {far, seed, offset, length};
	struct NC_range range = {id, offset, length};
	unsigned char header[HEADER];
	struct NC_send message = NC_SEND_INIT(.header = header, .header_length = HEADER,
					      .ranges = &range, .holds = hold, .range_count = 1,
					      .hold_count = hold != NULL, .flags = flags);
	pid_t child = guest_fork(read_all, &reading);

	guest_fill(header, 99, 0, HEADER);
	while (message.skip < HEADER + length) {
		ssize_t sent = NC_send(NULL, near, &message);
		struct pollfd room = {.fd = near, .events = POLLOUT};

		if (sent < 0) {
			must(errno == EAGAIN);
			must(poll(&room, 1, 60000) == 1);
			continue;
		}
		message.skip += (size_t)sent;
	}
	guest_join(child);
}

struct nabc_statistics library_module(void)
{
	int fd = open(NABC_DEVICE, O_RDWR | O_CLOEXEC);
	struct nabc_statistics statistics;

	must(fd >= 0);
	statistics = device_statistics(fd);
	close(fd);
	statistics.files--;
	return statistics;
}
