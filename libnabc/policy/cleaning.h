/* SPDX-License-Identifier: MIT */
/*
 * cleaning.h - which appended segment to clean, and which of its units
 * survive.
 *
 * A segment is reclaimed as a whole: its best units are copied on to the
 * newest segment, within a bound on the copied bytes, the rest is evicted, and
 * its memory is closed.  Pure decisions on what the caller tells of its
 * segments and units; no state, no lock, any thread.  How the caller goes on:
 *
 *	for each segment that may be cleaned: list its units,
 *		nc_cleaning_weigh(); where that takes too long, the figures of
 *		an earlier time do nearly as well for three of four
 *	nc_cleaning_pick()
 *	list the units of that one, nc_cleaning_survivors()
 *	nc_replacement_judged() on each; copy, evict, close
 *
 * A survivor that finds no room, since the newest segment is full and another
 * would exceed the budget, is evicted; so cleaning goes on ahead of need.
 */
#ifndef NC_CLEANING_H
#define NC_CLEANING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A live unit of a segment. */
struct nc_cleaning_unit {
	double worth;  /* of each byte: nc_replacement_worth() */
	size_t bytes;  /* of memory: what copying it on takes */
	bool must;     /* pinned: survives whatever the bound */
	bool survives; /* out */
	uint32_t slot; /* the caller's: nothing here looks at it */
};

/* A segment that may be cleaned now. */
struct nc_cleaning_segment {
	size_t size;	 /* bytes that closing it gives back */
	uint64_t opened; /* larger: later */
	/* By nc_cleaning_weigh(): */
	size_t copied;	/* bytes that would be copied on */
	size_t evicted; /* bytes of units that would be evicted */
	double lost;	/* their worth */
};

/*
 * limit percent of a segment of that size: the bytes that may be copied on.
 * For the segment of a single large unit 0 is meant instead: it goes whole.
 */
size_t nc_cleaning_bound(size_t size, unsigned limit);

/*
 * Marks which of the units survive: the best ones that fit into bound bytes
 * together.  Reorders the array.  Returns the bytes that survive: more than
 * bound only when units that must survive take more.
 */
size_t nc_cleaning_survivors(struct nc_cleaning_unit *units, size_t count, size_t bound);

/* Fills in what cleaning the segment would cost; marks survivors as above. */
void nc_cleaning_weigh(struct nc_cleaning_segment *segment, struct nc_cleaning_unit *units,
		       size_t count, size_t bound);

/*
 * The index of the segment to clean: the one that gives bytes back at the
 * least loss.  -1: cleaning any of them would give nothing back.
 */
int nc_cleaning_pick(const struct nc_cleaning_segment *segments, unsigned count);

#endif
