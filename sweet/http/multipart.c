/* SPDX-License-Identifier: MIT */
/*
 * multipart.c - see multipart.h.  No state, no allocation: any thread may call it.
 *
 * A boundary must not occur in the parts.  The server does not search files for it;
 * it is random, and new for each response, so that nobody can create a file that
 * contains it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "http/multipart.h"

void multipart_init(struct multipart *multipart, struct slice type, uint64_t size,
		    const unsigned char *random)
{
	static const char digits[64] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	multipart->size = size;
	multipart->type_length =
		type.length < MULTIPART_TYPE_MAX ? type.length : MULTIPART_TYPE_MAX;
	memcpy(multipart->type, type.at, multipart->type_length);
	for (unsigned i = 0; i < MULTIPART_BOUNDARY; i++) {
		unsigned at = i * 6 / 8, shift = i * 6 % 8;
		unsigned two = (unsigned)random[at] << 8 |
			       (at + 1 < MULTIPART_RANDOM ? random[at + 1] : 0u);

		multipart->boundary[i] = digits[two >> (10 - shift) & 63];
	}
}

size_t multipart_content_range(struct range range, uint64_t size, char *out)
{
	return (size_t)snprintf(out, MULTIPART_RANGE_MAX, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
				range.first, range.first + range.length - 1, size);
}

size_t multipart_text(const struct multipart *multipart, const struct range_set *set,
		      unsigned number, char *out)
{
	/* The line end before a boundary belongs to the boundary, not to the range. */
	const char *before = number ? "\r\n" : "";
	char content_range[MULTIPART_RANGE_MAX];

	if (number == set->count)
		return (size_t)snprintf(out, MULTIPART_PART_MAX, "%s--%.*s--\r\n", before,
					MULTIPART_BOUNDARY, multipart->boundary);
	multipart_content_range(set->ranges[number], multipart->size, content_range);
	return (size_t)snprintf(out, MULTIPART_PART_MAX,
				"%s--%.*s\r\nContent-Type: %.*s\r\nContent-Range: %s\r\n\r\n",
				before, MULTIPART_BOUNDARY, multipart->boundary,
				(int)multipart->type_length, multipart->type, content_range);
}

uint64_t multipart_length(const struct multipart *multipart, const struct range_set *set)
{
	char text[MULTIPART_PART_MAX];
	uint64_t length = multipart_text(multipart, set, set->count, text);

	for (unsigned i = 0; i < set->count; i++)
		length += multipart_text(multipart, set, i, text) + set->ranges[i].length;
	return length;
}
