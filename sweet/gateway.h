/* SPDX-License-Identifier: MIT */
/*
 * gateway.h - pools of worker processes: which requests are theirs, starting
 * them, noticing their end, starting them again.
 *
 * The main thread supervises.  Every thread has a lane to every worker
 * (gw-worker.h) and is told by tasks on its loop when one comes or goes.
 */
#ifndef SWEET_GATEWAY_H
#define SWEET_GATEWAY_H

#include <stdatomic.h>

#include <nabc-worker.h>

#include <gw-worker.h>
#include <server.h>
#include <transaction.h>

enum worker_state { WORKER_DOWN, WORKER_UP, WORKER_LEAVING };

/* One process of a pool, and its successors. */
struct gateway_worker {
	struct gateway_pool *pool;
	unsigned number;	 /* in its pool */
	enum worker_state state; /* main thread's */
	NC_exchange *exchange;	 /* main thread's; a lane has its copy while up */
	struct loop_watch ended; /* its pidfd */
	struct timer restart;
	unsigned backoff; /* ms before the next start */
	uint64_t started_ms;
	_Atomic unsigned leaving; /* threads that have not let go of it */
	struct loop_task gone;	  /* told to the main thread by the last of them */
	struct gw_lane *lanes;	  /* one a thread */
	/* For the status, told by the main thread. */
	_Atomic int pid; /* 0: none is up */
	_Atomic uint64_t starts;
};

struct gateway_pool {
	char *prefix; /* "/generate" */
	size_t prefix_length;
	char **argv;
	unsigned count;
	struct gateway_worker *workers;
	_Atomic unsigned failing; /* workers that ended soon after their start */
	struct gw_queue *queues;  /* requests that wait for a worker; one a thread */
};

struct gateway {
	struct site *site;
	struct server *main; /* whose loop supervises */
	size_t memory;	     /* bytes of each worker's segment */
	unsigned pool_count;
	struct gateway_pool *pools;
	bool closing;
};

/* What is wrong with "/PREFIX=COMMAND", in a line (g_free), or NULL. */
char *gateway_check(const char *spec);

/*
 * specs: "PREFIX=COMMAND" strings, NULL ends.  On failure NULL, with one line
 * in *why (g_free).
 */
struct gateway *gateway_open(struct site *site, char **specs, unsigned workers, size_t memory,
			     char **why);

/* Starts all workers; on the main thread before its loop runs.  0 or -errno. */
int gateway_start(struct gateway *gateway);

/* Ends all workers; the threads' loops must have ended. */
void gateway_close(struct gateway *gateway);

/* The pool whose prefix path lies under, or NULL. */
struct gateway_pool *gateway_find(struct gateway *gateway, const char *path);

#endif
