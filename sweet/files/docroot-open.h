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

/* The same, but only with what the kernel has in memory; errno EAGAIN: that is not enough. */
int docroot_openat_cached(struct docroot root, const char *path, int flags);

#endif
