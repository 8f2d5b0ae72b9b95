/* SPDX-License-Identifier: MIT */
/*
 * body-queue.c - see body-queue.h.
 *
 * A program may read longer than the request lasts, and the request releases each
 * unit when it asks for the next one or ends.  Therefore the queue holds its units
 * too.
 */
#include <assert.h>
#include <errno.h>

#include "base/body-queue.h"

int body_queue_add(struct body_queue *queue, size_t id, size_t length, bool more)
{
	assert(queue->count < BODY_QUEUE_MAX);
	if (id && length) {
		if (NC_hold(NULL, id, &queue->holds[queue->count]) < 0)
			return -errno;
		queue->line[queue->count++] = (struct NC_range){.id = id, .length = length};
	}
	queue->more = more;
	return 0;
}

struct NC_range body_queue_next(const struct body_queue *queue, size_t bytes)
{
	struct NC_range range = {0};

	if (queue->count)
		range = queue->line[0];
	if (range.length > bytes)
		range.length = bytes;
	return range;
}

void body_queue_written(struct body_queue *queue, size_t bytes)
{
	struct NC_range *first = &queue->line[0];

	assert(queue->count && bytes <= first->length);
	first->offset += bytes;
	first->length -= bytes;
	if (first->length)
		return;
	(void)NC_release(&queue->holds[0]);
	queue->count--;
	for (unsigned i = 0; i < queue->count; i++) {
		queue->line[i] = queue->line[i + 1];
		queue->holds[i] = queue->holds[i + 1];
	}
}

void body_queue_clear(struct body_queue *queue)
{
	for (unsigned i = 0; i < queue->count; i++)
		(void)NC_release(&queue->holds[i]);
	*queue = (struct body_queue){0};
}
