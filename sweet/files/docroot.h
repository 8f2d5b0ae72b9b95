/* SPDX-License-Identifier: MIT */
/*
 * docroot.h - the folder that is served: opening what lies beneath it.
 *
 * openat2(RESOLVE_BENEATH) makes the kernel refuse every way out of the root,
 * symbolic links included.  Where it is missing, no symbolic link is followed
 * at all.  A pathname here is a decoded URL path ("/a/b").
 */
#ifndef SWEET_DOCROOT_H
#define SWEET_DOCROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* What tells one version of a file from another. */
struct file_version {
	dev_t device;
	ino_t inode;
	off_t size; /* bytes */
	struct timespec modified, changed;
};

bool file_version_equal(const struct file_version *a, const struct file_version *b);

/*
 * Whether a file that was made from another (by a packer, say) is as new as it.
 * Some packers give their file the other's time without the parts of a second:
 * then it must at least have been touched after the other.
 */
bool file_version_follows(const struct file_version *made, const struct file_version *from);

/*
 * Whether the bytes are the same, of two versions of one open file.  To lose a
 * name, or get another, is a change of the file (st_ctime), but not of its bytes.
 */
bool file_version_same_bytes(const struct file_version *a, const struct file_version *b);

/*
 * Waits until the last change is older than the grain of file times: what is
 * younger may change once more and look the same.  Blocks for some ms.
 */
void file_version_rest(const struct file_version *version);

/* Whether that would not wait. */
bool file_version_rests(const struct file_version *version);

/* A descriptor of the root folder, or -errno. */
int docroot_open(const char *folder);

/*
 * Opens the regular file at path.  Returns a descriptor and its version, or
 * -errno: -ENOENT, -EACCES (also: outside the root, not a regular file),
 * -EISDIR, -ELOOP, -EMFILE, -EIO ...  May block on a disk.
 */
int docroot_open_file(int root, const char *path, struct file_version *version);

/*
 * The same by what the kernel has in memory of the folders on the way: does
 * not wait for a disk.  -EAGAIN: that is not enough, or the kernel (before
 * Linux 5.12) cannot tell.
 */
int docroot_open_cached(int root, const char *path, struct file_version *version);

/* Opens the folder at path, to be read: a descriptor or -errno as above, and -ENOTDIR. */
int docroot_open_folder(int root, const char *path);

/*
 * What a request for path would find beneath the root: a folder, or a file of
 * that version.  0 or -errno; -EACCES for what is neither.
 */
int docroot_look(int root, const char *path, bool *folder, struct file_version *version);

/* The present version of an open file; 0 or -errno. */
int docroot_version(int fd, struct file_version *version);

/* Why, in words for the log, who asks is answered with 403 to such an error. */
const char *docroot_denied(int error);

/* The version of what is at path now, without opening it; 0 or -errno. */
int docroot_peek(int root, const char *path, struct file_version *version);

#endif
