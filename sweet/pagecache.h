/* SPDX-License-Identifier: MIT */
/*
 * pagecache.h - brings a range of a file into the page cache, so that a loop
 * that sends it from there does not wait for a disk.
 */
#ifndef SWEET_PAGECACHE_H
#define SWEET_PAGECACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGECACHE_WINDOW ((size_t)1 << 20) /* bytes that are cheapest to load at once */

/* Whether they are there as far as can be told without waiting. */
bool pagecache_has(int fd, uint64_t offset, size_t length);

/*
 * Returns when length bytes from offset are in the page cache.  Blocks on a
 * disk.  0; -ERANGE: the file is shorter; -errno.
 */
int pagecache_load(int fd, uint64_t offset, size_t length);

#endif
