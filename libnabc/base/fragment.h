/* SPDX-License-Identifier: MIT */
/* fragment.h - computes a layout in memory from size and fraglen, and iovecs from ranges. */
#ifndef NC_FRAGMENT_H
#define NC_FRAGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct iovec;

/* granularity of layout and page runs, independent of the system's page size */
#define NC_PAGE 4096u
#define NC_CACHE_LINE 64u
#define NC_FRAGMENTS_MAX (1u << 28)

/* Where the bytes of a unit are, relative to its page-aligned start. */
struct nc_layout {
	size_t size;	    /* bytes of data */
	size_t fraglen;	    /* bytes of data in a whole fragment */
	size_t extent;	    /* bytes of memory, a multiple of NC_PAGE */
	uint32_t fragments; /* at most NC_FRAGMENTS_MAX */
	uint16_t stride;    /* bytes between the starts of fragments in a page */
	uint16_t per_page;  /* fragments in a page; 0, as stride, if gapless */
};

/*
 * Computes the layout of size bytes; fraglen 0 means a page.  Returns 0, or
 * -EINVAL: size 0 or too large, too many fragments, or a fraglen above a page that
 * is not a multiple of it.
 */
int nc_layout_init(struct nc_layout *layout, size_t size, size_t fraglen);

/* Whether the unit's bytes are contiguous in memory. */
static inline bool nc_layout_gapless(const struct nc_layout *layout)
{
	return layout->per_page == 0;
}

/*
 * Returns the place of a byte offset in memory; *run: how many bytes follow there
 * without a gap.  Requires offset < layout->size.
 */
size_t nc_layout_at(const struct nc_layout *layout, size_t offset, size_t *run);

/*
 * Describes [offset, offset + length) of the unit at base in at most max iovecs.
 * Returns their number; *covered: their bytes.
 */
unsigned nc_layout_iovec(const struct nc_layout *layout, void *base, size_t offset, size_t length,
			 struct iovec *iov, unsigned max, size_t *covered);

#endif
