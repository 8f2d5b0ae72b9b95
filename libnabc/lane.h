/* SPDX-License-Identifier: MIT */
/*
 * lane.h - where the queues of an exchange lie in their shared memory.
 *
 * A lane is one server thread's pair of queues with one worker: requests to
 * the worker, responses back.
 */
#ifndef NC_LANE_H
#define NC_LANE_H

#include "queue.h"

#define NC_LANE_QUEUE (64u << 10) /* bytes of data in each queue */

struct nc_lane {
	struct nc_queue requests;
	struct nc_queue responses;
};

static inline size_t nc_lanes_footprint(unsigned lanes, uint32_t queue_size)
{
	return lanes * 2 * nc_queue_footprint(queue_size);
}

static inline void nc_lane_init(struct nc_lane *lane, char *memory, unsigned number,
				uint32_t queue_size)
{
	size_t step = nc_queue_footprint(queue_size);

	nc_queue_init(&lane->requests, memory + 2 * number * step, queue_size);
	nc_queue_init(&lane->responses, memory + (2 * number + 1) * step, queue_size);
}

#endif
