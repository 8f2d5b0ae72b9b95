/* SPDX-License-Identifier: MIT */
/* device.c - implements device.h. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

void device_open(struct device *device)
{
	device->fd = open(NABC_DEVICE, O_RDWR | O_CLOEXEC);
	must(device->fd >= 0);
	must(ioctl(device->fd, NABC_IOC_INFO, &device->info) == 0);
	must(device->info.version == NABC_ABI_VERSION);
	device->arena = mmap(NULL, device->info.arena_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			     device->fd, 0);
	must(device->arena != MAP_FAILED);
}

void device_close(struct device *device)
{
	must(munmap(device->arena, device->info.arena_size) == 0);
	must(close(device->fd) == 0);
	device->fd = -1;
}

uint64_t device_alloc(struct device *device, uint64_t size, unsigned char **bytes)
{
	struct nabc_alloc call = {.size = size};

	must(ioctl(device->fd, NABC_IOC_ALLOC, &call) == 0);
	must(call.id != 0);
	must(call.arena_offset % device->info.page_size == 0);
	must(call.arena_offset < device->info.arena_size);
	must(size <= device->info.arena_size - call.arena_offset);
	*bytes = device->arena + call.arena_offset;
	return call.id;
}

uint64_t device_unit(struct device *device, uint64_t seed, uint64_t size)
{
	unsigned char *bytes;
	uint64_t id = device_alloc(device, size, &bytes);

	guest_fill(bytes, seed, 0, size);
	must(nabc_insert(device->fd, id, 0, 0, 0) == 0);
	return id;
}

int nabc_alloc(int fd, uint64_t size, uint64_t *id)
{
	struct nabc_alloc call = {.size = size};
	int result = ioctl(fd, NABC_IOC_ALLOC, &call);

	if (result == 0)
		*id = call.id;
	return result;
}

int nabc_insert(int fd, uint64_t id, uint64_t length, uint32_t linger, uint32_t flags)
{
	struct nabc_insert call = {.id = id, .length = length, .linger = linger, .flags = flags};

	return ioctl(fd, NABC_IOC_INSERT, &call);
}

int nabc_put(int fd, const void *data, uint64_t size, uint64_t *id)
{
	struct nabc_put call = {.size = size, .data = (uintptr_t)data};
	int result = ioctl(fd, NABC_IOC_PUT, &call);

	if (result == 0)
		*id = call.id;
	return result;
}

int nabc_copy(int fd, uint64_t id, uint64_t offset, uint64_t length, void *data)
{
	struct nabc_copy call = {
		.id = id, .offset = offset, .length = length, .data = (uintptr_t)data};

	return ioctl(fd, NABC_IOC_COPY, &call);
}

static int with_id(int fd, unsigned long request, uint64_t id)
{
	struct nabc_unit_id call = {.id = id};

	return ioctl(fd, request, &call);
}

int nabc_destroy(int fd, uint64_t id)
{
	return with_id(fd, NABC_IOC_DESTROY, id);
}

int nabc_hold(int fd, uint64_t id)
{
	return with_id(fd, NABC_IOC_HOLD, id);
}

int nabc_release(int fd, uint64_t id)
{
	return with_id(fd, NABC_IOC_RELEASE, id);
}

int nabc_grant(int fd, uint64_t id, uint32_t principal, uint32_t who, uint32_t rights)
{
	struct nabc_grant call = {.id = id, .principal = principal, .who = who, .rights = rights};

	return ioctl(fd, NABC_IOC_GRANT, &call);
}

int nabc_revoke(int fd, uint64_t id, uint32_t principal, uint32_t who)
{
	struct nabc_grant call = {.id = id, .principal = principal, .who = who};

	return ioctl(fd, NABC_IOC_REVOKE, &call);
}

int nabc_stat(int fd, uint64_t id, struct nabc_stat *stat)
{
	*stat = (struct nabc_stat){.id = id};
	return ioctl(fd, NABC_IOC_STAT, stat);
}

ssize_t nabc_read(int fd, uint64_t id, uint64_t offset, uint64_t length, int from, int64_t position)
{
	struct nabc_read call = {
		.id = id, .offset = offset, .length = length, .position = position, .fd = from};

	return ioctl(fd, NABC_IOC_READ, &call) < 0 ? -1 : (ssize_t)call.done;
}

ssize_t nabc_socksend(int fd, int socket, uint64_t id, uint64_t offset, uint64_t length,
		      uint32_t flags)
{
	struct nabc_socksend call = {
		.id = id, .offset = offset, .length = length, .socket = socket, .flags = flags};

	return ioctl(fd, NABC_IOC_SOCKSEND, &call) < 0 ? -1 : (ssize_t)call.sent;
}

ssize_t nabc_socksendv(int fd, int socket, const void *header, size_t header_length,
		       const struct nabc_range *ranges, unsigned int range_count, uint64_t skip,
		       uint32_t flags)
{
	struct nabc_socksendv call = {.header = (uintptr_t)header,
				      .ranges = (uintptr_t)ranges,
				      .header_length = (uint32_t)header_length,
				      .range_count = range_count,
				      .skip = skip,
				      .socket = socket,
				      .flags = flags};

	return ioctl(fd, NABC_IOC_SOCKSENDV, &call) < 0 ? -1 : (ssize_t)call.sent;
}

long nabc_sum(int fd, uint64_t id, uint64_t offset, uint64_t length)
{
	struct nabc_sum call = {.id = id, .offset = offset, .length = length};

	return ioctl(fd, NABC_IOC_SUM, &call) < 0 ? -1 : (long)call.sum;
}

struct nabc_statistics device_statistics(int fd)
{
	struct nabc_statistics statistics;

	must(ioctl(fd, NABC_IOC_STATISTICS, &statistics) == 0);
	return statistics;
}

void device_send(struct device *device, int socket, uint64_t id, uint64_t offset, uint64_t length,
		 uint32_t flags)
{
	while (length) {
		ssize_t sent = nabc_socksend(device->fd, socket, id, offset, length, flags);

		must(sent > 0);
		must((uint64_t)sent <= length);
		offset += (uint64_t)sent;
		length -= (uint64_t)sent;
	}
}

uint64_t device_gauge(int fd, size_t gauge)
{
	struct nabc_statistics statistics = device_statistics(fd);
	uint64_t number;

	memcpy(&number, (char *)&statistics + gauge, sizeof(number));
	return number;
}

struct awaited {
	int fd;
	size_t gauge;
	uint64_t number;
	bool more; /* not equal: at least */
};

static bool is_as_awaited(void *context)
{
	const struct awaited *awaited = context;
	uint64_t now = device_gauge(awaited->fd, awaited->gauge);

	return awaited->more ? now >= awaited->number : now == awaited->number;
}

bool device_wait(int fd, size_t gauge, uint64_t wanted)
{
	return guest_wait(is_as_awaited, &(struct awaited){fd, gauge, wanted, false});
}

bool device_wait_more(int fd, size_t counter)
{
	uint64_t more = device_gauge(fd, counter) + 1;

	return guest_wait(is_as_awaited, &(struct awaited){fd, counter, more, true});
}
