/* SPDX-License-Identifier: MIT */
/*
 * pieces.h - a request's body on its way to a program: the units that it came
 * in and that are not written yet.  One thread.
 */
#ifndef SWEET_PIECES_H
#define SWEET_PIECES_H

#include <stdbool.h>
#include <stddef.h>

#include <nabc.h>

#define PIECES_MAX 2 /* the one that is being written, and the rest of the body behind it */

/* All zeros: none, and no more come. */
struct pieces {
	struct NC_range line[PIECES_MAX]; /* held; what is left of each */
	unsigned count;
	bool more; /* others are to come */
};

/*
 * Adds length bytes of a unit, which is held until they are written; id 0:
 * nothing.  more: others are to come.  0 or -errno.
 */
int pieces_add(struct pieces *pieces, size_t id, size_t length, bool more);

/* What is to be written next, bytes at most; of length 0: there is nothing now. */
struct NC_range pieces_next(const struct pieces *pieces, size_t bytes);

/* So many bytes of pieces_next() were. */
void pieces_written(struct pieces *pieces, size_t bytes);

/* Nothing of it is to be written any more. */
void pieces_clear(struct pieces *pieces);

/* All of the body was written. */
static inline bool pieces_are_over(const struct pieces *pieces)
{
	return pieces->count == 0 && !pieces->more;
}

#endif
