/* SPDX-License-Identifier: MIT */
/*
 * gw-parts.h - the parts of a worker's answer that have come and not left: each
 * a list of ranges of units, or bytes if they came as such, which are held here
 * and given back when the connection has sent them.
 */
#ifndef SWEET_GW_PARTS_H
#define SWEET_GW_PARTS_H

#include <nabc-worker.h>

#include "core/transaction.h"
#include "http/body.h"

struct gw_part;

/* All zeros: none. */
struct gw_parts {
	struct gw_part *first, *last; /* that wait */
	struct gw_part *sending;
	unsigned count; /* of all */
	uint64_t bytes; /* that they take */
};

/*
 * Takes over the holds of the ranges; past *left bytes, which it counts down,
 * they are given back at once.  False, and all are: no memory.
 */
bool gw_parts_add(struct gw_parts *parts, const struct NC_range *ranges, unsigned count,
		  uint64_t *left);

/*
 * The same of bytes, from NC_exchange_reap(), which may take no more memory
 * than the budget has.
 */
bool gw_parts_add_bytes(struct gw_parts *parts, struct slice bytes, uint64_t *left,
			struct body_budget *budget);

static inline bool gw_parts_wait(const struct gw_parts *parts)
{
	return parts->first;
}

/*
 * Gives back the part that was sent, and makes the next one that waits the
 * transaction's piece; an empty one if there is none.
 */
void gw_parts_hand_on(struct gw_parts *parts, struct transaction *transaction);

/* Gives back all. */
void gw_parts_clear(struct gw_parts *parts);

/* Gives back what was reaped and not added. */
void gw_response_release(const struct NC_response *response);

#endif
