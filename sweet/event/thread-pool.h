/* SPDX-License-Identifier: MIT */
/*
 * thread-pool.h - helper threads for blocking calls: opening and reading files.
 *
 * The "asymmetric" part of AMPED (paper 003, section 3.4): the event loop never
 * waits for a disk.
 *
 * The pool is fair.  Jobs have a class and a client.  The classes take turns, and so do the clients
 * of a class; slow jobs have a limited number of threads.  A job whose client has left is
 * cancelled; one whose client may have left is deferred.  ARCHITECTURE.md lists all jobs, with the
 * class and the client of each.
 */
#ifndef SWEET_THREAD_POOL_H
#define SWEET_THREAD_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "event/client-limit.h"
#include "event/loop.h"

struct thread_pool;

enum job_class {
	JOB_QUICK, /* one file: opens it, or reads or writes a limited piece */
	JOB_SLOW,  /* takes as long as a folder is large */
	JOB_CLASSES
};

/* The caller owns the memory of a job, and keeps it from thread_pool_submit() until done(). */
struct job {
	void (*work)(struct job *job); /* on a helper thread; may block */
	void (*done)(struct job *job); /* on the loop's thread, once; looks at `worked` */
	struct loop *loop;
	enum job_class class;		    /* stays while the job is submitted */
	struct client_address client;	    /* zeros: the server itself */
	bool deferred;			    /* the pool's */
	bool worked;			    /* false: it was cancelled before work() began */
	_Atomic bool cancelled;		    /* see job_cancelled() */
	_Atomic(struct thread_pool *) pool; /* the pool's: not NULL while the job is queued */
	struct loop_task task;		    /* the pool's */
	struct list_node queued;	    /* the pool's */
};

/*
 * Returns NULL with errno if no thread can be started.  slow: how many of the threads may do slow
 * jobs at a time, at least 1.  With 0 threads, the submitting thread runs the jobs itself.
 */
struct thread_pool *thread_pool_open(unsigned threads, unsigned slow);

/* Opens a pool for jobs that compute for long: event loops have the processor before its threads. */
struct thread_pool *thread_pool_open_low(unsigned threads, unsigned slow);

/*
 * Ends the threads after their current jobs, and drops queued jobs.  Call it before
 * closing the jobs' loops.
 */
void thread_pool_close(struct thread_pool *thread_pool);

void thread_pool_submit(struct thread_pool *thread_pool, struct job *job);

/*
 * Nobody needs the result of a submitted job any more: a queued job is not run, a running one can
 * see it.  done() follows in both cases.  Not after done().
 */
void thread_pool_cancel(struct job *job);

/* A slow job that is queued is run when no other one is; not after done(). */
void thread_pool_defer(struct job *job);

/* For work() that takes long: returns true if it should end. */
static inline bool job_cancelled(const struct job *job)
{
	return atomic_load_explicit(&job->cancelled, memory_order_relaxed);
}

struct thread_pool_stat {
	uint64_t waiting[JOB_CLASSES]; /* queued now */
	uint64_t run[JOB_CLASSES];     /* given to a thread */
	uint64_t cancelled;	       /* removed from the queue */
};

void thread_pool_stat(struct thread_pool *thread_pool, struct thread_pool_stat *stat);

#endif
