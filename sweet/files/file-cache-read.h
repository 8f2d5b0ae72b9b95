/* SPDX-License-Identifier: MIT */
/*
 * file-cache-read.h - one version of a file into one unit, in steps that either
 * wait for the disk, on a helper's thread, or do not, on a loop's.
 *
 * A step that does not wait answers READING_LATER where it would have to: the
 * same step, called by who may wait, goes on from there.  What a reading has is
 * given back by reading_end().
 */
#ifndef SWEET_FILE_CACHE_READ_H
#define SWEET_FILE_CACHE_READ_H

#include <errno.h>

#include <nabc.h>

#include "files/docroot.h"

#define READING_LATER (-EINPROGRESS)

struct reading {
	int fd;			     /* -1: not open */
	bool borrowed;		     /* the descriptor is another's, who reads from it too */
	bool filling;		     /* the handle is in use */
	size_t done;		     /* bytes that are in it */
	struct file_version version; /* once it is open */
	NC_handle handle;
};

#define READING_NONE ((struct reading){.fd = -1})

/* Opens the file, unless it is; 0 or -errno (docroot.h). */
int reading_open(struct reading *reading, int root, const char *path, bool wait);

/*
 * Sees to it that the version is at rest.  0; -EAGAIN: it changed meanwhile,
 * in a way that matters to files of up to max_unit bytes.
 */
int reading_rest(struct reading *reading, size_t max_unit, bool wait);

/*
 * All of the file into a unit, which is held once; passing: for one answer.  0 with *id
 * and *hold,
 * -EAGAIN when the file changed meanwhile, -ENOMEM for no room, or -errno.
 */
int reading_unit(struct reading *reading, bool passing, bool wait, size_t *id,
		 struct NC_hold *hold);

/* Its pages would be a second copy; those that wait to be written stay. */
void reading_drop_pages(const struct reading *reading);

void reading_end(struct reading *reading);

#endif
