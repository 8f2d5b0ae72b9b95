/* SPDX-License-Identifier: MIT */
/*
 * maintenance.h - periodic work for an owner's member: drops expired units,
 * reclaims memory in advance, closes surplus empty segments, computes and verifies
 * checksums.
 *
 * It works in small steps, from any thread; one thread at a time takes a step.
 */
#ifndef NC_MAINTENANCE_H
#define NC_MAINTENANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nc_member;

struct nc_maintenance {
	struct nc_member *member;
	bool draining; /* above the high mark, or not yet below the low mark */
	/* State of the scrubber: its position, and when it may continue. */
	size_t scrub_rate; /* bytes per second; 0: disabled */
	uint32_t slot;
	unsigned generation; /* of the unit being verified; 0: none */
	size_t fragment;
	void *draft;	    /* of its checksums, being computed; NULL: they are compared */
	uint32_t passed;    /* consecutive slots without a unit to verify */
	uint64_t scrub_due; /* ns; 0: after the next insert */
};

void nc_maintenance_init(struct nc_maintenance *maintenance, struct nc_member *member,
			 size_t scrub_rate);

/* Call it when no step is in progress. */
void nc_maintenance_fini(struct nc_maintenance *maintenance);

/*
 * Takes one step; never blocks.  Returns true if another step is due at once;
 * otherwise *next is its time in ns of CLOCK_MONOTONIC, or 0: when the member's
 * wake is called.
 */
bool nc_maintenance_step(struct nc_maintenance *maintenance, uint64_t *next);

#endif
