/* SPDX-License-Identifier: MIT */
/*
 * response-queue.h - the parts of a worker's answer that have come and not left: each
 * a list of ranges of units, or bytes if they came as such, which are held here
 * and given back when the connection has sent them.
 */
#ifndef SWEET_RESPONSE_QUEUE_H
#define SWEET_RESPONSE_QUEUE_H

#include <nabc-worker.h>

#include "core/transaction.h"
#include "http/body.h"

struct response_part;

/* All zeros: none. */
struct response_queue {
	struct response_part *first, *last; /* that wait */
	struct response_part *sending;
	unsigned count; /* of all */
	uint64_t bytes; /* that they take */
};

/*
 * Takes over the holds of the ranges; past *left bytes, which it counts down,
 * they are given back at once.  False, and all are: no memory.
 */
bool response_queue_add(struct response_queue *parts, const struct NC_range *ranges,
			const struct NC_hold *holds, unsigned count, uint64_t *left);

/*
 * The same of bytes, from NC_backend_reap(), which may take no more memory
 * than the budget has.
 */
bool response_queue_add_bytes(struct response_queue *parts, struct slice bytes, uint64_t *left,
			      struct body_budget *budget);

static inline bool response_queue_wait(const struct response_queue *parts)
{
	return parts->first;
}

/*
 * Gives back the part that was sent, and makes the next one that waits the
 * transaction's piece; an empty one if there is none.
 */
void response_queue_hand_on(struct response_queue *parts, struct transaction *transaction);

/* Gives back all. */
void response_queue_clear(struct response_queue *parts);

/* Gives back what was reaped and not added. */
void response_queue_release(const struct NC_response *response);

#endif
