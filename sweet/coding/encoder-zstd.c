/* SPDX-License-Identifier: MIT */
/*
 * encoder-zstd.c - Zstandard (RFC 8878) by libzstd; see encoder.h.
 *
 * Clients need not accept windows above 8 MB (RFC 9659); this level has smaller ones.
 */
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

#include "coding/encoder.h"

#define LEVEL 12
#define WINDOW_LOG_MAX 22
#define LEVEL_FAST 1
#define WINDOW_LOG_FAST 17

static uint32_t zstd_revision(void)
{
	return ZSTD_versionNumber() * 31 + LEVEL;
}

static void *zstd_open_stream(uint64_t bytes)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();

	if (context &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL)) &&
	    !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(context, bytes)) &&
	    (bytes >> WINDOW_LOG_MAX == 0 ||
	     !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, WINDOW_LOG_MAX))))
		return context;
	(void)ZSTD_freeCCtx(context);
	return NULL;
}

static void *zstd_open_fast(void)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();

	if (context &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL_FAST)) &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, WINDOW_LOG_FAST)))
		return context;
	(void)ZSTD_freeCCtx(context);
	return NULL;
}

static enum encoder_result zstd_write_piece(void *state, const void *piece, size_t bytes,
					    enum encoder_then then, struct encoder_output *output)
{
	static const ZSTD_EndDirective directives[] = {[ENCODER_MORE] = ZSTD_e_continue,
						       [ENCODER_END] = ZSTD_e_end,
						       [ENCODER_FLUSH] = ZSTD_e_flush};
	ZSTD_inBuffer from = {piece, bytes, 0};
	size_t left;

	do {
		enum encoder_result result = encoder_make_room(output);
		ZSTD_outBuffer to = {output->bytes, output->room, output->length};

		if (result != ENCODER_GOOD)
			return result;
		left = ZSTD_compressStream2(state, &to, &from, directives[then]);
		if (ZSTD_isError(left))
			return ENCODER_FAILED;
		output->length = to.pos;
	} while (then == ENCODER_MORE ? from.pos < from.size : left > 0);
	return ENCODER_GOOD;
}

static void zstd_close_stream(void *state)
{
	(void)ZSTD_freeCCtx(state);
}

const struct encoder encoder_zstd = {zstd_revision, zstd_open_stream, zstd_open_fast,
				     zstd_write_piece, zstd_close_stream};
