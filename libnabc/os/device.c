/* SPDX-License-Identifier: MIT */
/* device.c - opens /dev/nabc and makes its calls; see device.h. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nabc-uapi.h>
#include <nabc.h>

#include "os/descriptor.h"
#include "os/device.h"

#define RETRY 64u

static_assert(sizeof(struct nc_device_range) == sizeof(struct nabc_range) &&
		      offsetof(struct nc_device_range, offset) ==
			      offsetof(struct nabc_range, offset) &&
		      offsetof(struct nc_device_range, length) ==
			      offsetof(struct nabc_range, length),
	      "the module reads them as they are");
static_assert(NC_RANGES_MAX <= NABC_RANGES_MAX, "the module takes whole messages");
static_assert(NC_DEVICE_BUFFERS == 64, "one bit of buffers_free for each");
static_assert(NC_SEND_MORE == NABC_SEND_MORE && NC_SEND_CLOSE == NABC_SEND_CLOSE &&
		      NC_SEND_DONTWAIT == NABC_SEND_DONTWAIT && NC_DEVICE_SUMS == NABC_SEND_SUMS,
	      "the module knows them by the same bits");

/* --- system calls -------------------------------------------------------------- */

static int open_device(void)
{
	return nc_descriptor(open(NABC_DEVICE, O_RDWR | O_CLOEXEC));
}

static void close_device(int fd)
{
	close(fd);
}

static int call_device(int fd, unsigned long request, void *argument)
{
	return ioctl(fd, request, argument) < 0 ? -errno : 0;
}

static int map_device(int fd, size_t size, void **arena)
{
	*arena = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return *arena == MAP_FAILED ? -errno : 0;
}

static void unmap_device(void *arena, size_t size)
{
	munmap(arena, size);
}

const struct nc_device_system nc_device_kernel = {
	open_device, close_device, call_device, map_device, unmap_device,
};

/* --- opening ------------------------------------------------------------------ */

void nc_device_init(struct nc_device *device, const char *why)
{
	*device = (struct nc_device){.fd = -1};
	snprintf(device->why, sizeof(device->why), "not used: %s", why);
}

static int refused(struct nc_device *device, const char *step, int error)
{
	snprintf(device->why, sizeof(device->why), "not used: %s: %s", step, strerror(-error));
	return error;
}

/* Makes a call, again if a signal interrupts it. */
static int call_again(const struct nc_device_system *system, int fd, unsigned long request,
		      void *argument)
{
	int error;

	do {
		error = system->call(fd, request, argument);
	} while (error == -EINTR);
	return error;
}

