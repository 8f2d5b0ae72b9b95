/* SPDX-License-Identifier: MIT */
/*
 * range.h - the Range field (RFC 9110, section 14.2) for a representation of known
 * size: which bytes to send.
 */
#ifndef SWEET_RANGE_H
#define SWEET_RANGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define RANGES_MAX 16u

struct range {
	uint64_t first, length; /* bytes; at least one */
};

/* Disjoint and not adjacent, within the representation; in the order of the request. */
struct range_set {
	unsigned count;
	struct range ranges[RANGES_MAX];
};

enum range_verdict {
	RANGE_IGNORED,	     /* respond as if there were no Range */
	RANGE_GOOD,	     /* the set holds the ranges to send */
	RANGE_UNSATISFIABLE, /* 416 */
};

/*
 * Ignores units other than bytes, malformed values, more than RANGES_MAX ranges,
 * and sets in which more than two ranges overlap earlier ones.  A few short fields
 * must not make a server send a file many times: ranges that overlap or are
 * adjacent are joined, so no byte is sent twice.
 */
enum range_verdict range_parse(struct slice value, uint64_t size, struct range_set *set);

/* multipart/byteranges (RFC 9110, section 14.6): the text between the ranges of a file. */
#define MULTIPART_BOUNDARY 24  /* bytes */
#define MULTIPART_TYPE_MAX 128 /* bytes */
#define MULTIPART_PART_MAX 512 /* bytes before a range, and after the last */

struct multipart {
	char boundary[MULTIPART_BOUNDARY];
	char type[MULTIPART_TYPE_MAX]; /* Content-Type of the file */
	size_t type_length;
	uint64_t size; /* bytes of the file */
};

/* Cuts a longer type; random: MULTIPART_RANDOM bytes for the boundary. */
#define MULTIPART_RANDOM 18
void multipart_init(struct multipart *multipart, struct slice type, uint64_t size,
		    const unsigned char *random);

/* Writes "bytes FIRST-LAST/SIZE", NUL-terminated; returns its length. */
#define MULTIPART_RANGE_MAX 80
size_t multipart_content_range(struct range range, uint64_t size, char *out);

/*
 * Writes the text before the range of that number or, if number is set->count,
 * after the last range.  Returns its bytes; out needs MULTIPART_PART_MAX.
 */
size_t multipart_text(const struct multipart *multipart, const struct range_set *set,
		      unsigned number, char *out);

/* Returns the bytes of the complete body. */
uint64_t multipart_length(const struct multipart *multipart, const struct range_set *set);

#endif
