/* SPDX-License-Identifier: MIT */
/*
 * queue-fixture.h - both ends of a queue whose memory is a heap block of its exact
 * size, so that memory checkers detect any access outside.
 */
#ifndef QUEUE_FIXTURE_H
#define QUEUE_FIXTURE_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "os/queue.h"

#include "suite.h"

struct ends {
	void *memory;
	struct nc_queue producer, consumer;
};

static inline void ends_open(struct ends *ends, uint32_t size)
{
	ends->memory = aligned_alloc(64, nc_queue_footprint(size));
	ck_assert_ptr_nonnull(ends->memory);
	memset(ends->memory, 0, nc_queue_footprint(size));
	nc_queue_init(&ends->producer, ends->memory, size);
	nc_queue_init(&ends->consumer, ends->memory, size);
}

static inline int push(struct ends *ends, const void *data, size_t length)
{
	return nc_queue_push(&ends->producer, data, length, NULL, 0);
}

#endif
