/* SPDX-License-Identifier: MIT */
/*
 * cleaning.h - selects which appended segment to compact (cleaning, in the terms of
 * log-structured file systems), and which of its units survive.
 *
 * A segment is reclaimed as a whole: its best units are copied to the newest
 * segment, within a limit on the copied bytes, the rest is evicted, and its memory
 * is closed.  These functions only decide, on data that the caller passes; no
 * state, no lock, any thread.  The caller's steps:
 *
 * 	for each segment that may be compacted: list its units,
 * 		nc_cleaning_weigh(); if that takes too long, older results
 * 		do nearly as well for three of four segments
 * 	nc_cleaning_pick()
 * 	list the units of that one, nc_cleaning_survivors()
 * 	nc_replacement_judged() on each; copy, evict, close
 *
 * A survivor that finds no memory, since the newest segment is full and another
 * would exceed the budget, is evicted; so segments are compacted in advance.
 */
#ifndef NC_CLEANING_H
#define NC_CLEANING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A live unit of a segment. */
struct nc_cleaning_unit {
	double worth;  /* per byte: nc_replacement_worth() */
	size_t bytes;  /* of memory that the copy needs */
	bool must;     /* pinned: survives regardless of the limit */
	bool survives; /* result */
	uint32_t slot; /* for the caller: not used here */
};

/* A segment that may be compacted now. */
struct nc_cleaning_segment {
	size_t size;	 /* bytes that closing it frees */
	uint64_t opened; /* order of opening: larger is later */
	/* Results of nc_cleaning_weigh(): */
	size_t copied;	/* bytes that would be copied */
	size_t evicted; /* bytes of units that would be evicted */
	double lost;	/* their worth */
};

/*
 * Returns limit percent of a segment of that size: the bytes that may be copied.
 * For the segment of a single large unit use 0 instead: it is evicted as a whole.
 */
size_t nc_cleaning_bound(size_t size, unsigned limit);

/*
 * Marks which units survive: the best ones that fit into bound bytes together.
 * Reorders the array.  Returns the surviving bytes: more than bound only if units
 * that must survive take more.
 */
size_t nc_cleaning_survivors(struct nc_cleaning_unit *units, size_t count, size_t bound);

/* Computes the cost of compacting the segment; marks survivors as above. */
void nc_cleaning_weigh(struct nc_cleaning_segment *segment, struct nc_cleaning_unit *units,
		       size_t count, size_t bound);

/*
 * Returns the index of the segment to compact: the one that frees bytes at the
 * least loss; -1: none would free any.
 */
int nc_cleaning_pick(const struct nc_cleaning_segment *segments, unsigned count);

#endif
