/* SPDX-License-Identifier: MIT */
/*
 * device.h - /dev/nabc for one cache: memory of the kernel module, in which
 * units are laid, and the module's calls on them (nabc-uapi.h).
 *
 * A unit is filled in the arena, which is mapped once, inserted, and from then
 * on is the kernel's alone: it is named by the module's id and mapped nowhere.
 * The file serves this process, not its children.  Any thread; all calls
 * return -errno on failure and begin again when a signal cuts them short.
 */
#ifndef NC_DEVICE_H
#define NC_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How the device is reached; a test has a model of it instead. */
struct nc_device_system {
	int (*open)(void);
	void (*close)(int fd);
	int (*call)(int fd, unsigned long request, void *argument);
	int (*map)(int fd, size_t size, void **arena);
	void (*unmap)(void *arena, size_t size);
};

extern const struct nc_device_system nc_device_kernel;

struct nc_device {
	const struct nc_device_system *system; /* NULL: not in use */
	int fd;
	char *arena;
	size_t arena_size; /* bytes */
	size_t header_max; /* bytes of a message's header */
	/* The least that there was no room for since the last unit went; SIZE_MAX: none. */
	_Atomic size_t refused;
	_Atomic unsigned passed; /* allocations that were not tried for it */
	char why[96];		 /* "used", or why it is not */
};

/* One range of one unit. */
struct nc_device_range {
	uint64_t id, offset, length; /* length is not 0 */
};

/* Header and ranges as one message; one of the two may be empty. */
struct nc_device_send {
	const void *header;
	size_t header_length; /* at most header_max */
	const struct nc_device_range *ranges;
	unsigned range_count; /* at most NC_RANGES_MAX */
	unsigned flags;	      /* NC_SEND_MORE, _CLOSE and _DONTWAIT */
};

/* What the module knows of an inserted unit. */
struct nc_device_unit {
	uint64_t size;
	pid_t maker; /* 0: gone, or of another pid namespace */
	bool sendable;
};

/* Without a device, for a reason. */
void nc_device_init(struct nc_device *device, const char *why);

/* 0; -errno: it cannot be used, and why says so.  No call may be under way. */
int nc_device_open(struct nc_device *device, const struct nc_device_system *system);
void nc_device_close(struct nc_device *device);

static inline bool nc_device_usable(const struct nc_device *device)
{
	return device->system;
}

/*
 * A unit to be filled at *base: zeroes, or what this process's earlier units
 * held.  -ENOSPC: the module has no room for it, whatever the limit; then one
 * in many is tried until a unit has gone.
 */
int nc_device_alloc(struct nc_device *device, size_t size, uint64_t *id, char **base);

/* As read(2), straight into the unit; -EINVAL also of what only read(2) can read. */
ssize_t nc_device_read(struct nc_device *device, uint64_t id, size_t offset, size_t length, int fd);

/* The unit is full, of size bytes; its memory in the arena is gone. */
int nc_device_insert(struct nc_device *device, uint64_t id, size_t size);

/* Bytes that the socket took.  -EOPNOTSUPP: it is not plain TCP; -EAGAIN and others as send(2). */
ssize_t nc_device_send(struct nc_device *device, int socket, const struct nc_device_send *message);

/* A range of an inserted unit to memory. */
int nc_device_copy(struct nc_device *device, uint64_t id, size_t offset, void *to, size_t length);

/* Its memory goes when nobody holds it and its bytes have been acknowledged. */
int nc_device_destroy(struct nc_device *device, uint64_t id);

/* Leave for another process to send, copy and hold the unit. */
int nc_device_grant(struct nc_device *device, uint64_t id, int pidfd);

/* The unit stays, whatever becomes of its maker.  -EACCES, -ENOENT; -ENOMEM: RLIMIT_MEMLOCK. */
int nc_device_hold(struct nc_device *device, uint64_t id);
int nc_device_release(struct nc_device *device, uint64_t id);

int nc_device_stat(struct nc_device *device, uint64_t id, struct nc_device_unit *unit);

#endif
