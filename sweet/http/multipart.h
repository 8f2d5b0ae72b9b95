/* SPDX-License-Identifier: MIT */
/*
 * multipart.h - multipart/byteranges (RFC 9110, section 14.6): the text between the
 * ranges of a file.
 */
#ifndef SWEET_MULTIPART_H
#define SWEET_MULTIPART_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "http/range.h"

struct range_set;

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
