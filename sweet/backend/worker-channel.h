/* SPDX-License-Identifier: MIT */
/*
 * worker-channel.h - a channel: one thread's end of one worker, and the calls that are
 * in it.
 *
 * A call is there until the worker's last record for it has come, whether or
 * not somebody still waits for that: only then is its tag free.
 */
#ifndef SWEET_WORKER_CHANNEL_H
#define SWEET_WORKER_CHANNEL_H

#include <stdatomic.h>

#include <nabc-worker.h>

#include "event/loop.h"

#define WORKER_IN_FLIGHT 256u /* calls of one thread in one worker, at most */

struct backend_call;
struct pool_process;
struct thread;

/* A call in a worker; its slot and generation are the tag. */
struct channel_slot {
	struct backend_call *call; /* NULL: free, or nobody waits for it any more */
	bool orphaned;		   /* the latter */
	bool cancel_pending;	   /* of which the worker is still to be told */
	bool heard;		   /* the worker has told something of it */
	bool streams;		   /* its answer is on its way to who waits for it, and goes on */
	uint32_t generation;
	uint32_t next;	 /* free slot */
	uint64_t number; /* of those that the worker was given, from 1 */
	uint64_t orphaned_ms;
};

struct worker_channel {
	struct pool_process *process;
	struct thread *thread;
	NC_backend *backend; /* NULL: down */
	struct loop_watch doorbell;
	struct loop_task up, retire, down;
	struct worker_channel *next_active; /* channels of the thread, for its hook */
	bool retiring;			    /* to let go when idle */
	bool dirty;			    /* the worker is to be woken */
	bool notify_pending;		    /* what a full queue kept back is to be told */
	bool behind;	    /* calls wait in it behind a long one; the queue counts it */
	struct timer look;  /* whether they do */
	uint64_t submitted; /* calls, to this worker */
	unsigned in_flight;
	unsigned orphaned;	  /* of those, the ones that nobody waits for */
	struct timer drain_timer; /* with them */
	/* For the status; of this thread and all processes that the place has had. */
	_Atomic uint64_t requests, ended, failures;
	uint32_t free;
	struct channel_slot pending[WORKER_IN_FLIGHT];
};

/* The worker has come: nothing is in it. */
void worker_channel_reset(struct worker_channel *channel, NC_backend *backend);

/* False: there is no room in it. */
bool worker_channel_submit(struct worker_channel *channel, struct backend_call *call,
			   const char *block, size_t length);

/* How many of its calls the worker has not begun with.  A worker that lies is ended: 0. */
unsigned worker_channel_waiting(struct worker_channel *channel);

/*
 * Takes the oldest of those back from the worker, for call_queue_move(); of calls that
 * nobody waits for, all before it.  False: there is none.
 */
bool worker_channel_withdraw(struct worker_channel *channel);

/*
 * Takes records of the worker, as many as are one turn's; true: there were some, and there may be
 * more.
 */
bool worker_channel_reap(struct worker_channel *channel);

/* The worker is gone: takes all records that it left. */
void worker_channel_reap_last(struct worker_channel *channel);

/* Before the loop sleeps: wakes the worker if need be; true: there were records after all. */
bool worker_channel_settle(struct worker_channel *channel);

/*
 * The worker is gone, and its last record was taken: the calls that it never
 * began with go back to the queue.
 */
void worker_channel_take_back(struct worker_channel *channel);

/* The worker is gone, and with it all that is in it. */
void worker_channel_abandon(struct worker_channel *channel);

/* What struct backend_protocol asks for, of a call that is or was in a channel. */
bool worker_channel_body(struct backend_call *call);
void worker_channel_too_late(struct backend_call *call);
void worker_channel_gone(struct backend_call *call);
void worker_channel_finish(struct backend_call *call);

#endif
