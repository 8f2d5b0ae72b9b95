/* SPDX-License-Identifier: MIT */
/*
 * extent.h - allocator of page runs inside one segment.
 *
 * Knows page numbers, not memory: the map lives with whoever allocates, out
 * of reach of others.  Not thread-safe; the caller locks.
 */
#ifndef NC_EXTENT_H
#define NC_EXTENT_H

#include <stdint.h>

struct nc_extent {
	uint64_t *map; /* one bit a page, set when in use */
	uint32_t pages;
	uint32_t used;
	uint32_t hint; /* no free page below this one */
};

/* Returns 0 or -ENOMEM. */
int nc_extent_init(struct nc_extent *extent, uint32_t pages);
void nc_extent_fini(struct nc_extent *extent);

/*
 * The lowest run of count free pages, marked used: low addresses stay warm in
 * the CPU's caches.  Returns its first page, or -ENOMEM.
 */
int64_t nc_extent_take(struct nc_extent *extent, uint32_t count);
void nc_extent_give(struct nc_extent *extent, uint32_t first, uint32_t count);

#endif
