/* SPDX-License-Identifier: MIT */
/*
 * chunked.h - decodes the chunked transfer coding as it arrives (RFC 9112, section
 * 7.1).
 */
#ifndef SWEET_CHUNKED_H
#define SWEET_CHUNKED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct slice;

#define CHUNKED_DIGITS_MAX 15	    /* of a chunk's size */
#define CHUNKED_EXTENSIONS_MAX 4096 /* bytes, of all chunks of a body together */
#define CHUNKED_TRAILERS_MAX 8192   /* bytes */

/* A body being received.  In the caller's memory; only chunked.c uses the fields. */
struct chunked {
	uint64_t left;	   /* missing bytes of the current chunk */
	uint16_t trailers; /* bytes so far */
	uint16_t extensions;
	uint8_t digits; /* of the current size */
	uint8_t state;
};

void chunked_init(struct chunked *chunked);

/*
 * Decodes a part of data[0, length).  Returns the number of bytes consumed, at
 * least one if length > 0 and the body is not complete; *run is the content among
 * them, possibly empty.  The caller calls it again with the rest.  Returns a
 * negated status for the response on errors: -400 malformed, -431 extensions or
 * trailers too long; then the connection must be closed.
 */
ssize_t chunked_decode(struct chunked *chunked, const char *data, size_t length, struct slice *run);

/* Returns the missing bytes of content that the current chunk's size has announced. */
uint64_t chunked_due(const struct chunked *chunked);

/* Returns true if the trailer section is complete: further bytes are not the body's. */
bool chunked_is_over(const struct chunked *chunked);

#endif
