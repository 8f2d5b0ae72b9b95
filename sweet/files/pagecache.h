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

#define PAGECACHE_READ ((size_t)128 << 10) /* bytes; the system reads so many at once, or more */

/*
 * Whether they are there, as far as can be told without waiting.  Pages that are
 * being read count as there, so one byte is asked for in every step bytes: with
 * PAGECACHE_READ one of each read, so that the answer is sure.
 */
bool pagecache_has(int fd, uint64_t offset, size_t length, size_t step);

/*
 * Returns when length bytes from offset are in the page cache.  Blocks on a
 * disk.  0; -ERANGE: the file is shorter; -errno.
 */
int pagecache_load(int fd, uint64_t offset, size_t length);

#endif
