/* SPDX-License-Identifier: MIT */
/*
 * encoder.c - see encoder.h: the table of encoders, and the memory of their output.
 * No state: any thread may call it.
 */
#include <stdlib.h>

#include "coding/encoder.h"

#define ROOM_FIRST ((size_t)16 << 10) /* bytes */

/* configure.ac defines HAVE_* for the libraries that it finds. */
#ifdef HAVE_BROTLI
#define BR &encoder_br
#else
#define BR NULL
#endif
#ifdef HAVE_ZSTD
#define ZSTD &encoder_zstd
#else
#define ZSTD NULL
#endif
#ifdef HAVE_ZLIB
#define GZIP &encoder_gzip
#else
#define GZIP NULL
#endif

static const struct {
	const struct encoder *encoder;
	const char *missing;
} codings[CODINGS] = {
	[CODING_BR] = {BR, "must be a coding that this server was built with: br needs "
			   "libbrotlienc (on Debian: apt-get install libbrotli-dev, then build "
			   "again)"},
	[CODING_ZSTD] = {ZSTD, "must be a coding that this server was built with: zstd needs "
			       "libzstd (on Debian: apt-get install libzstd-dev, then build "
			       "again)"},
	[CODING_GZIP] = {GZIP, "must be a coding that this server was built with: gzip needs zlib "
			       "(on Debian: apt-get install zlib1g-dev, then build again)"},
};

const struct encoder *encoder_of(enum coding coding)
{
	return codings[coding].encoder;
}

const char *encoder_missing(enum coding coding)
{
	return codings[coding].missing;
}

enum encoder_result encoder_make_room(struct encoder_output *output)
{
	size_t room = output->room ? output->room * 2 : ROOM_FIRST;
	unsigned char *bytes;

	if (output->length < output->room)
		return ENCODER_GOOD;
	if (output->room >= output->most)
		return ENCODER_TOO_LARGE;
	room = room < output->most ? room : output->most;
	bytes = realloc(output->bytes, room);
	if (!bytes)
		return ENCODER_FAILED;
	output->bytes = bytes;
	output->room = room;
	return ENCODER_GOOD;
}
