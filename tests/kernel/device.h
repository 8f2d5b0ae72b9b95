/* SPDX-License-Identifier: MIT */
/*
 * device.h - /dev/nabc for the guest's programs: each of its calls as a C function
 * that returns the result of ioctl(), and units with bytes that guest_holds() knows.
 */
#ifndef NC_TEST_DEVICE_H
#define NC_TEST_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <nabc-uapi.h>

#include "guest.h"

struct device {
	int fd;
	unsigned char *arena;
	struct nabc_info info;
};

/* Opens the device and maps its arena; ends the program when that fails. */
void device_open(struct device *device);
void device_close(struct device *device);

/* Allocates a unit to fill, and returns the address of its bytes; ends the program on failure. */
uint64_t device_alloc(struct device *device, uint64_t size, unsigned char **bytes);

/* Inserts a unit with the bytes of a seed; ends the program on failure. */
uint64_t device_unit(struct device *device, uint64_t seed, uint64_t size);

/* As ioctl(). */
int nabc_alloc(int fd, uint64_t size, uint64_t *id);
int nabc_insert(int fd, uint64_t id, uint64_t length, uint32_t linger, uint32_t flags);
int nabc_put(int fd, const void *data, uint64_t size, uint64_t *id);
int nabc_copy(int fd, uint64_t id, uint64_t offset, uint64_t length, void *data);
int nabc_destroy(int fd, uint64_t id);
int nabc_hold(int fd, uint64_t id);
int nabc_release(int fd, uint64_t id);
int nabc_grant(int fd, uint64_t id, uint32_t principal, uint32_t who, uint32_t rights);
int nabc_revoke(int fd, uint64_t id, uint32_t principal, uint32_t who);
int nabc_stat(int fd, uint64_t id, struct nabc_stat *stat);

/* Returns the number of bytes, or -1. */
ssize_t nabc_read(int fd, uint64_t id, uint64_t offset, uint64_t length, int from,
		  int64_t position);
ssize_t nabc_socksend(int fd, int socket, uint64_t id, uint64_t offset, uint64_t length,
		      uint32_t flags);
ssize_t nabc_socksendv(int fd, int socket, const void *header, size_t header_length,
		       const struct nabc_range *ranges, unsigned int range_count, uint64_t skip,
		       uint32_t flags);

/* Returns a sum, or -1. */
long nabc_sum(int fd, uint64_t id, uint64_t offset, uint64_t length);

struct nabc_statistics device_statistics(int fd);

/* Sends all of a range; ends the program when the socket accepts no more. */
void device_send(struct device *device, int socket, uint64_t id, uint64_t offset, uint64_t length,
		 uint32_t flags);

/* Returns a gauge or counter by its place. */
uint64_t device_gauge(int fd, size_t gauge);

/* Waits until a gauge has a value, at most a minute; returns whether it has. */
bool device_wait(int fd, size_t gauge, uint64_t wanted);

/* Waits until a counter has grown, at most a minute; returns whether it has. */
bool device_wait_more(int fd, size_t counter);

#define GAUGE(name) offsetof(struct nabc_statistics, name)

#endif
