/* SPDX-License-Identifier: MIT */
/*
 * folder.h - reads what is in a folder beneath the root, for a listing.
 */
#ifndef SWEET_FOLDER_H
#define SWEET_FOLDER_H

#include <glib.h>

#include "http/listing.h"

struct folder {
	struct listing_entry *entries;
	unsigned count;
	bool more;	     /* than were to be read */
	GStringChunk *names; /* what the entries point to */
};

/*
 * Reads the folder at path (decoded, ends with '/'), max entries at most: the
 * files and folders that a request would get.  Names that begin with a dot
 * are among them with hidden alone.  0, then folder_clear() is due, or -errno.
 * Blocks on the disk.
 */
int folder_read(int root, const char *path, bool hidden, unsigned max, struct folder *folder);
void folder_clear(struct folder *folder);

#endif
