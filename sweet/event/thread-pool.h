/* SPDX-License-Identifier: MIT */
/*
 * thread-pool.h - threads for what may block: opening and reading files.
 *
 * The "asymmetric" half of AMPED (paper 003, section 3.4): the event loop
 * never waits for a disk.
 */
#ifndef SWEET_THREAD_POOL_H
#define SWEET_THREAD_POOL_H

#include <stdbool.h>

#include "event/loop.h"

struct thread_pool;

/* The memory of a job is the caller's, from thread_pool_submit() to its done(). */
struct job {
	void (*work)(struct job *job); /* on a helper thread; may block */
	void (*done)(struct job *job); /* on the loop's thread */
	struct loop *loop;
	struct loop_task task; /* helper's */
	struct job *next;      /* helper's */
};

/*
 * NULL with errno when no thread can be started.  Without any, whoever submits
 * a job does it, and waits.
 */
struct thread_pool *thread_pool_open(unsigned threads);

/* Ends the threads after their present jobs; jobs that wait are dropped.  Before their loops. */
void thread_pool_close(struct thread_pool *thread_pool);

void thread_pool_submit(struct thread_pool *thread_pool, struct job *job);

#endif
