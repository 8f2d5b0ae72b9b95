/* SPDX-License-Identifier: MIT */
/*
 * segment.h - one memfd and its mapping.
 */
#ifndef NC_SEGMENT_H
#define NC_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>

#define NC_HUGE_PAGE ((size_t)2 << 20) /* bytes */

struct nc_segment {
	int fd;
	char *base;
	size_t size;	    /* bytes, whole pages */
	bool huge;	    /* huge pages are wished for */
	_Atomic int reader; /* nc_segment_reader()'s descriptor + 1; 0: none yet */
};

/* Whether this system can seal segments; without, they serve one process only. */
bool nc_segment_can_seal(void);

/*
 * A new segment of zeroes, mapped writable and sealed against growing and
 * shrinking, so that no one who gets the descriptor can make an access fault
 * (invariant 3).  final: no more seals may be added, for segments that are
 * handed to another process; -ENOTSUP where there are no seals.  0 or
 * -errno; nothing is left behind on failure.
 */
int nc_segment_create(struct nc_segment *segment, size_t size, bool huge, bool final);

/*
 * Gives a huge page to the block of NC_HUGE_PAGE bytes at `at`, which is a
 * multiple of that, before it is filled for the first time: filling takes one
 * fault then, and sending by reference counts one page.  The kernel clears the
 * block and waits until each CPU has emptied its lists of pages: some tenths of
 * a millisecond, some milliseconds where the CPUs are busy.  Any thread.  0;
 * -errno: the system gives none, and the pages stay small.
 */
int nc_segment_collapse(const struct nc_segment *segment, size_t at);

/* Maps a segment that came from elsewhere and takes its descriptor over. */
int nc_segment_adopt(struct nc_segment *segment, int fd, size_t size);

/* The same of a segment that somebody else writes and this process only reads. */
int nc_segment_adopt_readable(struct nc_segment *segment, int fd, size_t size);

/* Memory of this process alone, without a descriptor. */
int nc_segment_create_private(struct nc_segment *segment, size_t size);

/* Makes a range unwritable through this mapping; whole pages. */
int nc_segment_protect(struct nc_segment *segment, size_t offset, size_t length);

/* And writable again, which a segment that is sealed or frozen refuses. */
int nc_segment_unprotect(struct nc_segment *segment, size_t offset, size_t length);

/* No new writable mapping and no write(2) from now on. */
int nc_segment_seal(struct nc_segment *segment);

/*
 * Nobody writes any more, the caller included: the mapping becomes readable
 * only, at the same address, and the kernel refuses every other way in for
 * good.  On failure the segment is as it was; -EBUSY: something uses its
 * pages, and there was no room for a copy of them.  A fault in another thread
 * that touches the segment meanwhile is its own.
 */
int nc_segment_freeze(struct nc_segment *segment);

/*
 * Maps, readable only, a segment that another process froze, and takes its
 * descriptor over.  -EPROTO: it is not of that size or not sealed against all
 * change; the descriptor stays the caller's.
 */
int nc_segment_adopt_frozen(struct nc_segment *segment, int fd, size_t size);

/*
 * A descriptor of the segment that can only be read, the segment's own; opened at the
 * first call.  Any thread.  -errno: of open(2) in /proc; -EBADF: it has none itself.
 */
int nc_segment_reader(struct nc_segment *segment);

/*
 * Unmaps and closes.  Pages that a socket still holds live on until they are
 * acknowledged; that is why segments are closed and never punched (nabc(7)).
 */
void nc_segment_close(struct nc_segment *segment);

#endif
