/* SPDX-License-Identifier: MIT */
/*
 * fragment.h - size and fraglen to a layout in memory, and ranges to iovecs.
 */
#ifndef NC_FRAGMENT_H
#define NC_FRAGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define NC_PAGE 4096u /* the grain of layout and of page runs, whatever the system's page */
#define NC_CACHE_LINE 64u
#define NC_FRAGMENTS_MAX (1u << 28)

/* Where the bytes of a unit lie, relative to its page-aligned start. */
struct nc_layout {
	size_t size;	    /* bytes of data */
	size_t fraglen;	    /* bytes of data in a whole fragment */
	size_t extent;	    /* bytes of memory, a multiple of NC_PAGE */
	uint32_t fragments; /* at most NC_FRAGMENTS_MAX */
	uint16_t stride;    /* bytes from one fragment's start to the next in a page */
	uint16_t per_page;  /* fragments in a page; 0, as stride, when gapless */
};

/*
 * Lays out size bytes; fraglen 0 means a page.  Returns 0, or -EINVAL: size
 * 0 or absurd, too many fragments, or a fraglen above a page that is not a
 * multiple of it.
 */
int nc_layout_init(struct nc_layout *layout, size_t size, size_t fraglen);

/* Whether the unit's bytes are one run of memory. */
static inline bool nc_layout_gapless(const struct nc_layout *layout)
{
	return layout->per_page == 0;
}

/*
 * Where byte offset lies in memory, and in *run how many bytes follow there
 * without a gap.  offset < layout->size.
 */
size_t nc_layout_at(const struct nc_layout *layout, size_t offset, size_t *run);

/*
 * Describes [offset, offset + length) of the unit at base in at most max
 * iovecs.  Returns their number; *covered says how many bytes they hold.
 */
unsigned nc_layout_iovec(const struct nc_layout *layout, void *base, size_t offset, size_t length,
			 struct iovec *iov, unsigned max, size_t *covered);

#endif
