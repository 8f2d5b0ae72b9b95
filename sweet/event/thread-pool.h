/* SPDX-License-Identifier: MIT */
/*
 * thread-pool.h - helper threads for blocking calls: opening and reading files.
 *
 * The "asymmetric" part of AMPED (paper 003, section 3.4): the event loop never
 * waits for a disk.
 */
#ifndef SWEET_THREAD_POOL_H
#define SWEET_THREAD_POOL_H

#include <stdbool.h>

#include "event/loop.h"

struct thread_pool;

/* The caller owns the memory of a job, and keeps it from thread_pool_submit() until done(). */
struct job {
	void (*work)(struct job *job); /* on a helper thread; may block */
	void (*done)(struct job *job); /* on the loop's thread */
	struct loop *loop;
	struct loop_task task; /* the pool's */
	struct job *next;      /* the pool's */
};

/*
 * Returns NULL with errno if no thread can be started.  With 0 threads, the
 * submitting thread runs the jobs itself.
 */
struct thread_pool *thread_pool_open(unsigned threads);

/*
 * Ends the threads after their current jobs, and drops queued jobs.  Call it before
 * closing the jobs' loops.
 */
void thread_pool_close(struct thread_pool *thread_pool);

void thread_pool_submit(struct thread_pool *thread_pool, struct job *job);

#endif
