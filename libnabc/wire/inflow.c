/* SPDX-License-Identifier: MIT */
/*
 * inflow.c - see inflow.h.
 *
 * The buffer holds what was read and is not of a body; the rest of a body that
 * is not there yet is read to where it belongs.
 */
#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "wire/inflow.h"

#define BUFFER ((size_t)64 << 10)
#define RECORD_MAX                                                                                 \
	(sizeof(struct nc_wire_response) + NC_WIRE_RANGES_MAX * sizeof(struct NC_range) +          \
	 NC_WIRE_BLOCK_MAX)

static_assert(BUFFER >= RECORD_MAX, "a record can become whole");

struct nc_inflow {
	int fd;
	size_t limit;
	bool ready;	   /* see nc_inflow_ready() */
	bool dry;	   /* the last read took all there was */
	size_t start, end; /* of what lies in the buffer */
	char *data;	   /* of the body under way */
	size_t have, length;
	bool body; /* one is under way */
	struct nc_wire_response wire;
	char buffer[BUFFER];
	alignas(16) char record[RECORD_MAX];
};

struct nc_inflow *nc_inflow_open(int fd, size_t limit)
{
	struct nc_inflow *inflow = malloc(sizeof(*inflow));

	if (!inflow)
		return NULL;
	memset(inflow, 0, offsetof(struct nc_inflow, buffer));
	inflow->fd = fd;
	inflow->limit = limit;
	return inflow;
}

void nc_inflow_close(struct nc_inflow *inflow)
{
	if (!inflow)
		return;
	close(inflow->fd);
	free(inflow->data);
	free(inflow);
}

bool nc_inflow_ready(const struct nc_inflow *inflow)
{
	return inflow->ready;
}

/* The bytes of the body; -EPROTO: more than there may be. */
static int measure(struct nc_inflow *inflow)
{
	const struct NC_range *ranges = nc_wire_ranges(inflow->record);

	inflow->length = inflow->have = 0;
	for (uint32_t i = 0; i < inflow->wire.ranges; i++) {
		if (ranges[i].length > inflow->limit - inflow->length)
			return -EPROTO;
		inflow->length += ranges[i].length;
	}
	return 0;
}

/* 1: a record came out of the buffer; 0: it is not all there; -errno. */
static int parse(struct nc_inflow *inflow)
{
	const char *at = inflow->buffer + inflow->start;
	size_t there = inflow->end - inflow->start, length = sizeof(inflow->wire), first;

	if (there < length)
		return 0;
	memcpy(&inflow->wire, at, sizeof(inflow->wire));
	if (inflow->wire.ranges > NC_WIRE_RANGES_MAX ||
	    inflow->wire.headers_length > NC_WIRE_BLOCK_MAX)
		return -EPROTO;
	length += inflow->wire.ranges * sizeof(struct NC_range) + inflow->wire.headers_length;
	if (there < length)
		return 0;
	memcpy(inflow->record, at, length);
	if (nc_wire_check_response(inflow->record, length, &inflow->wire) || measure(inflow))
		return -EPROTO;
	if (inflow->length) {
		inflow->data = malloc(inflow->length);
		if (!inflow->data)
			return -ENOMEM;
	}
	first = there - length < inflow->length ? there - length : inflow->length;
	if (first)
		memcpy(inflow->data, at + length, first);
	inflow->have = first;
	inflow->start += length + first;
	inflow->body = true;
	return 1;
}

/* 1: some came; 0: none now, nor any more at the end. */
static int fill(struct nc_inflow *inflow)
{
	size_t rest = inflow->length - inflow->have;
	struct iovec iov[2] = {{inflow->data ? inflow->data + inflow->have : NULL, rest}};
	ssize_t got;

	/* It was empty after the last read: the descriptor says when it is not. */
	if (inflow->dry) {
		inflow->dry = false;
		return 0;
	}
	memmove(inflow->buffer, inflow->buffer + inflow->start, inflow->end - inflow->start);
	inflow->end -= inflow->start;
	inflow->start = 0;
	iov[1] = (struct iovec){inflow->buffer + inflow->end, BUFFER - inflow->end};
	do {
		got = readv(inflow->fd, iov, 2);
	} while (got < 0 && errno == EINTR);
	if (got <= 0)
		return 0;
	inflow->dry = (size_t)got < rest + iov[1].iov_len;
	if ((size_t)got < rest)
		rest = (size_t)got;
	inflow->have += rest;
	inflow->end += (size_t)got - rest;
	return 1;
}

int nc_inflow_take(struct nc_inflow *inflow, const char **record, struct nc_wire_response *wire,
		   char **data, size_t *length)
{
	for (;;) {
		int result = inflow->body ? 1 : parse(inflow);

		if (result < 0)
			return result;
		if (result && inflow->have == inflow->length)
			break;
		inflow->ready = fill(inflow);
		if (!inflow->ready)
			return 0;
	}
	*record = inflow->record;
	*wire = inflow->wire;
	*data = inflow->data;
	*length = inflow->length;
	inflow->data = NULL;
	inflow->have = inflow->length = 0;
	inflow->body = false;
	return 1;
}
