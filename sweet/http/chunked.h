/* SPDX-License-Identifier: MIT */
/*
 * chunked.h - the chunked transfer coding, decoded as it comes in (RFC 9112,
 * section 7.1).
 */
#ifndef SWEET_CHUNKED_H
#define SWEET_CHUNKED_H

#include <stdint.h>
#include <sys/types.h>

#include "base/slice.h"

#define CHUNKED_DIGITS_MAX 15	    /* of a chunk's size */
#define CHUNKED_EXTENSIONS_MAX 4096 /* bytes, of all chunks of a body together */
#define CHUNKED_TRAILERS_MAX 8192   /* bytes */

/* A body that is on its way.  The caller's memory; the inside is chunked.c's. */
struct chunked {
	uint64_t left;	   /* bytes of the present chunk that are still to come */
	uint16_t trailers; /* bytes so far */
	uint16_t extensions;
	uint8_t digits; /* of the present size */
	uint8_t state;
};

void chunked_init(struct chunked *chunked);

/*
 * Decodes what it can of data[0, length).  Returns the bytes that it is done
 * with, at least one if there are any and the body is not over, and in *run
 * those of them that are content, perhaps none; the caller comes again with
 * the rest.  Below 0 the status of the answer, negated: -400 malformed, -431
 * extensions or trailers that are too long; the connection must be closed.
 */
ssize_t chunked_decode(struct chunked *chunked, const char *data, size_t length, struct slice *run);

/* Bytes of content that the present chunk's size has announced, and that are to come. */
uint64_t chunked_due(const struct chunked *chunked);

/* The last byte of the trailer section was decoded: what follows is not the body's. */
bool chunked_is_over(const struct chunked *chunked);

#endif
