/* SPDX-License-Identifier: MIT */
/*
 * fuzz-pipe-reader.c - responses that arrive as bytes through a pipe
 * (libnabc/wire/pipe-reader.c): for any division, each accepted one is the next of the
 * stream, with exactly the bytes of its body.  The first byte selects the division.
 */
#include <fcntl.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/pipe-reader.h"
#include "wire/wire.h"

#include "fuzz.h"

#define LIMIT 5000u

struct stream {
	const uint8_t *bytes;
	size_t length, at; /* at: where the next response begins */
};

/* Checks that a response is the next one in the stream. */
static void check_next(struct stream *stream, const char *record,
		       const struct nc_wire_response *wire, const char *data, size_t length)
{
	const struct NC_range *ranges = nc_wire_ranges(record);
	size_t head = sizeof(*wire) + wire->ranges * sizeof(*ranges) + wire->headers_length;
	size_t body = 0;

	MUST(head <= stream->length - stream->at);
	MUST(memcmp(record, stream->bytes + stream->at, head) == 0);
	stream->at += head;
	for (unsigned i = 0; i < wire->ranges; i++)
		body += ranges[i].length;
	MUST(body == length && length <= LIMIT && !data == !length);
	MUST(length <= stream->length - stream->at);
	if (length)
		MUST(memcmp(data, stream->bytes + stream->at, length) == 0);
	stream->at += length;
}

/* Takes all available ones.  Returns 0, or the error that stopped it. */
static int take_all(struct nc_pipe_reader *reader, struct stream *stream)
{
	struct nc_wire_response wire;
	const char *record;
	size_t length;
	char *data;
	int result;

	while ((result = nc_pipe_reader_take(reader, &record, &wire, &data, &length)) == 1) {
		check_next(stream, record, &wire, data, length);
		free(data);
	}
	MUST(result <= 0);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	size_t step = 1 + input_number(&input, 1) * 8, sent = 0;
	struct stream stream = {.bytes = input.at, .length = input.left};
	struct nc_pipe_reader *reader;
	int ends[2], result = 0;

	MUST(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
	reader = nc_pipe_reader_open(ends[0], LIMIT);
	MUST(reader);
	while (result == 0 && sent < stream.length) {
		size_t now = stream.length - sent < step ? stream.length - sent : step;

		MUST(write(ends[1], stream.bytes + sent, now) == (ssize_t)now);
		sent += now;
		/* All received bytes are processed before the next read. */
		do {
			result = take_all(reader, &stream);
		} while (result == 0 && nc_pipe_reader_ready(reader));
	}
	nc_pipe_reader_close(reader);
	close(ends[1]);
	return 0;
}
