/* SPDX-License-Identifier: MIT */
/*
 * fragment.c - the layout of a unit: fragments of fraglen bytes (paper 002, figure
 * 1).  A fragment is aligned to a cache line and never straddles a page; lengths
 * that divide a page, or are whole pages, leave no gaps.  Arithmetic only, no
 * state, any thread.
 */
#include <errno.h>
#include <stdint.h>

#include "base/fragment.h"

/* Allows rounding up and gaps without overflow. */
#define SIZE_LIMIT ((size_t)1 << 46)

int nc_layout_init(struct nc_layout *layout, size_t size, size_t fraglen)
{
	if (fraglen == 0)
		fraglen = NC_PAGE;
	if (size == 0 || size > SIZE_LIMIT)
		return -EINVAL;
	if (fraglen > NC_PAGE && (fraglen % NC_PAGE != 0 || fraglen > SIZE_LIMIT))
		return -EINVAL;
	if ((size - 1) / fraglen >= NC_FRAGMENTS_MAX)
		return -EINVAL;

	layout->size = size;
	layout->fraglen = fraglen;
	layout->fragments = (uint32_t)((size - 1) / fraglen + 1);
	if (fraglen % NC_PAGE == 0 || (fraglen & (fraglen - 1)) == 0) {
		layout->stride = 0;
		layout->per_page = 0;
		layout->extent = (size + NC_PAGE - 1) / NC_PAGE * NC_PAGE;
		return 0;
	}
	layout->stride = (uint16_t)((fraglen + NC_CACHE_LINE - 1) / NC_CACHE_LINE * NC_CACHE_LINE);
	layout->per_page = (uint16_t)(NC_PAGE / layout->stride);
	layout->extent = ((size_t)(layout->fragments - 1) / layout->per_page + 1) * NC_PAGE;
	return 0;
}

size_t nc_layout_at(const struct nc_layout *layout, size_t offset, size_t *run)
{
	size_t index, within, left;

	if (nc_layout_gapless(layout)) {
		*run = layout->size - offset;
		return offset;
	}
	index = offset / layout->fraglen;
	within = offset % layout->fraglen;
	left = layout->size - offset;
	*run = layout->fraglen - within < left ? layout->fraglen - within : left;
	return index / layout->per_page * NC_PAGE + index % layout->per_page * layout->stride +
	       within;
}

unsigned nc_layout_iovec(const struct nc_layout *layout, void *base, size_t offset, size_t length,
			 struct iovec *iov, unsigned max, size_t *covered)
{
	unsigned count = 0;
	size_t done = 0;

	while (done < length && count < max) {
		size_t run, at = nc_layout_at(layout, offset + done, &run);

		if (run > length - done)
			run = length - done;
		iov[count].iov_base = (char *)base + at;
		iov[count].iov_len = run;
		count++;
		done += run;
	}
	*covered = done;
	return count;
}
