/* SPDX-License-Identifier: MIT */
/*
 * read-buffer.h - bytes of a program's response, read straight into a unit of the cache.  A buffer
 * belongs to one thread.
 */
#ifndef SWEET_READ_BUFFER_H
#define SWEET_READ_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nabc.h>

#include "base/list.h"
#include "base/slice.h"

/*
 * Bytes at most: half of a CPU's own cache remains for other data.  A page of 100 KB is read and
 * sent at once; with buffers of 64 KB it costs 1.3 times as much.
 */
#define READ_BUFFER_MAX ((size_t)128 << 10)
#define READ_BUFFER_MIN ((size_t)4 << 10)
#define READ_BUFFER_RANGES 32u
#define READ_BUFFER_RUN ((size_t)512) /* bytes of a run, on average: fewer are copied together */

/* A unit that was read, and its ranges that belong to the body. */
struct read_buffer {
	struct list_node node;
	size_t id; /* 0: stored on disk, see response-spool.h */
	struct NC_hold hold;
	const char *data;
	size_t length; /* bytes */
	struct NC_range *ranges;
	unsigned range_count, range_room;
	unsigned delivered;	 /* ranges that the connection has got */
	uint64_t offset, stored; /* offset and bytes on disk, if it is stored */
	struct NC_range few[READ_BUFFER_RANGES];
};

/*
 * Reads available data from fd into a new buffer, with at most one read.  Returns NULL with *error:
 * -EAGAIN if there is none; 0 at the end of the file; -ENOMEM without memory: then nothing was read;
 * -ENOBUFS if there was none for what was read, which is lost; or another error.  expected: the bytes
 * that are probably there; at most as many are read, or READ_BUFFER_MIN; 0: unknown.
 */
struct read_buffer *read_buffer_read(int fd, size_t expected, int *error);

/*
 * Makes a buffer of the first `length` bytes of an uninserted unit, and consumes the handle; NULL
 * with *error.
 */
struct read_buffer *read_buffer_of(NC_handle *handle, size_t length, int *error);

/* Makes a buffer for bytes that are on disk from offset on; NULL without memory. */
struct read_buffer *read_buffer_stored(uint64_t offset);

/* Frees a buffer that is in no list; buffer may be NULL. */
void read_buffer_free(struct read_buffer *buffer);

/*
 * Adds a run of the buffer's bytes as a range.  Tiny runs make many ranges, but never more than
 * bytes: call read_buffer_pack() after the last one.  Returns false without memory.
 */
bool read_buffer_add(struct read_buffer *buffer, struct slice run);

/*
 * No run is added any more.  Copies runs that are tiny together, into a unit of their bytes: a range
 * takes 24 bytes, and would hold one.  Returns false without memory; then the buffer is as it was.
 */
bool read_buffer_pack(struct read_buffer *buffer);

/* Returns the bytes of memory that the buffer takes, with its ranges. */
uint64_t read_buffer_memory(const struct read_buffer *buffer);

/* Returns the bytes of all ranges. */
uint64_t read_buffer_bytes(const struct read_buffer *buffer);

#endif
