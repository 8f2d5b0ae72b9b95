/* SPDX-License-Identifier: MIT */
/*
 * etag.h - entity tags (RFC 9110, section 8.8.3): made from a file's version,
 * found in what a client sends.
 */
#ifndef SWEET_ETAG_H
#define SWEET_ETAG_H

#include <stdint.h>

#include "base/slice.h"

#define ETAG_LENGTH 18 /* with its quotes */

/* What the tag of a file depends on; all that tells one version from another. */
struct etag_source {
	uint64_t device, inode, size;
	int64_t modified_s, modified_ns, changed_s, changed_ns;
};

/*
 * Writes the strong tag of that version, exactly ETAG_LENGTH bytes, no NUL.
 * Equal sources give equal tags, after a restart too; a tag tells nothing of
 * what it was made from.
 */
void etag_format(const struct etag_source *source, char *out);

/*
 * Whether a field value, "*" or a list of tags, has our strong tag in it.
 * Strong comparison counts no weak tag (If-Match), weak comparison takes W/"x"
 * for "x" (If-None-Match).  A list is read up to where it is malformed.
 */
bool etag_listed(struct slice list, struct slice tag, bool strong);

#endif
