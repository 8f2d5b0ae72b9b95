/* SPDX-License-Identifier: MIT */
/*
 * worker.h - the protocol of NABC workers: heads by queues in shared
 * memory, bodies by cache id.
 *
 * A call goes to the channel (worker-channel.h) with the fewest in flight.
 */
#ifndef SWEET_WORKER_H
#define SWEET_WORKER_H

#include "backend/worker-channel.h"
#include "event/loop.h"

/* Of each thread, once: wakes workers and looks for answers before a sleep. */
struct worker_hook {
	struct loop_hook hook;
	struct worker_channel *active;
};
void worker_hook_add(struct worker_hook *hook, struct thread *thread);

/* The channels of a place of such a pool, one a thread; for the status. */
const struct worker_channel *worker_channels(const struct pool_process *process);

#endif
