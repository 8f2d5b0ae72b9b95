/* SPDX-License-Identifier: MIT */
/*
 * user-open.h - opens files as root without being led elsewhere by the user that the server runs as.
 *
 * Who can write a folder can make a symbolic link there, to any file of root's (CVE-2016-1247).
 * So files are opened with that user's rights first.  With root's rights, only where that user can
 * write none of the folders on the way, and none that a link leads through.
 */
#ifndef SWEET_USER_OPEN_H
#define SWEET_USER_OPEN_H

#include <sys/types.h>

#define USER_OPEN_UNSAFE (-4096) /* only root may open it, but that user can write a folder */

/*
 * Sets the user, for all threads; before there are others.  groups: all of that user, copied.
 * Without it, and in a process that is not root, user_open() is open(2).
 */
void user_open_set(uid_t uid, gid_t gid, const gid_t *groups, int count);

/* Returns a descriptor, -errno or USER_OPEN_UNSAFE. */
int user_open(const char *path, int flags, mode_t mode);

/* Returns what an error of user_open(), or -errno, means; may overwrite the last one. */
const char *user_open_error(int error);

#endif
