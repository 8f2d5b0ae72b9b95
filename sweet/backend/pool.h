/* SPDX-License-Identifier: MIT */
/*
 * pool.h - a pool of programs that respond to requests, as its calls see it.
 *
 * gateway/ opens and closes pools, and runs their processes.
 */
#ifndef SWEET_POOL_H
#define SWEET_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "event/loop.h"

struct backend_protocol;
struct budget;
struct gateway;
struct page_memory;
struct pool_config;
struct pool_process;
struct server;
struct thread;

/* Calls that wait for free capacity of one pool, on one thread. */
struct call_queue {
	struct list calls;
	_Atomic uint64_t count; /* queued calls; also read by the status */
	unsigned behind;	/* processes in which calls of this thread wait behind a long one */
	struct loop_notice room; /* the pool may have free capacity */
	struct gateway_pool *pool;
	struct thread *thread;
};

/* A round of replacements of a pool's processes. */
struct pool_process_turn {
	unsigned at; /* number of the place that is being replaced, from 1; 0: no round */
	bool again;  /* another round was requested meanwhile */
};

struct gateway_pool {
	struct server *server;
	struct gateway *gateway;	    /* NULL: it has been closed */
	const struct pool_config *settings; /* holds a reference */
	const struct backend_protocol *protocol;
	/* The protocol calls it when end() is complete: closes and frees the pool. */
	void (*ended)(struct gateway_pool *pool);
	_Atomic unsigned users;	   /* references: sites, and one of the gateway */
	bool fresh;		   /* new with this configuration: nothing to renew */
	struct loop_task over;	   /* posted when no configuration uses the pool */
	struct call_queue *queues; /* one for each thread */
	/* budgets for queued response data in each process's memory; or NULL */
	struct budget *ahead;
	/* connections in another protocol, and requests for one; those that were refused */
	_Atomic uint64_t tunnels, tunnels_refused;
	struct page_memory *pages; /* pages of responses in each process's memory; or NULL */
	bool closing;		   /* the server ends: the loops do not run any more */
	void *own;		   /* private to the protocol */
	/* Only if the server starts the processes: */
	unsigned count;
	struct pool_process *processes;
	struct pool_process_turn turn;
	bool ending;		     /* no more processes are started */
	_Atomic unsigned failing;    /* processes that ended soon after their start */
	bool none_left;		     /* all failed, which the log says once until one lives */
	_Atomic uint64_t retired_ms; /* when the server last asked one to end; 0: never */
};

#endif
