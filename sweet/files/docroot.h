/* SPDX-License-Identifier: MIT */
/*
 * docroot.h - the folder that is served, and opening files beneath it.
 *
 * With openat2(RESOLVE_BENEATH), the kernel refuses every path that leaves the
 * root, also by symbolic links, unless these may lead out of it.  Without
 * openat2(), no symbolic link is followed then.  A pathname here is a decoded URL
 * path ("/a/b").
 */
#ifndef SWEET_DOCROOT_H
#define SWEET_DOCROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/symlinks.h"

/* A folder that is served. */
struct docroot {
	int fd;
	enum symlinks symlinks;
};

/* What distinguishes one version of a file from another. */
struct file_version {
	dev_t device;
	ino_t inode;
	off_t size; /* bytes */
	struct timespec modified, changed;
	/* What explains a change of `changed` (st_ctime) that is none of the bytes. */
	nlink_t links;
	mode_t mode;
	uid_t user;
	gid_t group;
	bool moved; /* docroot_still() has found that its path names another file, or none */
};

bool file_version_equal(const struct file_version *a, const struct file_version *b);

/*
 * Returns true if a file that was made from another (for example, by a compressor)
 * is not older.  Some compressors copy the other's time without its fraction of a
 * second: then it must have been changed later than the other.
 */
bool file_version_follows(const struct file_version *made, const struct file_version *from);

/*
 * Waits until the last change is older than the resolution of timestamps: a newer
 * file may change again without a visible difference.  Blocks for some ms.
 */
void file_version_await_stable(const struct file_version *version);

/* Returns true if file_version_await_stable() would not wait. */
bool file_version_is_stable(const struct file_version *version);

/* Returns a descriptor of the root folder, or -errno. */
int docroot_open(const char *folder);

/*
 * If that path, of the root, leads to another folder now, root.fd becomes a descriptor of it, for
 * all threads at once.  Returns 1, 0 if nothing has changed, or -errno: then the old one stays.
 */
int docroot_follow(struct docroot root, const char *folder);

/*
 * Opens the regular file at path.  Returns a descriptor and its version, or -errno:
 * -ENOENT, -EACCES (also: outside the root, not a regular file), -EISDIR, -ELOOP,
 * -EMFILE, -EIO ... May block on a disk.
 */
int docroot_open_file(struct docroot root, const char *path, struct file_version *version);

/*
 * Opens the file only if the kernel has its folders in memory, so it does not wait for
 * a disk.  Returns as docroot_open_file(), or -EAGAIN: they are not all in memory, or
 * the kernel (before Linux 5.12) cannot do this.
 */
int docroot_open_cached(struct docroot root, const char *path, struct file_version *version);

/*
 * Opens the folder at path for reading; returns a descriptor or -errno as above,
 * also -ENOTDIR.
 */
int docroot_open_folder(struct docroot root, const char *path);

/*
 * Finds what a request for path would get: a folder, or a file of that version.
 * Returns 0 or -errno; -EACCES for all else.
 */
int docroot_look(struct docroot root, const char *path, bool *folder, struct file_version *version);

/* Gets the current version of an open file; returns 0 or -errno. */
int docroot_version(int fd, struct file_version *version);

/*
 * Whether the open file that was found at path (NULL: the path is not known) still has the bytes of
 * that version.  Its st_ctime counts, since a writer may restore the time of modification, unless
 * the number of its names, its mode or its owner has changed, or path names it no more: then
 * *version becomes the current one.  Returns 0, -EAGAIN if it may have other bytes, or -errno.
 * wait: looks for some 15 ms whether a change that is being made explains itself; without, -EAGAIN
 * may be wrong.
 */
int docroot_still(int fd, struct docroot root, const char *path, struct file_version *version,
		  bool wait);

/* Returns the reason, for the log, why such an error is answered with 403. */
const char *docroot_denied(int error);

/* Gets the current version of the file at path without opening it; returns 0 or -errno. */
int docroot_peek(struct docroot root, const char *path, struct file_version *version);

#endif
