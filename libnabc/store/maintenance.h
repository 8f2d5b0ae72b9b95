/* SPDX-License-Identifier: MIT */
/*
 * maintenance.h - periodic work for an owner's member: drops expired units, reclaims
 * memory ahead of need, closes surplus empty segments, verifies checksums.
 *
 * Works in small steps, from any thread; one thread at a time takes a step.
 */
#ifndef NC_MAINTENANCE_H
#define NC_MAINTENANCE_H

#include "store/member.h"

struct nc_maintenance {
	struct nc_member *member;
	bool draining; /* above the high mark, or not yet below the low one */
	/* The scrubber: where it is, and when it may go on. */
	size_t scrub_rate; /* bytes a second; 0: none */
	uint32_t slot;
	unsigned generation; /* of the unit that it is in; 0: in none */
	size_t fragment;
	uint32_t passed;    /* slots in a row without a unit to verify */
	uint64_t scrub_due; /* ns; 0: when something is inserted */
};

void nc_maintenance_init(struct nc_maintenance *maintenance, struct nc_member *member,
			 size_t scrub_rate);

/*
 * A step that does not wait for anything.  true: another one is due at once;
 * else *next is when, in ns of CLOCK_MONOTONIC, or 0: when the member's wake
 * is called.
 */
bool nc_maintenance_step(struct nc_maintenance *maintenance, uint64_t *next);

#endif
