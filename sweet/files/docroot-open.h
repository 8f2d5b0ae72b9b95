/* SPDX-License-Identifier: MIT */
/*
 * docroot-open.h - opens names below a root as its symlinks permit.
 *
 * path: relative; "." is the root itself.
 */
#ifndef SWEET_DOCROOT_OPEN_H
#define SWEET_DOCROOT_OPEN_H

#include "files/docroot.h"

/* As openat(); errno EXDEV or EACCES: it would leave the root. */
int docroot_openat(struct docroot root, const char *path, int flags);

/* As docroot_openat(), without waiting for a disk; errno EAGAIN: the kernel has not all in memory. */
int docroot_openat_cached(struct docroot root, const char *path, int flags);

#endif
