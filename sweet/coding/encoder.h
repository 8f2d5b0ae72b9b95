/* SPDX-License-Identifier: MIT */
/*
 * encoder.h - content codings that this build can make: each compresses bytes in
 * pieces, by a library that may be missing.
 *
 * Equal pieces give equal bytes, as long as the revision is the same.
 */
#ifndef SWEET_ENCODER_H
#define SWEET_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/accept.h"

/* What was written so far; zeros, and the limit, before the first piece.  The caller frees bytes. */
struct encoder_output {
	unsigned char *bytes;
	size_t length, room;
	size_t most; /* limit of length */
};

enum encoder_result {
	ENCODER_GOOD,
	ENCODER_TOO_LARGE, /* the output would be larger than its limit */
	ENCODER_FAILED,	   /* no memory, or the library reports an error */
};

/* What follows a piece. */
enum encoder_then {
	ENCODER_MORE,
	ENCODER_END, /* nothing: ends the stream.  Nothing may follow it, nor a failure, but close() */
	ENCODER_FLUSH, /* the caller does not know: writes all that a decoder needs for what came */
};

struct encoder {
	uint32_t (*revision)(void);    /* of the library and of how it is used */
	void *(*open)(uint64_t bytes); /* of the whole input; returns NULL without memory */
	/* Opens a fast one with little memory, for responses that are compressed while they are sent. */
	void *(*open_fast)(void);
	enum encoder_result (*write)(void *state, const void *piece, size_t bytes,
				     enum encoder_then then, struct encoder_output *output);
	void (*close)(void *state);
};

/* Returns NULL if this build lacks the library. */
const struct encoder *encoder_of(enum coding coding);

/* Returns the name of that library, and what to do, for a message. */
const char *encoder_missing(enum coding coding);

/* --- for the encoders ------------------------------------------------------------ */

extern const struct encoder encoder_br, encoder_gzip, encoder_zstd;

/* Makes sure that length is below room; else returns why that cannot be. */
enum encoder_result encoder_make_room(struct encoder_output *output);

#endif
