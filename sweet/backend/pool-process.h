/* SPDX-License-Identifier: MIT */
/*
 * pool-process.h - the processes of a pool, supervised: started, missed when
 * they end, started again after a pause that grows with quick failures,
 * replaced one after the other when that is asked for.
 *
 * The main thread's.  How one is started, as the server's own child or by the
 * spawner, and who has to let go of it, is the pool's protocol's.
 */
#ifndef SWEET_POOL_PROCESS_H
#define SWEET_POOL_PROCESS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "event/loop.h"

struct gateway_pool;
struct spawn_child;
struct pool_process;
struct start;

enum pool_process_state {
	POOL_PROCESS_DOWN,
	POOL_PROCESS_UP,
	POOL_PROCESS_RETIRING, /* gets nothing new, and goes when it has nothing left */
	POOL_PROCESS_LEAVING,  /* has ended, or retired: all let go of it */
};

struct pool_process_kind {
	/* Starts one.  0 with pid and, of its own child, pidfd; or -errno. */
	int (*start)(struct pool_process *process, pid_t *pid, int *pidfd);
	/* It is there: tells all threads.  After start() or not at all. */
	void (*up)(struct pool_process *process);
	/*
	 * It is to go when idle; it has ended.  Every part answers either by
	 * pool_process_left(): the first when it has let go, the second at once, and
	 * then for the first as well if it had not yet.
	 */
	void (*retire)(struct pool_process *process);
	void (*down)(struct pool_process *process);
	/* Nobody uses it: ends and reaps what is left of it, if the spawner does not. */
	void (*close)(struct pool_process *process);
};

/* One place in a pool: a process and its successors. */
struct pool_process {
	struct gateway_pool *pool;
	const struct pool_process_kind *kind;
	unsigned number; /* in its pool */
	unsigned parts;	 /* that have to let go of it */
	enum pool_process_state state;
	struct spawn_child *child; /* whom the spawner has started; NULL: our own */
	int pidfd;		   /* of that */
	struct loop_watch ended;
	struct timer restart;
	unsigned backoff; /* ms before the next start */
	uint64_t started_ms;
	bool planned;		  /* its end was: no failure */
	bool failing;		  /* the pool counts it so */
	_Atomic unsigned leaving; /* parts that have not let go of it */
	_Atomic bool doomed;	  /* is being killed: gets nothing new */
	_Atomic unsigned served;  /* requests, if the pool counts them */
	_Atomic unsigned streams; /* answers that others wait behind, if it counts those */
	/* Of all threads, if the pool counts it: */
	_Atomic unsigned load;	   /* requests that it has */
	_Atomic uint64_t moved_ms; /* when it ended one, or got its first */
	struct loop_task gone, tired, kill;
	void *own; /* the protocol's */
	/* For the status. */
	_Atomic int pid;	/* 0: none is up */
	_Atomic uint64_t asked; /* ns of clock_boottime_ns(): before that process started */
	_Atomic uint64_t starts;
};

/* A round of replacements. */
struct pool_process_turn {
	unsigned at; /* the place that is being replaced, 1 and up; 0: none */
	bool again;  /* another round was asked for meanwhile */
};

/* Sets up the pool's places and starts all.  0 or -errno, and some may run. */
int pool_processes_open(struct gateway_pool *pool, const struct pool_process_kind *kind,
			unsigned count, unsigned parts);

/* Ends all, each when it is idle, and then calls pool->ended(). */
void pool_processes_end(struct gateway_pool *pool);

/* Ends all; the threads' loops have ended. */
void pool_processes_close(struct gateway_pool *pool);

/* The number of the pool's program, or -EPERM: the spawner does not know it, as the log says. */
int pool_processes_program(const struct gateway_pool *pool);

/* By start() of a kind: has the spawner start it.  0 and the pidfd, which is the caller's; -errno. */
int pool_process_run(struct pool_process *process, const struct start *what, pid_t *pid,
		     int *pidfd);

/* Replaces all, one after the other, each when it has nothing left to do. */
void pool_processes_renew(struct gateway_pool *pool);

/* By each part, on its thread. */
void pool_process_left(struct pool_process *process);

#define POOL_PROCESS_SLOW_MS 10u /* for one request: others go to other processes, or move there */

/* It gets a request; it has ended one; one is withdrawn from it.  On any thread. */
void pool_process_takes(struct pool_process *process, uint64_t now_ms);
void pool_process_leaves(struct pool_process *process, uint64_t now_ms);
void pool_process_loses(struct pool_process *process);

/* How long it has had requests and ended none; 0 if it has none. */
uint64_t pool_process_stalled_ms(const struct pool_process *process, uint64_t now_ms);

/* Whether that is more than POOL_PROCESS_SLOW_MS: what it is given waits behind a long request. */
static inline bool pool_process_is_slow(const struct pool_process *process, uint64_t now_ms)
{
	return pool_process_stalled_ms(process, now_ms) > POOL_PROCESS_SLOW_MS;
}

/* It has answered one more, on any thread: after its last it is replaced. */
void pool_process_served(struct pool_process *process);

/* It has broken the rules or takes too long: ends it; while a thread has it. */
void pool_process_kill(struct pool_process *process, const char *why);

/* Whether all places fail again and again. */
bool pool_processes_fail(struct gateway_pool *pool);

#endif
