/* SPDX-License-Identifier: MIT */
/*
 * pipe-reader.c - see pipe-reader.h.
 *
 * The buffer holds bytes that were read and are not part of the current body; the
 * missing rest of a body is read directly to its destination.
 */
#include <assert.h>
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "wire/pipe-reader.h"
#include "wire/wire.h"

#define BUFFER ((size_t)64 << 10)
#define RECORD_MAX                                                                                 \
	(sizeof(struct nc_wire_response) + NC_WIRE_RANGES_MAX * sizeof(struct NC_range) +          \
	 NC_WIRE_BLOCK_MAX)

static_assert(BUFFER >= RECORD_MAX, "a record can become whole");

struct nc_pipe_reader {
	int fd;
	size_t limit;
	bool ready;	   /* see nc_pipe_reader_ready() */
	bool dry;	   /* the last read emptied the pipe */
	size_t start, end; /* of the bytes in the buffer */
	char *data;	   /* of the current body */
	size_t have, length;
	bool body; /* a body is being read */
	struct nc_wire_response wire;
	char buffer[BUFFER];
	alignas(16) char record[RECORD_MAX];
};

struct nc_pipe_reader *nc_pipe_reader_open(int fd, size_t limit)
{
	struct nc_pipe_reader *reader = malloc(sizeof(*reader));

	if (!reader)
		return NULL;
	memset(reader, 0, offsetof(struct nc_pipe_reader, buffer));
	reader->fd = fd;
	reader->limit = limit;
	return reader;
}

void nc_pipe_reader_close(struct nc_pipe_reader *reader)
{
	if (!reader)
		return;
	close(reader->fd);
	free(reader->data);
	free(reader);
}

bool nc_pipe_reader_ready(const struct nc_pipe_reader *reader)
{
	return reader->ready;
}

/* Computes the length of the body; -EPROTO: over the limit. */
static int measure(struct nc_pipe_reader *reader)
{
	const struct NC_range *ranges = nc_wire_ranges(reader->record);

	reader->length = reader->have = 0;
	for (uint32_t i = 0; i < reader->wire.ranges; i++) {
		if (ranges[i].length > reader->limit - reader->length)
			return -EPROTO;
		reader->length += ranges[i].length;
	}
	return 0;
}

/* Takes a record out of the buffer.  Returns 1, 0 if it is incomplete, or -errno. */
static int parse(struct nc_pipe_reader *reader)
{
	const char *at = reader->buffer + reader->start;
	size_t there = reader->end - reader->start, length = sizeof(reader->wire), first;

	if (there < length)
		return 0;
	memcpy(&reader->wire, at, sizeof(reader->wire));
	if (reader->wire.ranges > NC_WIRE_RANGES_MAX ||
	    reader->wire.headers_length > NC_WIRE_BLOCK_MAX)
		return -EPROTO;
	length += reader->wire.ranges * sizeof(struct NC_range) + reader->wire.headers_length;
	if (there < length)
		return 0;
	memcpy(reader->record, at, length);
	if (nc_wire_check_response(reader->record, length, &reader->wire) || measure(reader))
		return -EPROTO;
	if (reader->length) {
		reader->data = malloc(reader->length);
		if (!reader->data)
			return -ENOMEM;
	}
	first = there - length < reader->length ? there - length : reader->length;
	if (first)
		memcpy(reader->data, at + length, first);
	reader->have = first;
	reader->start += length + first;
	reader->body = true;
	return 1;
}

/* Reads once.  Returns 1 if bytes came, 0 if there are none now, or at the end of the pipe. */
static int fill(struct nc_pipe_reader *reader)
{
	size_t rest = reader->length - reader->have;
	struct iovec iov[2] = {{reader->data ? reader->data + reader->have : NULL, rest}};
	ssize_t got;

	/* The last read emptied the pipe: wait until the descriptor is readable again. */
	if (reader->dry) {
		reader->dry = false;
		return 0;
	}
	memmove(reader->buffer, reader->buffer + reader->start, reader->end - reader->start);
	reader->end -= reader->start;
	reader->start = 0;
	iov[1] = (struct iovec){reader->buffer + reader->end, BUFFER - reader->end};
	do {
		got = readv(reader->fd, iov, 2);
	} while (got < 0 && errno == EINTR);
	if (got <= 0)
		return 0;
	reader->dry = (size_t)got < rest + iov[1].iov_len;
	if ((size_t)got < rest)
		rest = (size_t)got;
	reader->have += rest;
	reader->end += (size_t)got - rest;
	return 1;
}

int nc_pipe_reader_take(struct nc_pipe_reader *reader, const char **record,
			struct nc_wire_response *wire, char **data, size_t *length)
{
	for (;;) {
		int result = reader->body ? 1 : parse(reader);

		if (result < 0)
			return result;
		if (result && reader->have == reader->length)
			break;
		reader->ready = fill(reader);
		if (!reader->ready)
			return 0;
	}
	*record = reader->record;
	*wire = reader->wire;
	*data = reader->data;
	*length = reader->length;
	reader->data = NULL;
	reader->have = reader->length = 0;
	reader->body = false;
	return 1;
}
