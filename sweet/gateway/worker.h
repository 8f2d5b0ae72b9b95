/* SPDX-License-Identifier: MIT */
/*
 * worker.h - the protocol of NABC workers: heads by queues in shared memory, bodies by cache id.
 *
 * A call goes to the worker whose process has the fewest requests in flight.
 */
#ifndef SWEET_WORKER_H
#define SWEET_WORKER_H

struct pool_process;
struct thread;

/* Call it before the thread's loop runs; close it after the loop's end, and after the gateway. */
void gateway_thread_open(struct thread *thread);
void gateway_thread_close(struct thread *thread);

/* Returns the channels of a place, one for each thread; for the status. */
const struct worker_channel *worker_channels(const struct pool_process *process);

#endif
