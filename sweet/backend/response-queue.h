/* SPDX-License-Identifier: MIT */
/*
 * response-queue.h - the parts of a worker's response that have come and are not sent yet: each is
 * a list of ranges of units, which are held, or bytes.
 */
#ifndef SWEET_RESPONSE_QUEUE_H
#define SWEET_RESPONSE_QUEUE_H

#include <nabc-worker.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct piece;
struct response_part;
struct NC_hold;
struct NC_range;
struct NC_response;
struct budget;

/* Bytes that a part of bytes takes besides them: they may be very few. */
#define RESPONSE_QUEUE_PART 96u

/* All zeros: empty. */
struct response_queue {
	struct response_part *first, *last; /* waiting parts */
	unsigned count; /* of all parts, with the piece that was taken and is not released yet */
	uint64_t bytes; /* memory of all parts */
};

/*
 * Takes over the holds of the ranges, up to *left bytes, which it counts down; releases the rest at
 * once.  Returns false without memory; then all are released.
 */
bool response_queue_add(struct response_queue *parts, const struct NC_range *ranges,
			const struct NC_hold *holds, unsigned count, uint64_t *left);

/* Adds bytes from NC_backend_reap(), up to *left, for which the budget has memory; returns as above. */
bool response_queue_add_bytes(struct response_queue *parts, struct slice bytes, uint64_t *left,
			      struct budget *budget);

static inline bool response_queue_wait(const struct response_queue *parts)
{
	return parts->first;
}

/*
 * Makes the next part a piece, which owns it and is to be released before the queue ends; PIECE_NONE
 * if there is none.
 */
struct piece response_queue_take(struct response_queue *parts);

/* Releases all waiting parts. */
void response_queue_clear(struct response_queue *parts);

/* Releases what was reaped and not added. */
void response_queue_release(const struct NC_response *response);

#endif
