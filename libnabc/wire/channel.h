/* SPDX-License-Identifier: MIT */
/*
 * channel.h - the layout of a backend's queues in their shared memory.
 *
 * A channel is one server thread's pair of queues with one worker: requests to the
 * worker, responses back.
 */
#ifndef NC_CHANNEL_H
#define NC_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#include "os/queue.h"

#define NC_CHANNEL_QUEUE (64u << 10)	/* bytes of data in each queue */
#define NC_CHANNEL_RESERVED (16u << 10) /* kept free of requests, for records about them */

/*
 * Initial value of a request queue's claim counter.  Each request is claimed once,
 * in the order of submission, by incrementing the counter with compare-and-swap: by
 * the worker, which then processes the request, or by the server, which withdraws
 * it.  The counter also shows which requests a dead worker never started.  The
 * value differs from what stray writes leave: zeroes, small numbers, all ones.
 */
#define NC_CHANNEL_CLAIMS UINT64_C(0x6e75676562000000)

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
