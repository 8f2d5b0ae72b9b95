/* SPDX-License-Identifier: MIT */
/*
 * etag.h - entity tags (RFC 9110, section 8.8.3): makes them from a file's version,
 * and finds them in clients' fields.
 */
#ifndef SWEET_ETAG_H
#define SWEET_ETAG_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"

#define ETAG_LENGTH 18 /* with quotes */
#define ETAG_WEAK "W/" /* before a weak tag */

/* What a tag is made of; in the order of the values of "etag". */
enum etag_kind {
	ETAG_FILE, /* everything */
	ETAG_TIME, /* size and time of modification, which copies on other machines have, too */
};

/* Everything that distinguishes one version of a file from another. */
struct etag_source {
	uint64_t device, inode, size;
	int64_t modified_s, modified_ns, changed_s, changed_ns;
	uint64_t coded; /* 0: the file; else how it was compressed */
};

/*
 * Writes the strong tag of that version, exactly ETAG_LENGTH bytes, no NUL.  Equal
 * sources give equal tags, also after a restart; a tag does not reveal its source.
 */
void etag_format(const struct etag_source *source, char *out);

static inline bool etag_is_weak(struct slice tag)
{
	return tag.length >= 2 && memcmp(tag.at, ETAG_WEAK, 2) == 0;
}

/* Returns true if both tags are the same by weak comparison. */
bool etag_is_same(struct slice one, struct slice other);

/*
 * Returns true if a field value, "*" or a list of tags, contains our strong tag.
 * Strong comparison (If-Match) ignores weak tags; weak comparison (If-None-Match)
 * treats W/"x" as "x".  A list is read until its first syntax error.
 */
bool etag_listed(struct slice list, struct slice tag, bool strong);

#endif
