/* SPDX-License-Identifier: MIT */
/*
 * pagecache.h - loads a range of a file into the page cache, so that a loop that
 * sends it from there does not wait for a disk.
 */
#ifndef SWEET_PAGECACHE_H
#define SWEET_PAGECACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGECACHE_WINDOW ((size_t)1 << 20) /* the most efficient number of bytes to load at once */

#define PAGECACHE_READ ((size_t)128 << 10) /* bytes; the system reads at least this at once */

/*
 * Returns true if all pages of the range are in the page cache; does not block.
 * cachestat(2) also counts pages whose read has not ended, so this reads one byte
 * in every step bytes.  PAGECACHE_READ checks each read; a larger step is cheaper
 * and may miss one.
 */
bool pagecache_has(int fd, uint64_t offset, size_t length, size_t step);

/*
 * Waits until length bytes from offset are in the page cache; blocks on a disk.
 * Returns 0; -ERANGE: the file is shorter; -errno.
 */
int pagecache_load(int fd, uint64_t offset, size_t length);

#endif
