/* SPDX-License-Identifier: MIT */
/*
 * stream.c - a stdio stream over a handle; see stream.h.
 *
 * The C library buffers.  These functions use the calls of handle.c, which check
 * the handle each time: a stream that is used after its unit is inserted or freed
 * fails and does no harm.  A stream belongs to the handle's thread, and owns only
 * its position.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "membership/handle.h"
#include "worker/stream.h"

struct stream {
	NC_handle *handle;
	size_t at;   /* byte of the unit where the next read or write begins */
	bool append; /* writes begin behind the filled prefix */
	bool grows;  /* writes beyond the end of the unit make it longer */
};

static ssize_t handle_stream_read(void *cookie, char *to, size_t length)
{
	struct stream *stream = cookie;
	ssize_t got = nc_handle_copy(stream->handle, stream->at, to, length);

	if (got < 0) {
		errno = (int)-got;
		return -1;
	}
	stream->at += (size_t)got;
	return got;
}

/*
 * Makes the unit long enough for a write, and at least twice as long as it is, so that all
 * moves together copy no more bytes than the unit gets.  Sets *size.
 */
static int make_room(const struct stream *stream, size_t length, size_t *size)
{
	size_t most = nc_handle_most(stream->handle), end, twice;
	int error;

	if (__builtin_add_overflow(stream->at, length, &end) || end > most)
		return -EFBIG;
	twice = *size < most / 2 ? 2 * *size : most;
	if (twice < end)
		twice = end;
	error = nc_handle_grow(stream->handle, twice);
	/* Memory is short: as much as is needed now. */
	if (error == -ENOMEM) {
		twice = end;
		error = nc_handle_grow(stream->handle, end);
	}
	if (!error)
		*size = twice;
	return error;
}

/* A short write is an error, and failure is 0 bytes instead of -1: fopencookie(3). */
static ssize_t handle_stream_write(void *cookie, const char *from, size_t length)
{
	struct stream *stream = cookie;
	size_t size, filled, room;
	ssize_t done = 0;
	int error = nc_handle_extent(stream->handle, &size, &filled);

	if (error) {
		errno = -error;
		return 0;
	}
	if (stream->append)
		stream->at = filled;
	error = -ENOSPC;
	if (stream->grows && (stream->at > size || length > size - stream->at))
		error = make_room(stream, length, &size);
	room = stream->at < size ? size - stream->at : 0;
	if (room)
		done = nc_handle_write(stream->handle, stream->at, from,
				       length < room ? length : room);
	if (done < 0) {
		errno = (int)-done;
		return 0;
	}
	stream->at += (size_t)done;
	if ((size_t)done < length)
		errno = -error;
	return done;
}

static int handle_stream_seek(void *cookie, off64_t *offset, int whence)
{
	struct stream *stream = cookie;
	size_t size, filled;
	off64_t target;
	int error = nc_handle_extent(stream->handle, &size, &filled);

	if (error) {
		errno = -error;
		return -1;
	}
	if (stream->grows)
		size = nc_handle_most(stream->handle);
	target = whence == SEEK_CUR   ? (off64_t)stream->at
		 : whence == SEEK_END ? (off64_t)filled
				      : 0;
	if (__builtin_add_overflow(target, *offset, &target) || target < 0 ||
	    target > (off64_t)size) {
		errno = EINVAL;
		return -1;
	}
	stream->at = (size_t)target;
	*offset = target;
	return 0;
}

static int handle_stream_close(void *cookie)
{
	free(cookie);
	return 0;
}

/* Returns the mode to pass to the C library, or NULL. */
static const char *plain_mode(const char *mode)
{
	bool both = false;

	for (const char *at = mode + 1; *mode && *at; at++) {
		/* Each of the four at most once, in any order. */
		if (!strchr("+beg", *at) || strchr(at + 1, *at))
			return NULL;
		both |= *at == '+';
	}
	switch (*mode) {
	case 'r':
		return both ? "r+" : "r";
	case 'w':
		return both ? "w+" : "w";
	case 'a':
		return both ? "a+" : "a";
	default:
		return NULL;
	}
}

FILE *nc_stream_open(NC_handle *handle, const char *mode, int *error)
{
	static const cookie_io_functions_t calls = {
		.read = handle_stream_read,
		.write = handle_stream_write,
		.seek = handle_stream_seek,
		.close = handle_stream_close,
	};
	size_t size, filled;
	struct stream *stream;
	bool grows;
	FILE *file;

	*error = nc_handle_extent(handle, &size, &filled);
	if (*error)
		return NULL;
	grows = mode && strchr(mode, 'g');
	mode = mode ? plain_mode(mode) : NULL;
	*error = mode ? -ENOMEM : -EINVAL;
	stream = mode ? malloc(sizeof(*stream)) : NULL;
	if (!stream)
		return NULL;
	*stream = (struct stream){.handle = handle, .append = *mode == 'a', .grows = grows};
	if (stream->append && mode[1] != '+')
		stream->at = filled;
	file = fopencookie(stream, mode, calls);
	if (!file) {
		*error = -errno;
		free(stream);
	}
	return file;
}
