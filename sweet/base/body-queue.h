/* SPDX-License-Identifier: MIT */
/*
 * body-queue.h - the body of a request to a program: the units that the server
 * received and has not yet written to the program.  For one thread.
 */
#ifndef SWEET_BODY_QUEUE_H
#define SWEET_BODY_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include <nabc.h>

#define BODY_QUEUE_MAX 2 /* the unit being written, and the rest of the body after it */

/* All zeros: empty, and no units will follow. */
struct body_queue {
	struct NC_range line[BODY_QUEUE_MAX]; /* the part not written yet */
	struct NC_hold holds[BODY_QUEUE_MAX]; /* of their units */
	unsigned count;
	bool more; /* units will follow */
};

/*
 * Adds length bytes of a unit and holds it until they are written; id 0 adds
 * nothing. more: further units will follow.  Returns 0 or -errno.
 */
int body_queue_add(struct body_queue *queue, size_t id, size_t length, bool more);

/* Returns the next range to write, at most bytes long; length 0: nothing to write now. */
struct NC_range body_queue_next(const struct body_queue *queue, size_t bytes);

/* Returns the hold of its unit, which lasts until all of the unit is written. */
static inline const struct NC_hold *body_queue_hold(const struct body_queue *queue)
{
	return &queue->holds[0];
}

/* Removes the first bytes of body_queue_next(), which were written. */
void body_queue_written(struct body_queue *queue, size_t bytes);

/* Drops the queue's content and releases its units. */
void body_queue_clear(struct body_queue *queue);

/* Returns true if all of the body was written. */
static inline bool body_queue_is_over(const struct body_queue *queue)
{
	return queue->count == 0 && !queue->more;
}

#endif
