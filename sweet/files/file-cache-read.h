/* SPDX-License-Identifier: MIT */
/*
 * file-cache-read.h - reads one version of a file into one unit, in steps that
 * either wait for the disk, on a helper's thread, or do not, on a loop's thread.
 *
 * A step that would have to wait, but must not, returns READING_LATER: then the
 * same step, called by a thread that may wait, continues from there. reading_end()
 * frees what a reading owns.
 */
#ifndef SWEET_FILE_CACHE_READ_H
#define SWEET_FILE_CACHE_READ_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include <nabc.h>

#include "files/docroot.h"

#define READING_LATER (-EINPROGRESS)

/* What a unit is for, and how its bytes are read. */
enum reading_way {
	READING_CACHED, /* for the cache */
	READING_DIRECT, /* for the cache, past the page cache if the file permits it */
	READING_PASSING /* for one response */
};

struct reading {
	int fd; /* -1: not open */
	struct docroot root;
	const char *path; /* below root; of the caller that opened it */
	bool borrowed;	  /* the descriptor belongs to another reading, which uses it too */
	bool filling;	  /* the handle is in use */
	size_t done;	  /* bytes in the unit so far */
	struct file_version version; /* valid when it is open */
	NC_handle handle;
};

#define READING_NONE ((struct reading){.fd = -1})

/* Uses the descriptor of another reading, which has opened the file at path. */
void reading_borrow(struct reading *reading, const struct reading *from, struct docroot root,
		    const char *path, const struct file_version *version);

/* Opens the file, unless it is open; returns 0 or -errno (docroot.h). */
int reading_open(struct reading *reading, struct docroot root, const char *path, bool wait);

/*
 * Makes sure that the version is stable.  Returns 0; -EAGAIN: its bytes may have changed meanwhile.
 * A file that was renamed, replaced or removed meanwhile is the version that was opened.
 */
int reading_rest(struct reading *reading, bool wait);

/*
 * Reads the whole file into a unit, with one hold.  READING_DIRECT needs a descriptor
 * that is not borrowed, and wait.
 * Returns 0, *id and *hold; -EAGAIN if the file changed meanwhile, -ENOMEM without
 * memory, or -errno.
 */
int reading_unit(struct reading *reading, enum reading_way way, bool wait, size_t *id,
		 struct NC_hold *hold);

/*
 * Drops the file's pages from the page cache, because they are a second copy; dirty
 * pages remain.
 */
void reading_drop_pages(const struct reading *reading);

void reading_end(struct reading *reading);

#endif
