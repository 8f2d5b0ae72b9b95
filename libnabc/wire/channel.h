/* SPDX-License-Identifier: MIT */
/*
 * channel.h - where the queues of a backend lie in their shared memory.
 *
 * A channel is one server thread's pair of queues with one worker: requests to
 * the worker, responses back.
 */
#ifndef NC_CHANNEL_H
#define NC_CHANNEL_H

#include "os/queue.h"

#define NC_LANE_QUEUE (64u << 10)  /* bytes of data in each queue */
#define NC_LANE_SPARED (16u << 10) /* that requests leave free for what is said of them later */

/*
 * The number that a queue of requests tells before the first one is claimed.
 * Each request is claimed once, in the order of their submission, by adding one
 * with compare-and-swap: by the worker, which begins with it, or by the server,
 * which withdraws it.  What a worker that ended never began with is so known,
 * too.  Far from what stray writes leave: zeroes, small numbers, all ones.
 */
#define NC_LANE_BEGUN UINT64_C(0x6e75676562000000)

struct nc_channel {
	struct nc_queue requests;
	struct nc_queue responses;
};

static inline size_t nc_channels_footprint(unsigned channels, uint32_t queue_size)
{
	return channels * 2 * nc_queue_footprint(queue_size);
}

static inline void nc_channel_init(struct nc_channel *channel, char *memory, unsigned number,
				   uint32_t queue_size)
{
	size_t step = nc_queue_footprint(queue_size);

	nc_queue_init(&channel->requests, memory + 2 * number * step, queue_size);
	nc_queue_init(&channel->responses, memory + (2 * number + 1) * step, queue_size);
}

#endif
