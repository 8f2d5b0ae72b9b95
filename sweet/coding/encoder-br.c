/* SPDX-License-Identifier: MIT */
/*
 * encoder-br.c - brotli (RFC 7932) by libbrotlienc; see encoder.h.
 *
 * Quality 9: the two above it take ten times as long, for a few percent.
 */
#include <brotli/encode.h>
#include <stddef.h>
#include <stdint.h>

#include "coding/encoder.h"

#define QUALITY 9u
#define QUALITY_FAST 3u
#define WINDOW_FAST 17u /* bits */

static uint32_t br_revision(void)
{
	return BrotliEncoderVersion() * 31 + QUALITY;
}

static void *br_open_stream(uint64_t bytes)
{
	BrotliEncoderState *state = BrotliEncoderCreateInstance(NULL, NULL, NULL);
	uint32_t hint = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;

	if (!state)
		return NULL;
	(void)BrotliEncoderSetParameter(state, BROTLI_PARAM_QUALITY, QUALITY);
	(void)BrotliEncoderSetParameter(state, BROTLI_PARAM_SIZE_HINT, hint);
	return state;
}

static void *br_open_fast(void)
{
	BrotliEncoderState *state = BrotliEncoderCreateInstance(NULL, NULL, NULL);

	if (!state)
		return NULL;
	(void)BrotliEncoderSetParameter(state, BROTLI_PARAM_QUALITY, QUALITY_FAST);
	(void)BrotliEncoderSetParameter(state, BROTLI_PARAM_LGWIN, WINDOW_FAST);
	return state;
}

static enum encoder_result br_write_piece(void *state, const void *piece, size_t bytes,
					  enum encoder_then then, struct encoder_output *output)
{
	static const BrotliEncoderOperation operations[] = {
		[ENCODER_MORE] = BROTLI_OPERATION_PROCESS,
		[ENCODER_END] = BROTLI_OPERATION_FINISH,
		[ENCODER_FLUSH] = BROTLI_OPERATION_FLUSH};
	const uint8_t *next_in = piece;

	do {
		enum encoder_result result = encoder_make_room(output);
		uint8_t *next_out = output->bytes + output->length;
		size_t room = output->room - output->length;

		if (result != ENCODER_GOOD)
			return result;
		if (!BrotliEncoderCompressStream(state, operations[then], &bytes, &next_in, &room,
						 &next_out, NULL))
			return ENCODER_FAILED;
		output->length = output->room - room;
	} while (bytes > 0 || BrotliEncoderHasMoreOutput(state) ||
		 (then == ENCODER_END && !BrotliEncoderIsFinished(state)));
	return ENCODER_GOOD;
}

static void br_close_stream(void *state)
{
	BrotliEncoderDestroyInstance(state);
}

const struct encoder encoder_br = {br_revision, br_open_stream, br_open_fast, br_write_piece,
				   br_close_stream};
