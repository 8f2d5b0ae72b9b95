/* SPDX-License-Identifier: MIT */
/*
 * gw-worker.h - requests to NABC workers and their answers, on one thread.
 *
 * A lane is this thread's end of one worker.  A request goes to the lane with
 * the fewest in flight, waits in the pool's queue when all are full or down,
 * and is answered with 502 when its worker dies and 503 when none comes.
 */
#ifndef SWEET_GW_WORKER_H
#define SWEET_GW_WORKER_H

#include <stdatomic.h>

#include <nabc-worker.h>

#include <loop.h>
#include <transaction.h>

#define GW_IN_FLIGHT 256u  /* requests of one thread in one worker */
#define GW_QUEUE_MAX 1024u /* requests of one thread waiting for a pool */

struct gateway_pool;
struct gateway_worker;

/* A request in a worker; its slot and generation are the tag. */
struct gw_pending {
	struct transaction *transaction; /* NULL: free */
	uint32_t generation;
	uint32_t next; /* free slot */
};

struct gw_lane {
	struct gateway_worker *worker;
	struct server *server;
	NC_exchange *exchange; /* NULL: down */
	struct loop_watch doorbell;
	struct loop_task up, down;
	struct gw_lane *next_active; /* lanes of the server, for its hook */
	unsigned in_flight;
	/* For the status; of this thread and all processes that the worker has had. */
	_Atomic uint64_t requests, ended, failures;
	uint32_t free;
	bool dirty; /* submitted since the last kick */
	struct gw_pending pending[GW_IN_FLIGHT];
};

/* Transactions that wait for a worker of one pool, on one thread. */
struct gw_queue {
	struct server *server;
	struct gateway_pool *pool;
	struct transaction *first, **last;
	_Atomic uint64_t count; /* of those; read by the status */
};

enum respond gw_respond(struct gateway_pool *pool, struct transaction *transaction,
			size_t prefix_length);

/* Tasks on the server's loop: the lane's worker has come; has gone. */
void gw_lane_up(struct loop_task *task);
void gw_lane_down(struct loop_task *task);

/* Fails all requests that are in the lane's worker; that wait. */
void gw_lane_abandon(struct gw_lane *lane);
void gw_queue_abandon(struct gw_queue *queue);

/* Called by gw_lane_down() when the thread has let go of the worker. */
void gateway_left(struct gateway_worker *worker);

/* The worker has broken the protocol or takes too long: end it. */
void gateway_kill(struct gateway_worker *worker, const char *why);

/* Of each server, once: wakes workers and looks for answers before a sleep. */
struct gw_hook {
	struct loop_hook hook;
	struct gw_lane *active;
	char block[NC_BLOCK_MAX]; /* a request's variables, until they are submitted */
};
void gw_hook_add(struct gw_hook *hook, struct server *server);

#endif
