/* SPDX-License-Identifier: MIT */
/*
 * read-buffer.c - see read-buffer.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <glib.h>

#include "backend/read-buffer.h"
#include "base/list.h"

/* Makes the unit the buffer's, and consumes the handle; NULL with *error: the buffer is freed. */
static struct read_buffer *enter(struct read_buffer *buffer, NC_handle *handle, size_t length,
				 int *error)
{
	struct NC_insert_options options = NC_INSERT_OPTIONS_INIT(.hold = &buffer->hold);
	size_t size;

	if (NC_unit_insert_with(handle, length, &options) < 0) {
		*error = -ENOMEM;
		(void)NC_free(handle);
		free(buffer);
		return NULL;
	}
	/* The id is known to nobody else: only this hold keeps the unit. */
	buffer->id = NC_cache_id(handle);
	(void)NC_destroy(NULL, buffer->id);
	(void)NC_free(handle);
	*error = 0;
	buffer->data = NC_data(&buffer->hold, &size, 0);
	if (!buffer->data || size < length) {
		(void)NC_release(&buffer->hold);
		*error = -ENOMEM;
		free(buffer);
		return NULL;
	}
	buffer->node = (struct list_node){0};
	buffer->length = length;
	buffer->ranges = buffer->few;
	buffer->range_count = buffer->delivered = 0;
	buffer->range_room = READ_BUFFER_RANGES;
	buffer->offset = buffer->stored = 0;
	return buffer;
}

struct read_buffer *read_buffer_of(NC_handle *handle, size_t length, int *error)
{
	struct read_buffer *buffer = malloc(sizeof(*buffer));

	if (buffer)
		return enter(buffer, handle, length, error);
	*error = -ENOMEM;
	(void)NC_free(handle);
	return NULL;
}

struct read_buffer *read_buffer_stored(uint64_t offset)
{
	struct read_buffer *buffer = calloc(1, sizeof(*buffer));

	if (!buffer)
		return NULL;
	buffer->offset = offset;
	buffer->ranges = buffer->few;
	return buffer;
}

static int make_unit(NC_handle *handle, size_t size)
{
	return NC_unit_alloc(NULL, handle, size, 0, NC_KIND_RECYCLED, NC_UNIT_UNSUMMED);
}

/* Into the least memory that a unit takes, without asking the system how much there is. */
static ssize_t read_little(int fd, NC_handle *handle)
{
	size_t room;
	ssize_t got;

	if (make_unit(handle, READ_BUFFER_MIN) < 0)
		return -1;
	do {
		/* NC_read() would read again, to fill the unit. */
		got = read(fd, NC_fragment(handle, 0, &room), READ_BUFFER_MIN);
	} while (got < 0 && errno == EINTR);
	return got;
}

static ssize_t read_available(int fd, NC_handle *handle, size_t expected)
{
	int there = (int)MIN(expected, READ_BUFFER_MAX);
	size_t size;

	/* As large as the available data, so that many small responses take little memory. */
	if (!there)
		(void)ioctl(fd, FIONREAD, &there);
	size = (size_t)CLAMP(there, (int)READ_BUFFER_MIN, (int)READ_BUFFER_MAX);
	if (make_unit(handle, size) < 0)
		return -1;
	/* No more than the available data: a longer request would cause a second read. */
	return NC_read(fd, handle, 0, there > 0 && (size_t)there < size ? (size_t)there : size);
}

struct read_buffer *read_buffer_read(int fd, size_t expected, int *error)
{
	NC_handle handle = {0};
	bool little = expected && expected <= READ_BUFFER_MIN;
	struct read_buffer *buffer = malloc(sizeof(*buffer));
	ssize_t got = -1;

	if (buffer)
		got = little ? read_little(fd, &handle) : read_available(fd, &handle, expected);
	if (got <= 0) {
		*error = got < 0 ? -errno : 0;
		(void)NC_free(&handle);
		free(buffer);
		return NULL;
	}
	/* Of a unit that is larger than what came, the cache gets the rest back. */
	buffer = enter(buffer, &handle, (size_t)got, error);
	if (!buffer)
		*error = -ENOBUFS;
	return buffer;
}

/* Releases what the buffer has. */
static void drop(struct read_buffer *buffer)
{
	if (buffer->id)
		(void)NC_release(&buffer->hold);
	if (buffer->ranges != buffer->few)
		free(buffer->ranges);
}

void read_buffer_free(struct read_buffer *buffer)
{
	if (!buffer)
		return;
	drop(buffer);
	free(buffer);
}

bool read_buffer_add(struct read_buffer *buffer, struct slice run)
{
	if (buffer->range_count == buffer->range_room) {
		size_t room = (size_t)buffer->range_room * 2;
		bool few = buffer->ranges == buffer->few;
		struct NC_range *more = realloc(few ? NULL : buffer->ranges, room * sizeof(*more));

		if (!more)
			return false;
		if (few)
			memcpy(more, buffer->few, sizeof(buffer->few));
		buffer->ranges = more;
		buffer->range_room = (unsigned)room;
	}
	buffer->ranges[buffer->range_count++] = (struct NC_range){
		.id = buffer->id, .offset = (size_t)(run.at - buffer->data), .length = run.length};
	return true;
}

/* Copies the bytes of all ranges into a unit of their size. */
static bool gather(NC_handle *gathered, const struct read_buffer *buffer, size_t bytes)
{
	/* First into plain memory: a unit is slow to write a byte at a time. */
	char *copy = malloc(bytes), *at = copy;
	bool good;

	if (!copy || make_unit(gathered, bytes) < 0) {
		free(copy);
		return false;
	}
	for (unsigned i = 0; i < buffer->range_count; i++) {
		memcpy(at, buffer->data + buffer->ranges[i].offset, buffer->ranges[i].length);
		at += buffer->ranges[i].length;
	}
	good = NC_write(gathered, copy, bytes, 0) == (ssize_t)bytes;
	free(copy);
	if (!good)
		(void)NC_free(gathered);
	return good;
}

bool read_buffer_pack(struct read_buffer *buffer)
{
	uint64_t bytes = read_buffer_bytes(buffer);
	NC_handle gathered = {0};
	struct read_buffer *packed;
	int error;

	if (buffer->ranges == buffer->few || bytes / buffer->range_count >= READ_BUFFER_RUN)
		return true;
	if (!gather(&gathered, buffer, (size_t)bytes))
		return false;
	packed = read_buffer_of(&gathered, (size_t)bytes, &error);
	if (!packed)
		return false;
	(void)read_buffer_add(packed, (struct slice){packed->data, packed->length});
	drop(buffer);
	*buffer = *packed;
	buffer->ranges = buffer->few;
	free(packed);
	return true;
}

uint64_t read_buffer_memory(const struct read_buffer *buffer)
{
	uint64_t bytes = MAX(buffer->length, READ_BUFFER_MIN);

	return buffer->ranges == buffer->few
		       ? bytes
		       : bytes + (uint64_t)buffer->range_room * sizeof(*buffer->ranges);
}

uint64_t read_buffer_bytes(const struct read_buffer *buffer)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < buffer->range_count; i++)
		bytes += buffer->ranges[i].length;
	return bytes;
}
