/* SPDX-License-Identifier: MIT */
/*
 * extent.h - allocator of page runs inside one segment.
 *
 * It handles page numbers, not memory: the map is in private memory of the
 * allocating process.  Not thread-safe; the caller locks.
 */
#ifndef NC_EXTENT_H
#define NC_EXTENT_H

#include <stdint.h>

struct nc_extent {
	uint64_t *map; /* one bit per page, set when in use */
	uint32_t pages;
	uint32_t used;
	uint32_t hint; /* no free page below this one */
};

/* Returns 0 or -ENOMEM. */
int nc_extent_init(struct nc_extent *extent, uint32_t pages);
void nc_extent_fini(struct nc_extent *extent);

/*
 * Takes the lowest run of count free pages: low addresses stay in the CPU's caches.
 * Returns its first page, or -ENOMEM.
 */
int64_t nc_extent_take(struct nc_extent *extent, uint32_t count);

/* Takes these pages.  Returns 0, or -ENOMEM: one of them is in use, or there is none. */
int nc_extent_take_at(struct nc_extent *extent, uint32_t first, uint32_t count);
void nc_extent_give(struct nc_extent *extent, uint32_t first, uint32_t count);

#endif
