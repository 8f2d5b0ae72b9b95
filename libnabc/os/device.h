/* SPDX-License-Identifier: MIT */
/*
 * device.h - /dev/nabc for one cache: units in the memory of the kernel module, and
 * the module's calls for them (nabc-uapi.h).
 *
 * A unit is filled in the arena, which is mapped once, and inserted.  A small one is
 * filled in a buffer of this process, from which one call makes it: that costs less
 * than to map and unmap its pages.  From then on only the kernel has it: it is
 * identified by the module's id and mapped nowhere.
 * The file serves this process, not its children.  Any thread; all calls return
 * -errno on failure, and restart when a signal interrupts them.
 */
#ifndef NC_DEVICE_H
#define NC_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The system calls for the device; tests replace them with a model. */
struct nc_device_system {
	int (*open)(void);
	void (*close)(int fd);
	int (*call)(int fd, unsigned long request, void *argument);
	int (*map)(int fd, size_t size, void **arena);
	void (*unmap)(void *arena, size_t size);
};

extern const struct nc_device_system nc_device_kernel;

struct nc_device {
	const struct nc_device_system *system; /* NULL: not used */
	int fd;
	char *arena;
	size_t arena_size; /* bytes */
	size_t header_max; /* maximum bytes of a message's header */
	bool sums;	   /* it can send with checksums that it keeps */
	size_t put_max;	   /* maximum bytes of a unit made from a buffer; 0: none is */
	char *buffers;	   /* NC_DEVICE_BUFFERS of NC_DEVICE_BUFFER bytes, if put_max is not 0 */
	_Atomic uint64_t buffers_free; /* one bit for each */
	/* The smallest size that was refused since the last unit was freed; SIZE_MAX: none. */
	_Atomic size_t refused;
	_Atomic unsigned passed; /* allocations skipped because of it */
	char why[96];		 /* "used", or the reason why not */
};

/* One range of one unit. */
struct nc_device_range {
	uint64_t id, offset, length; /* length is not 0 */
};

/*
 * A flag of messages: if the network device does not compute checksums, the module keeps those of
 * the units and uses them again.
 */
#define NC_DEVICE_SUMS 0x8u

#define NC_DEVICE_BUFFER ((size_t)32 << 10) /* bytes, in whole pages */
#define NC_DEVICE_BUFFERS 64u

/* Header and ranges of one message; one of the two may be empty. */
struct nc_device_send {
	const void *header;
	size_t header_length; /* at most header_max */
	const struct nc_device_range *ranges;
	unsigned range_count; /* at most NC_RANGES_MAX */
	unsigned flags;	      /* NC_SEND_MORE, _CLOSE and _DONTWAIT */
};

/* What the module reports about an inserted unit. */
struct nc_device_unit {
	uint64_t size;
	pid_t maker; /* 0: gone, or in another pid namespace */
	bool sendable;
};

/* Initialises without a device; why: the reason. */
void nc_device_init(struct nc_device *device, const char *why);

/*
 * Returns 0, or -errno if it cannot be used, with the reason in why.  No call may
 * be in progress.
 */
int nc_device_open(struct nc_device *device, const struct nc_device_system *system);
void nc_device_close(struct nc_device *device);

static inline bool nc_device_usable(const struct nc_device *device)
{
	return device->system;
}

/*
 * Allocates a unit to be filled at *base: zeroes, or bytes of this process's
 * earlier units.  -ENOSPC: the module has no memory for it, whatever limit was
 * reached; then only one in many calls is tried until a unit is freed.
 */
int nc_device_alloc(struct nc_device *device, size_t size, uint64_t *id, char **base);

/* As read(2), directly into the unit; also returns -EINVAL for files that only read(2) can read. */
ssize_t nc_device_read(struct nc_device *device, uint64_t id, size_t offset, size_t length, int fd);

/*
 * Takes a buffer in which a unit of size bytes can be filled; its bytes are undefined.
 * NULL: the unit is too large, the module cannot do it or has no memory for it, or no
 * buffer is free; then there is nc_device_alloc().
 */
char *nc_device_buffer(struct nc_device *device, size_t size);
void nc_device_buffer_return(struct nc_device *device, const char *buffer);

/* Makes and inserts a unit of size bytes of this process.  -ENOSPC: as nc_device_alloc(). */
int nc_device_put(struct nc_device *device, const void *bytes, size_t size, uint64_t *id);

/* Inserts the unit with size bytes; its memory in the arena is gone. */
int nc_device_insert(struct nc_device *device, uint64_t id, size_t size);

/*
 * Returns the bytes that the socket took, -EOPNOTSUPP (it is not plain TCP),
 * -EAGAIN and others as send(2).
 */
ssize_t nc_device_send(struct nc_device *device, int socket, const struct nc_device_send *message);

/* Copies a range of an inserted unit to memory. */
int nc_device_copy(struct nc_device *device, uint64_t id, size_t offset, void *to, size_t length);

/*
 * Stores the Internet checksum of a range of an inserted unit, as a number of this
 * machine: 0x0102 for the bytes 1, 2.  Zero may have either form, 0 or 0xffff.
 */
int nc_device_sum(struct nc_device *device, uint64_t id, size_t offset, size_t length,
		  uint16_t *sum);

/* Its memory is freed when it is not held and its bytes have been acknowledged. */
int nc_device_destroy(struct nc_device *device, uint64_t id);

/* Permits another process to send, copy and hold the unit. */
int nc_device_grant(struct nc_device *device, uint64_t id, int pidfd);

/*
 * Holds the unit, also beyond the end of its maker.  Returns -EACCES, -ENOENT, or
 * -ENOMEM (RLIMIT_MEMLOCK).
 */
int nc_device_hold(struct nc_device *device, uint64_t id);
int nc_device_release(struct nc_device *device, uint64_t id);

int nc_device_stat(struct nc_device *device, uint64_t id, struct nc_device_unit *unit);

#endif
