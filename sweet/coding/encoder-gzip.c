/* SPDX-License-Identifier: MIT */
/*
 * encoder-gzip.c - gzip (RFC 1952) by zlib; see encoder.h.  The header has neither a
 * name nor a time.
 */
#include <stdint.h>
#include <stdlib.h>

#include <zlib.h>

#include "coding/encoder.h"

#define LEVEL 9
#define WINDOW_GZIP (15 + 16) /* bits of the window, and the gzip format */
#define MEMORY 9
#define LEVEL_FAST 3
#define MEMORY_FAST 8

static uint32_t gzip_revision(void)
{
	uint32_t hash = LEVEL;

	for (const char *at = zlibVersion(); *at; at++)
		hash = hash * 31 + (unsigned char)*at;
	return hash;
}

static z_stream *open_with(int level, int memory)
{
	z_stream *stream = calloc(1, sizeof(*stream));

	if (stream && deflateInit2(stream, level, Z_DEFLATED, WINDOW_GZIP, memory,
				   Z_DEFAULT_STRATEGY) == Z_OK)
		return stream;
	free(stream);
	return NULL;
}

static void *gzip_open_stream(uint64_t bytes)
{
	(void)bytes;
	return open_with(LEVEL, MEMORY);
}

static void *gzip_open_fast(void)
{
	return open_with(LEVEL_FAST, MEMORY_FAST);
}

static enum encoder_result gzip_write_piece(void *state, const void *piece, size_t bytes,
					    enum encoder_then then, struct encoder_output *output)
{
	static const int flushes[] = {[ENCODER_MORE] = Z_NO_FLUSH,
				      [ENCODER_END] = Z_FINISH,
				      [ENCODER_FLUSH] = Z_SYNC_FLUSH};
	z_stream *stream = state;
	int status;

	stream->next_in = (Bytef *)(uintptr_t)piece;
	stream->avail_in = (uInt)bytes;
	do {
		enum encoder_result result = encoder_make_room(output);

		if (result != ENCODER_GOOD)
			return result;
		stream->next_out = output->bytes + output->length;
		stream->avail_out = (uInt)(output->room - output->length);
		status = deflate(stream, flushes[then]);
		output->length = output->room - stream->avail_out;
		if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
			return ENCODER_FAILED;
	} while (then == ENCODER_END	 ? status != Z_STREAM_END
		 : then == ENCODER_FLUSH ? stream->avail_out == 0
					 : stream->avail_in > 0);
	return ENCODER_GOOD;
}

static void gzip_close_stream(void *state)
{
	(void)deflateEnd(state);
	free(state);
}

const struct encoder encoder_gzip = {gzip_revision, gzip_open_stream, gzip_open_fast,
				     gzip_write_piece, gzip_close_stream};
