/* SPDX-License-Identifier: MIT */
/*
 * worker.h - the protocol of NABC workers: heads by queues in shared memory, bodies by cache id.
 *
 * A call goes to the worker whose process has the fewest requests in flight.
 */
#ifndef SWEET_WORKER_H
#define SWEET_WORKER_H

#include "base/list.h"
#include "event/loop.h"

struct pool_process;
struct thread;

/* One for each thread: before the loop sleeps, wakes workers and looks for responses. */
struct worker_hook {
	struct loop_hook hook;
	struct list active; /* channels */
};
void worker_hook_add(struct worker_hook *hook, struct thread *thread);

/* Returns the channels of a place, one for each thread; for the status. */
const struct worker_channel *worker_channels(const struct pool_process *process);

#endif
