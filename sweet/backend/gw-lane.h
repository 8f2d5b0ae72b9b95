/* SPDX-License-Identifier: MIT */
/*
 * gw-lane.h - a lane: one thread's end of one worker, and the calls that are
 * in it.
 *
 * A call is there until the worker's last record for it has come, whether or
 * not somebody still waits for that: only then is its tag free.
 */
#ifndef SWEET_GW_LANE_H
#define SWEET_GW_LANE_H

#include <stdatomic.h>

#include <nabc-worker.h>

#include "event/loop.h"

#define GW_IN_FLIGHT 256u /* calls of one thread in one worker, at most */

struct gw_call;
struct gw_process;
struct server;

/* A call in a worker; its slot and generation are the tag. */
struct gw_pending {
	struct gw_call *call; /* NULL: free, or nobody waits for it any more */
	bool deserted;	      /* the latter */
	bool untold;	      /* of which the worker is still to be told */
	bool heard;	      /* the worker has told something of it */
	bool streams;	      /* its answer is on its way to who waits for it, and goes on */
	uint32_t generation;
	uint32_t next;	 /* free slot */
	uint64_t number; /* of those that the worker was given, from 1 */
	uint64_t deserted_ms;
};

struct gw_lane {
	struct gw_process *process;
	struct server *server;
	NC_exchange *exchange; /* NULL: down */
	struct loop_watch doorbell;
	struct loop_task up, retire, down;
	struct gw_lane *next_active; /* lanes of the server, for its hook */
	bool retiring;		     /* to let go when idle */
	bool dirty;		     /* the worker is to be woken */
	bool owing;		     /* what a full queue kept back is to be told */
	bool behind;		     /* calls wait in it behind a long one; the queue counts it */
	struct timer look;	     /* whether they do */
	uint64_t submitted;	     /* calls, to this worker */
	unsigned in_flight;
	unsigned deserted;     /* of those, the ones that nobody waits for */
	struct timer patience; /* with them */
	/* For the status; of this thread and all processes that the place has had. */
	_Atomic uint64_t requests, ended, failures;
	uint32_t free;
	struct gw_pending pending[GW_IN_FLIGHT];
};

/* The worker has come: nothing is in it. */
void gw_lane_reset(struct gw_lane *lane, NC_exchange *exchange);

/* False: there is no room in it. */
bool gw_lane_submit(struct gw_lane *lane, struct gw_call *call, const char *block, size_t length);

/* How many of its calls the worker has not begun with.  A worker that lies is ended: 0. */
unsigned gw_lane_waiting(struct gw_lane *lane);

/*
 * Takes the oldest of those back from the worker, for gw_move(); of calls that
 * nobody waits for, all before it.  False: there is none.
 */
bool gw_lane_withdraw(struct gw_lane *lane);

/*
 * Takes records of the worker, as many as are one turn's; true: there were some, and there may be
 * more.
 */
bool gw_lane_reap(struct gw_lane *lane);

/* The worker is gone: takes all records that it left. */
void gw_lane_reap_last(struct gw_lane *lane);

/* Before the loop sleeps: wakes the worker if need be; true: there were records after all. */
bool gw_lane_settle(struct gw_lane *lane);

/*
 * The worker is gone, and its last record was taken: the calls that it never
 * began with go back to the queue.
 */
void gw_lane_take_back(struct gw_lane *lane);

/* The worker is gone, and with it all that is in it. */
void gw_lane_abandon(struct gw_lane *lane);

/* What struct gw_protocol asks for, of a call that is or was in a lane. */
bool gw_lane_body(struct gw_call *call);
void gw_lane_too_late(struct gw_call *call);
void gw_lane_gone(struct gw_call *call);
void gw_lane_finish(struct gw_call *call);

#endif
