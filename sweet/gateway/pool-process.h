/* SPDX-License-Identifier: MIT */
/*
 * pool-process.h - supervises the processes of a pool: starts them, restarts a process that has
 * ended, after a back-off that grows with quick failures, and replaces them one after the other on
 * request.
 *
 * Runs on the main thread.  The protocol of the pool defines how a process starts, as the server's
 * own child or by the spawner, and which parts have to release it.
 */
#ifndef SWEET_POOL_PROCESS_H
#define SWEET_POOL_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/timer.h"
#include "event/loop.h"

struct NC_backend;
struct gateway_pool;
struct spawn_child;
struct pool_process;
struct start;

enum pool_process_state {
	POOL_PROCESS_DOWN,
	POOL_PROCESS_STARTING, /* the spawner was asked to start it */
	POOL_PROCESS_UP,
	POOL_PROCESS_RETIRING, /* gets no more requests, ends when it has none left */
	POOL_PROCESS_LEAVING,  /* has ended or retired: all parts release it */
};

struct pool_process_kind {
	/*
	 * Starts a process.  Returns 0 with the pid and the pidfd, or with pid 0 after
	 * pool_process_run(); or -errno.
	 */
	int (*start)(struct pool_process *process, pid_t *pid, int *pidfd);
	/*
	 * The spawner has started it.  Returns 0 and owns the pidfd if release() returns a backend,
	 * or -errno.  NULL: nothing to do.
	 */
	int (*started)(struct pool_process *process, pid_t pid, int pidfd);
	/* The process has started: notifies all threads.  Called after start(), or never. */
	void (*up)(struct pool_process *process);
	/*
	 * The process shall retire when idle; the process has ended.  Each part responds with
	 * pool_process_left(): to retire() when it has released the process; to down() at once, and
	 * a second time if it had not yet responded to retire().
	 */
	void (*retire)(struct pool_process *process);
	void (*down)(struct pool_process *process);
	/* No part uses it: returns the backend of a worker, which the caller closes; NULL: none. */
	struct NC_backend *(*release)(struct pool_process *process);
};

/* One place in a pool: a process and its successors. */
struct pool_process {
	struct gateway_pool *pool;
	const struct pool_process_kind *kind;
	unsigned number; /* index in its pool */
	unsigned parts;	 /* parts of the server that have to release it */
	enum pool_process_state state;
	struct spawn_child *child; /* a child of the spawner; NULL: our own child */
	pid_t started_pid;	   /* of the current process, also after its end */
	int pidfd;		   /* a worker's belongs to its backend; -1: unknown */
	struct loop_watch ended;
	struct timer restart;
	unsigned backoff; /* delay of the next start, in ms */
	uint64_t started_ms;
	bool planned;		  /* its end was requested: no failure */
	bool failing;		  /* the pool counts it as failing */
	_Atomic unsigned leaving; /* parts that have not released it */
	_Atomic bool doomed;	  /* is being killed: gets no more requests */
	_Atomic bool asked_to_go; /* it has asked to be replaced */
	_Atomic bool useful;	  /* it has responded to a request */
	_Atomic unsigned served;  /* requests, if the pool counts them */
	_Atomic unsigned streams; /* responses that block others, if the pool counts those */
	/* Of all threads, if the pool counts them: */
	_Atomic unsigned load;	      /* requests in flight */
	_Atomic uint64_t moved_ms;    /* when a request ended, or the first began */
	_Atomic uint64_t streamed_ms; /* when one of streams ended */
	struct loop_task gone, used_up, replace, kill;
	void *own; /* private to the protocol */
	/* For the status. */
	_Atomic int pid;	/* 0: not running */
	_Atomic uint64_t asked; /* clock_boottime_ns() before the process started */
	_Atomic uint64_t starts;
};

/* Starts all processes of the pool.  Returns 0 or -errno; then some may run. */
int pool_processes_open(struct gateway_pool *pool, const struct pool_process_kind *kind,
			unsigned count, unsigned parts);

/* Ends all processes, each when it is idle, and then calls pool->ended(). */
void pool_processes_end(struct gateway_pool *pool);

/* Ends all processes at once; the threads' loops have ended. */
void pool_processes_close(struct gateway_pool *pool);

/* Returns the number of the pool's program, or logs that it is unknown: -EPERM. */
int pool_processes_program(const struct gateway_pool *pool);

/*
 * For start() of a kind: returns a descriptor for the standard output and error of a process, whose
 * lines are logged; or -errno.  The caller closes it.
 */
int pool_process_output(const struct pool_process *process);

/*
 * For start() of a kind: asks the spawner to start a process, with such an output.  Returns 0 or
 * -errno.
 */
int pool_process_run(struct pool_process *process, const struct start *what);

/* Replaces all processes one after the other, each when it is idle. */
void pool_processes_renew(struct gateway_pool *pool);

/* Each part calls it on its thread when it has released the process. */
void pool_process_left(struct pool_process *process);

#define POOL_PROCESS_SLOW_MS 10u /* for one request: then others go, or move, to other processes */

/* The process gets a request; has ended one; one is withdrawn from it.  Any thread. */
void pool_process_takes(struct pool_process *process, uint64_t now_ms);
void pool_process_leaves(struct pool_process *process, uint64_t now_ms);
void pool_process_loses(struct pool_process *process);

/* Returns for how long it has had requests and ended none; 0 if it has none. */
uint64_t pool_process_stalled_ms(const struct pool_process *process, uint64_t now_ms);

/* Whether that is more than POOL_PROCESS_SLOW_MS: new requests wait behind a long one. */
static inline bool pool_process_is_slow(const struct pool_process *process, uint64_t now_ms)
{
	return pool_process_stalled_ms(process, now_ms) > POOL_PROCESS_SLOW_MS;
}

/* The process has responded to one more request; any thread.  After its last one it is replaced. */
void pool_process_served(struct pool_process *process);

/*
 * The process asks to be replaced; any thread that uses it.  It gets no more requests, and ends when
 * it has responded to those that it has.
 */
void pool_process_replace(struct pool_process *process);

/* Kills a process that broke the protocol or timed out; while a thread uses it. */
void pool_process_kill(struct pool_process *process, const char *why);

/* Whether a process that has just ended may have done so because the server asked it to. */
bool pool_processes_retired(const struct gateway_pool *pool, uint64_t now_ms);

/* Whether all places fail again and again. */
bool pool_processes_fail(struct gateway_pool *pool);

#endif
