/* SPDX-License-Identifier: MIT */
/*
 * read-directory.h - reads what is in a folder beneath the root, for a listing.
 */
#ifndef SWEET_READ_DIRECTORY_H
#define SWEET_READ_DIRECTORY_H

#include <glib.h>

#include "http/autoindex-render.h"

struct directory {
	struct autoindex_entry *entries;
	unsigned count;
	bool more;	     /* than were to be read */
	GStringChunk *names; /* what the entries point to */
};

/*
 * Reads the folder at path (decoded, ends with '/'), max entries at most: the
 * files and folders that a request would get.  Names that begin with a dot
 * are among them with hidden alone.  0, then directory_clear() is due, or -errno.
 * Blocks on the disk.
 */
int directory_read(int root, const char *path, bool hidden, unsigned max,
		   struct directory *directory);
void directory_clear(struct directory *directory);

#endif
