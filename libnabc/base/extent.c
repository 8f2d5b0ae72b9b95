/* SPDX-License-Identifier: MIT */
/*
 * extent.c - first fit over a bitmap of pages.  It skips or takes a word of 64
 * pages at once, so a search in a 64 MiB segment takes at most 256 steps.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/extent.h"

#define WORD 64u

int nc_extent_init(struct nc_extent *extent, uint32_t pages)
{
	uint32_t words = (pages + WORD - 1) / WORD;

	*extent = (struct nc_extent){.pages = pages};
	extent->map = calloc(words ? words : 1, sizeof(*extent->map));
	if (!extent->map)
		return -ENOMEM;
	/* Bits behind the last page are never free. */
	if (pages % WORD)
		extent->map[words - 1] = ~UINT64_C(0) << pages % WORD;
	return 0;
}

void nc_extent_fini(struct nc_extent *extent)
{
	free(extent->map);
	*extent = (struct nc_extent){0};
}

/* Returns the first page in [from, limit) whose bit equals `used`; limit if none. */
static uint32_t next(const struct nc_extent *extent, uint32_t from, uint32_t limit, int used)
{
	uint64_t flip = used ? 0 : ~UINT64_C(0);

	while (from < limit) {
		uint64_t word = (extent->map[from / WORD] ^ flip) >> from % WORD;

		if (word) {
			from += (uint32_t)__builtin_ctzll(word);
			return from < limit ? from : limit;
		}
		from = (from / WORD + 1) * WORD;
	}
	return limit;
}

static void mark(struct nc_extent *extent, uint32_t first, uint32_t count, int used)
{
	while (count) {
		uint32_t bit = first % WORD;
		uint32_t here = WORD - bit < count ? WORD - bit : count;
		uint64_t mask = (here == WORD ? ~UINT64_C(0) : (UINT64_C(1) << here) - 1) << bit;

		assert(used ? !(extent->map[first / WORD] & mask)
			    : (extent->map[first / WORD] & mask) == mask);
		extent->map[first / WORD] ^= mask;
		first += here;
		count -= here;
	}
}

int64_t nc_extent_take(struct nc_extent *extent, uint32_t count)
{
	uint32_t pages = extent->pages, first;

	if (count == 0 || count > extent->pages - extent->used)
		return -ENOMEM;
	first = next(extent, extent->hint, pages, 0);
	extent->hint = first;
	/* No run that starts later is long enough. */
	while (first < pages && count <= pages - first) {
		/* Search no further than count: the run may contain all free pages. */
		uint32_t end = next(extent, first, first + count, 1);

		if (end == first + count) {
			mark(extent, first, count, 1);
			extent->used += count;
			if (first == extent->hint)
				extent->hint = first + count;
			return first;
		}
		first = next(extent, end, pages, 0);
	}
	return -ENOMEM;
}

int nc_extent_take_at(struct nc_extent *extent, uint32_t first, uint32_t count)
{
	if (first > extent->pages || count > extent->pages - first ||
	    next(extent, first, first + count, 1) != first + count)
		return -ENOMEM;
	mark(extent, first, count, 1);
	extent->used += count;
	if (first == extent->hint)
		extent->hint = first + count;
	return 0;
}

void nc_extent_give(struct nc_extent *extent, uint32_t first, uint32_t count)
{
	assert(count && first < extent->pages && count <= extent->pages - first);
	mark(extent, first, count, 0);
	extent->used -= count;
	if (first < extent->hint)
		extent->hint = first;
}
