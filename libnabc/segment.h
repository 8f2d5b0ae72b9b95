/* SPDX-License-Identifier: MIT */
/*
 * segment.h - one memfd and its mapping.
 */
#ifndef NC_SEGMENT_H
#define NC_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>

struct nc_segment {
	int fd;
	char *base;
	size_t size; /* bytes, whole pages */
	bool huge;   /* huge pages are wished for */
};

/*
 * A new segment of zeroes, mapped writable and sealed against growing and
 * shrinking, so that no one who gets the descriptor can make an access fault
 * (invariant 3).  final: no more seals may be added, for segments that are
 * handed to another process.  0 or -errno; nothing is left behind on failure.
 */
int nc_segment_create(struct nc_segment *segment, size_t size, bool huge, bool final);

/*
 * Before a range is filled for the first time: huge pages for those that begin
 * in it, where the segment wishes for them and the system has them to give.
 * Sending by reference then touches a page's counter once in 2 MiB.  Costs
 * about a millisecond each.  Any thread.
 */
void nc_segment_prepare(const struct nc_segment *segment, size_t at, size_t length);

/* Maps a segment that came from elsewhere and takes its descriptor over. */
int nc_segment_adopt(struct nc_segment *segment, int fd, size_t size);

/* Makes a range unwritable through this mapping; whole pages. */
int nc_segment_protect(struct nc_segment *segment, size_t offset, size_t length);

/* No new writable mapping and no write(2) from now on. */
int nc_segment_seal(struct nc_segment *segment);

/*
 * Unmaps and closes.  Pages that a socket still holds live on until they are
 * acknowledged; that is why segments are closed and never punched (nabc(7)).
 */
void nc_segment_close(struct nc_segment *segment);

#endif
