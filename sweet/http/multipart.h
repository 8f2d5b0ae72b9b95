/* SPDX-License-Identifier: MIT */
/*
 * multipart.h - multipart/byteranges (RFC 9110, section 14.6): the text that
 * stands between the ranges of a file.
 */
#ifndef SWEET_MULTIPART_H
#define SWEET_MULTIPART_H

#include "http/range.h"

#define MULTIPART_BOUNDARY 24  /* bytes */
#define MULTIPART_TYPE_MAX 128 /* bytes */
#define MULTIPART_PART_MAX 512 /* bytes in front of a range, and behind the last */

struct multipart {
	char boundary[MULTIPART_BOUNDARY];
	char type[MULTIPART_TYPE_MAX]; /* Content-Type of the whole */
	size_t type_length;
	uint64_t size; /* bytes of the whole */
};

/* A longer type is cut; random: that many bytes for the boundary. */
#define MULTIPART_RANDOM 18
void multipart_init(struct multipart *multipart, struct slice type, uint64_t size,
		    const unsigned char *random);

/* "bytes FIRST-LAST/SIZE", NUL-terminated; returns its length. */
#define MULTIPART_RANGE_MAX 80
size_t multipart_content_range(struct range range, uint64_t size, char *out);

/*
 * What stands in front of the range of that number, or, with the number
 * set->count, behind the last.  Returns the bytes; out needs MULTIPART_PART_MAX.
 */
size_t multipart_text(const struct multipart *multipart, const struct range_set *set,
		      unsigned number, char *out);

/* Bytes of the whole body. */
uint64_t multipart_length(const struct multipart *multipart, const struct range_set *set);

#endif
