/* SPDX-License-Identifier: MIT */
/*
 * read-buffer.h - bytes of a program's answer as they were read: straight into a
 * unit of the cache.  One thread.
 */
#ifndef SWEET_READ_BUFFER_H
#define SWEET_READ_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include <nabc.h>

#include "base/slice.h"

/*
 * Bytes, at most: half of what a CPU's own cache holds is for others.  A page of
 * 100 KB is read and sent at once; in buffers of 64 KB it costs 1.3 times as much.
 */
#define READ_BUFFER_MAX ((size_t)128 << 10)
#define READ_BUFFER_MIN ((size_t)4 << 10)
#define READ_BUFFER_RANGES 32u

/* A unit that was read, and what of it belongs to the body. */
struct read_buffer {
	struct read_buffer *next;
	size_t id; /* 0: it is stored, see response-spool.h */
	struct NC_hold hold;
	const char *data;
	size_t length; /* bytes */
	struct NC_range *ranges;
	unsigned range_count, range_room;
	unsigned handed;	 /* of the ranges, to the connection */
	uint64_t offset, stored; /* where, and bytes, if it is */
	struct NC_range few[READ_BUFFER_RANGES];
};

/*
 * Reads what fd has into a new buffer; at most one read.  NULL with *error
 * -EAGAIN: nothing is there; 0: the end of the file; other errors as they are.
 */
struct read_buffer *read_buffer_read(int fd, int *error);

/* One of length bytes in a unit that was not inserted; takes the handle.  NULL with *error. */
struct read_buffer *read_buffer_of(NC_handle *handle, size_t length, int *error);

/* One without a unit, of bytes that are stored from offset on.  NULL: no memory. */
struct read_buffer *read_buffer_stored(uint64_t offset);

/* One that nobody else has; may be NULL. */
void read_buffer_free(struct read_buffer *buffer);

/*
 * A run of its bytes is a range more; crumbs make many, but no more than bytes.
 * False: no memory.
 */
bool read_buffer_add(struct read_buffer *buffer, struct slice run);

/* Those of its ranges. */
uint64_t read_buffer_bytes(const struct read_buffer *buffer);

#endif
