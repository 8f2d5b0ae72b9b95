/* SPDX-License-Identifier: MIT */
/*
 * segment.h - one memfd and its mapping.
 */
#ifndef NC_SEGMENT_H
#define NC_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>

struct nc_pin;

#define NC_HUGE_PAGE ((size_t)2 << 20) /* bytes */

/* Something that refers to a segment's memory besides its mapping. */
struct nc_segment_watch {
	/* Called once, when the segment is closed; frees the structure. */
	void (*closed)(struct nc_segment_watch *watch);
	struct nc_segment_watch *next; /* the segment's */
};

struct nc_segment {
	int fd;
	char *base;
	size_t size;		/* bytes, whole pages */
	bool huge;		/* huge pages are requested */
	bool locked;		/* with pin: the memory is locked */
	_Atomic bool collapsed; /* some of its blocks are huge pages */
	_Atomic int reader;	/* nc_segment_reader()'s descriptor + 1; 0: none yet */
	struct nc_pin *pin;	/* counts its memory, see nc_segment_pin(); NULL: none */
	_Atomic(char *) whole;	/* nc_segment_whole()'s mapping, or base; NULL: none yet */
	_Atomic(struct nc_segment_watch *) watches; /* see nc_segment_watch() */
};

/* Whether this system can seal segments; otherwise only one process can use them. */
bool nc_segment_can_seal(void);

/*
 * Creates a segment of zeroes, mapped writable and sealed against growing and
 * shrinking, so that no process with the descriptor can make an access fault
 * (invariant 3).  final: no more seals may be added, for segments that are passed
 * to another process; -ENOTSUP if there are no seals.  Returns 0 or -errno; on
 * failure nothing remains.
 */
int nc_segment_create(struct nc_segment *segment, size_t size, bool huge, bool final);

/*
 * Creates a segment whose size can change until nc_segment_fix_size() or
 * nc_segment_freeze(); until then no other process may have it.
 */
int nc_segment_create_sizable(struct nc_segment *segment, size_t size, bool huge);

/*
 * Returns the pages behind the first size bytes to the system.  size: whole pages, at
 * least one.  No other thread may use the segment.  Returns 0, or -errno: unchanged.
 */
int nc_segment_shrink(struct nc_segment *segment, size_t size);

/*
 * Appends zeroes, up to size bytes; the base may change.  huge: huge pages are wanted.  The rest as
 * nc_segment_shrink().
 */
int nc_segment_grow(struct nc_segment *segment, size_t size, bool huge);

/* Seals a sizable segment against growing and shrinking, as nc_segment_create() does. */
void nc_segment_fix_size(struct nc_segment *segment);

/*
 * Allocates a huge page for the block of NC_HUGE_PAGE bytes at `at` (a multiple of
 * that) before it is first filled: then filling takes one fault, and sending by
 * reference counts one page.  The kernel clears the block and waits until each CPU
 * has emptied its page lists: some tenths of a millisecond, some milliseconds if
 * the CPUs are busy.  Any thread.  Returns 0, or -errno: the system has none, and
 * the pages remain small.
 */
int nc_segment_collapse(struct nc_segment *segment, size_t at);

/* Whether this system gives segments huge pages without a collapse. */
bool nc_segment_huge_unasked(void);

/*
 * From now on the segment's memory is locked as far as the system permits, and counted,
 * until it is closed; freezing keeps the lock.  filled: the pages contain data, and are
 * locked at once; otherwise each is locked when this process first uses it.  pin NULL:
 * does nothing.
 */
void nc_segment_pin(struct nc_segment *segment, struct nc_pin *pin, bool filled);

/*
 * Returns the address of the same bytes for the kernel to find their pages: base, or for a
 * segment with collapsed blocks another mapping, which can only be read and is never protected.
 * mprotect(2) of a part of a huge page splits its mapping: then the kernel looks up each small
 * page.  What the kernel uses of it counts twice in the process's resident set.  Any thread.
 */
char *nc_segment_whole(struct nc_segment *segment);

/* Maps a segment of another process and takes ownership of its descriptor. */
int nc_segment_adopt(struct nc_segment *segment, int fd, size_t size);

/* Adopts a segment that another process writes and this process only reads. */
int nc_segment_adopt_readable(struct nc_segment *segment, int fd, size_t size);

/* Creates memory for this process only, without a descriptor. */
int nc_segment_create_private(struct nc_segment *segment, size_t size);

/* Makes a range of whole pages read-only through this mapping. */
int nc_segment_protect(struct nc_segment *segment, size_t offset, size_t length);

/* Makes it writable again; fails for a segment that is sealed or frozen. */
int nc_segment_unprotect(struct nc_segment *segment, size_t offset, size_t length);

/* Forbids new writable mappings and write(2) from now on. */
int nc_segment_seal(struct nc_segment *segment);

/*
 * Maps a range of whole pages once more, writable, also if the range is protected or the segment
 * sealed; the caller unmaps it.  Returns 0, -EINVAL (another process made the segment, or it is
 * frozen), or other errors of mremap(2) and mprotect(2).
 */
int nc_segment_map_again(const struct nc_segment *segment, size_t offset, size_t length,
			 char **again);

/*
 * Makes the segment read-only for every process, the caller included: the mapping
 * becomes read-only, at the same address, and the kernel permanently refuses every
 * other way to write.  On failure the segment is as before; -EBUSY: its pages are
 * in use, and there was no memory for a copy.  Other threads must not write to the
 * segment meanwhile.
 */
int nc_segment_freeze(struct nc_segment *segment);

/*
 * Maps read-only a segment that another process froze, and takes ownership of its
 * descriptor.  -EPROTO: it has another size or is not sealed against all changes;
 * the caller still owns the descriptor.
 */
int nc_segment_adopt_frozen(struct nc_segment *segment, int fd, size_t size);

/*
 * Returns a descriptor that can only be read, which belongs to the segment; the first call
 * opens it.  Any thread.  Returns -errno of open(2) in /proc, or -EBADF: the segment has no
 * file.
 */
int nc_segment_reader(struct nc_segment *segment);

/* Adds a watch, which remains until the segment is closed.  Any thread. */
void nc_segment_watch(struct nc_segment *segment, struct nc_segment_watch *watch);

/*
 * Calls the watches, unmaps and closes.  Pages that a socket still refers to live until they are
 * acknowledged; so segments are closed, and holes are never punched (nabc(7)).
 */
void nc_segment_close(struct nc_segment *segment);

#endif
