/* SPDX-License-Identifier: MIT */
/*
 * worker-channel.h - a channel: one thread's end of one worker, with its calls.
 *
 * A call stays in the channel until its last record has come from the worker, even if the client
 * has disconnected: only then its tag can be reused.
 */
#ifndef SWEET_WORKER_CHANNEL_H
#define SWEET_WORKER_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nabc-worker.h>

#include "base/list.h"
#include "base/timer.h"
#include "event/loop.h"

#define WORKER_IN_FLIGHT 256u /* limit of calls of one thread in one worker */

struct backend_call;
struct client_calls;
struct pool_process;
struct thread;

/* A call in a worker; its slot and generation form the tag. */
struct channel_slot {
	struct backend_call *call; /* NULL: free or orphaned */
	bool orphaned;		   /* no client waits for the response */
	bool cancel_pending;	   /* the worker has not been told yet */
	bool heard;		   /* the worker has sent a record for it */
	bool streams;		   /* a response in pieces is being sent */
	bool tunnel;		   /* its response is 101: it does not count as a request */
	uint32_t generation;
	uint32_t next;	 /* the next free slot */
	uint64_t number; /* sequence number of the call in this worker, from 1 */
	uint64_t orphaned_ms;
	struct client_calls *calls; /* of the client that has abandoned it; or NULL */
};

struct worker_channel {
	struct pool_process *process;
	struct thread *thread;
	NC_backend *backend; /* NULL: the worker is down */
	struct loop_watch doorbell;
	struct loop_task up, retire, down;
	struct list_node node; /* in the list of the thread's channels, for its hook */
	bool retiring;	       /* to be released when idle */
	bool dirty;	       /* the worker has to be woken */
	bool notify_pending;   /* a full queue delays cancels or pieces of bodies */
	bool behind;	       /* calls wait in it behind a long one; the queue counts it */
	struct timer look;     /* checks whether they do */
	uint64_t submitted;    /* calls, to this worker */
	unsigned in_flight;    /* without tunnels */
	unsigned tunnels;
	unsigned orphaned;	  /* orphaned calls */
	struct timer drain_timer; /* their timeout */
	/* For the status: of this thread, and of all processes of the place so far. */
	_Atomic uint64_t requests, ended, failures;
	uint32_t free;
	uint32_t slots; /* more than WORKER_IN_FLIGHT if there are tunnels */
	struct channel_slot *pending;
};

/* Whether the worker has no calls. */
static inline bool worker_channel_is_idle(const struct worker_channel *channel)
{
	return !channel->in_flight && !channel->tunnels;
}

/* A worker has started: empties the channel. */
void worker_channel_reset(struct worker_channel *channel, NC_backend *backend);

/* Adds WORKER_IN_FLIGHT free slots, which a channel needs first.  Returns false without memory. */
bool worker_channel_grow(struct worker_channel *channel);

/* Frees them all, of a channel without calls. */
void worker_channel_free(struct worker_channel *channel);

/* The process shall end: its tunnels have the time of an answer to do so. */
void worker_channel_drain(struct worker_channel *channel);

/* Returns false if the channel is full. */
bool worker_channel_submit(struct worker_channel *channel, struct backend_call *call,
			   const char *block, size_t length);

/* Returns how many calls the worker has not begun with; a protocol error kills it: 0. */
unsigned worker_channel_waiting(struct worker_channel *channel);

/*
 * Withdraws the oldest call that the worker has not begun with and passes it to call_queue_move();
 * also drops the orphaned calls before it.  Returns false if there is none.
 */
bool worker_channel_withdraw(struct worker_channel *channel);

/*
 * Processes the worker's records, at most as many as one turn permits.  Returns true if there were
 * any: there may be more.
 */
bool worker_channel_reap(struct worker_channel *channel);

/* The worker has ended: processes all records that it left. */
void worker_channel_reap_last(struct worker_channel *channel);

/* Before the loop sleeps: wakes the worker if necessary.  Returns true if new records had come. */
bool worker_channel_settle(struct worker_channel *channel);

/*
 * The worker has ended, and its last record was processed: queues the calls again that it never
 * began with.
 */
void worker_channel_take_back(struct worker_channel *channel);

/* The worker has ended: fails all calls that are left. */
void worker_channel_abandon(struct worker_channel *channel);

/* Functions of struct backend_protocol, for a call that is or was in a channel. */
bool worker_channel_body(struct backend_call *call);
void worker_channel_too_late(struct backend_call *call);
void worker_channel_gone(struct backend_call *call);
void worker_channel_finish(struct backend_call *call);

#endif
