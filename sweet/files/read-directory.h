/* SPDX-License-Identifier: MIT */
/*
 * read-directory.h - reads the entries of a folder beneath the root, for a listing.
 */
#ifndef SWEET_READ_DIRECTORY_H
#define SWEET_READ_DIRECTORY_H

#include <glib.h>
#include <stdbool.h>

#include "event/thread-pool.h"
#include "files/docroot.h"

struct directory {
	struct autoindex_entry *entries;
	unsigned count;
	bool more;	     /* there are more entries than max */
	GStringChunk *names; /* storage of the entries' names */
};

/*
 * Reads the folder at path (decoded, ends with '/'), at most max entries: the files
 * and folders that a request can get. hidden: include names that begin with a dot.
 * Returns 0, then the caller must call directory_clear(); or -errno: -ECANCELED if the job
 * was cancelled, for which it is read (NULL: none).  Blocks on the disk.
 */
int directory_read(struct docroot root, const char *path, bool hidden, unsigned max,
		   const struct job *job, struct directory *directory);
void directory_clear(struct directory *directory);

#endif
