/* SPDX-License-Identifier: MIT */
/*
 * body-queue.h - a request's body on its way to a program: the units that it came
 * in and that are not written yet.  One thread.
 */
#ifndef SWEET_BODY_QUEUE_H
#define SWEET_BODY_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include <nabc.h>

#define BODY_QUEUE_MAX 2 /* the one that is being written, and the rest of the body behind it */

/* All zeros: none, and no more come. */
struct body_queue {
	struct NC_range line[BODY_QUEUE_MAX]; /* what is left of each */
	struct NC_hold holds[BODY_QUEUE_MAX]; /* of their units */
	unsigned count;
	bool more; /* others are to come */
};

/*
 * Adds length bytes of a unit, which is held until they are written; id 0:
 * nothing.  more: others are to come.  0 or -errno.
 */
int body_queue_add(struct body_queue *queue, size_t id, size_t length, bool more);

/* What is to be written next, bytes at most; of length 0: there is nothing now. */
struct NC_range body_queue_next(const struct body_queue *queue, size_t bytes);

/* The hold of its unit, until all of that is written. */
static inline const struct NC_hold *body_queue_hold(const struct body_queue *queue)
{
	return &queue->holds[0];
}

/* So many bytes of body_queue_next() were. */
void body_queue_written(struct body_queue *queue, size_t bytes);

/* Nothing of it is to be written any more. */
void body_queue_clear(struct body_queue *queue);

/* All of the body was written. */
static inline bool body_queue_is_over(const struct body_queue *queue)
{
	return queue->count == 0 && !queue->more;
}

#endif