/* Without the buffers, all units are filled in the arena. */
static void map_buffers(struct nc_device *device, const struct nabc_info *info)
{
	char *base;

	if (!(info->features & NABC_FEATURE_PUT))
		return;
	base = mmap(NULL, NC_DEVICE_BUFFERS * NC_DEVICE_BUFFER, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return;
	device->buffers = base;
	device->put_max = info->chunk_size < NC_DEVICE_BUFFER ? info->chunk_size : NC_DEVICE_BUFFER;
	device->buffers_free = UINT64_MAX;
}

static int set_up(struct nc_device *device, const struct nc_device_system *system, int fd)
{
	struct nabc_info info = {0};
	void *arena;
	int error = call_again(system, fd, NABC_IOC_INFO, &info);

	if (error)
		return refused(device, "NABC_IOC_INFO", error);
	if (info.version != NABC_ABI_VERSION) {
		snprintf(device->why, sizeof(device->why),
			 "not used: the module speaks version %u, not %u", info.version,
			 NABC_ABI_VERSION);
		return -EPROTO;
	}
	error = system->map(fd, info.arena_size, &arena);
	if (error)
		return refused(device, "mmap", error);
	*device = (struct nc_device){.system = system,
				     .fd = fd,
				     .arena = arena,
				     .arena_size = info.arena_size,
				     .header_max = info.header_max,
				     .sums = info.features & NABC_FEATURE_SUMS,
				     .refused = SIZE_MAX,
				     .why = "used"};
	map_buffers(device, &info);
	return 0;
}

int nc_device_open(struct nc_device *device, const struct nc_device_system *system)
{
	int error, fd = system->open();

	if (fd < 0)
		return refused(device, NABC_DEVICE, fd);
	error = set_up(device, system, fd);
	if (error)
		system->close(fd);
	return error;
}

void nc_device_close(struct nc_device *device)
{
	if (!device->system)
		return;
	if (device->buffers)
		munmap(device->buffers, NC_DEVICE_BUFFERS * NC_DEVICE_BUFFER);
	device->system->unmap(device->arena, device->arena_size);
	device->system->close(device->fd);
	nc_device_init(device, "closed");
}

/* --- its calls ------------------------------------------------------------------ */

static int call(struct nc_device *device, unsigned long request, void *argument)
{
	return call_again(device->system, device->fd, request, argument);
}

/* Makes a call whose only argument is the unit. */
static int call_of_unit(struct nc_device *device, unsigned long request, uint64_t id)
{
	struct nabc_unit_id unit = {.id = id};

	return call(device, request, &unit);
}

/*
 * Whether to skip an allocation.  If a cache is larger than the memory that the
 * module gives it, each allocation would fail.  Units of other processes may free
 * memory, so one in RETRY is tried nevertheless.
 */
static bool skips(struct nc_device *device, size_t size)
{
	return size >= atomic_load_explicit(&device->refused, memory_order_relaxed) &&
	       atomic_fetch_add_explicit(&device->passed, 1, memory_order_relaxed) % RETRY != 0;
}

/*
 * Over RLIMIT_MEMLOCK, over the module's limit, or too large for a unit: all the same
 * here.
 */
static int without_memory(struct nc_device *device, size_t size, int error)
{
	if (error != -ENOMEM && error != -EFBIG && error != -ENOSPC)
		return error;
	if (size < atomic_load_explicit(&device->refused, memory_order_relaxed))
		atomic_store_explicit(&device->refused, size, memory_order_relaxed);
	return -ENOSPC;
}

int nc_device_alloc(struct nc_device *device, size_t size, uint64_t *id, char **base)
{
	struct nabc_alloc alloc = {.size = size};
	int error = skips(device, size) ? -ENOSPC : call(device, NABC_IOC_ALLOC, &alloc);

	if (error)
		return without_memory(device, size, error);
	if (alloc.arena_offset > device->arena_size ||
	    size > device->arena_size - alloc.arena_offset) {
		(void)nc_device_destroy(device, alloc.id);
		return -ENOSPC;
	}
	*id = alloc.id;
	*base = device->arena + alloc.arena_offset;
	return 0;
}

ssize_t nc_device_read(struct nc_device *device, uint64_t id, size_t offset, size_t length, int fd)
{
	struct nabc_read read = {
		.id = id, .offset = offset, .length = length, .position = -1, .fd = fd};
	int error = call(device, NABC_IOC_READ, &read);

	return error ? error : (ssize_t)read.done;
}

char *nc_device_buffer(struct nc_device *device, size_t size)
{
	uint64_t free = atomic_load_explicit(&device->buffers_free, memory_order_relaxed);

	if (size > device->put_max ||
	    size >= atomic_load_explicit(&device->refused, memory_order_relaxed))
		return NULL;
	/* The lowest: its bytes are the likeliest to be in the processor's cache. */
	while (free)
		if (atomic_compare_exchange_weak_explicit(&device->buffers_free, &free,
							  free & (free - 1), memory_order_acquire,
							  memory_order_relaxed))
			return device->buffers + (size_t)__builtin_ctzll(free) * NC_DEVICE_BUFFER;
	return NULL;
}

void nc_device_buffer_return(struct nc_device *device, const char *buffer)
{
	size_t number = (size_t)(buffer - device->buffers) / NC_DEVICE_BUFFER;

	/* Pairs with the acquire in nc_device_buffer(). */
	atomic_fetch_or_explicit(&device->buffers_free, UINT64_C(1) << number,
				 memory_order_release);
}

int nc_device_put(struct nc_device *device, const void *bytes, size_t size, uint64_t *id)
{
	struct nabc_put put = {.size = size, .data = (uintptr_t)bytes};
	int error = call(device, NABC_IOC_PUT, &put);

	if (error)
		return without_memory(device, size, error);
	*id = put.id;
	return 0;
}

int nc_device_insert(struct nc_device *device, uint64_t id, size_t size)
{
	struct nabc_insert insert = {.id = id, .length = size};

	return call(device, NABC_IOC_INSERT, &insert);
}

ssize_t nc_device_send(struct nc_device *device, int socket, const struct nc_device_send *message)
{
	struct nabc_socksendv send = {.header = (uintptr_t)message->header,
				      .ranges = (uintptr_t)message->ranges,
				      .header_length = (uint32_t)message->header_length,
				      .range_count = message->range_count,
				      .socket = socket,
				      .flags = message->flags};
	int error = call(device, NABC_IOC_SOCKSENDV, &send);

	return error ? error : (ssize_t)send.sent;
}

int nc_device_copy(struct nc_device *device, uint64_t id, size_t offset, void *to, size_t length)
{
	struct nabc_copy copy = {
		.id = id, .offset = offset, .length = length, .data = (uintptr_t)to};

	return call(device, NABC_IOC_COPY, &copy);
}

int nc_device_sum(struct nc_device *device, uint64_t id, size_t offset, size_t length,
		  uint16_t *sum)
{
	struct nabc_sum made = {.id = id, .offset = offset, .length = length};
	int error = call(device, NABC_IOC_SUM, &made);

	if (!error)
		*sum = (uint16_t)made.sum;
	return error;
}

int nc_device_destroy(struct nc_device *device, uint64_t id)
{
	atomic_store_explicit(&device->refused, SIZE_MAX, memory_order_relaxed);
	return call_of_unit(device, NABC_IOC_DESTROY, id);
}

int nc_device_grant(struct nc_device *device, uint64_t id, int pidfd)
{
	struct nabc_grant grant = {.id = id,
				   .principal = NABC_PRINCIPAL_PIDFD,
				   .who = (uint32_t)pidfd,
				   .rights = NABC_RIGHT_SEND};

	return call(device, NABC_IOC_GRANT, &grant);
}

int nc_device_hold(struct nc_device *device, uint64_t id)
{
	return call_of_unit(device, NABC_IOC_HOLD, id);
}

int nc_device_release(struct nc_device *device, uint64_t id)
{
	return call_of_unit(device, NABC_IOC_RELEASE, id);
}

int nc_device_stat(struct nc_device *device, uint64_t id, struct nc_device_unit *unit)
{
	struct nabc_stat stat = {.id = id};
	int error = call(device, NABC_IOC_STAT, &stat);

	if (error)
		return error;
	*unit = (struct nc_device_unit){.size = stat.size,
					.maker = (pid_t)stat.maker_pid,
					.sendable = stat.state == NABC_STATE_CACHED &&
						    stat.rights & NABC_RIGHT_SEND};
	return 0;
}
