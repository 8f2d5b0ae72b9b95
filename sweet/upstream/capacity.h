/* SPDX-License-Identifier: MIT */
/*
 * capacity.h - learns how many connections an application serves at a time.
 *
 * Many applications serve one connection in each process.  Further connections wait in the
 * system's queue until a process closes its own, and their requests with them: if the server keeps
 * the others open, and sends later requests by these, the earlier ones are overtaken.  Therefore
 *   - a connection on which nothing has come is known to wait unless a later one was answered,
 *     because the system's queue has an order;
 *   - if one has waited for CAPACITY_STUCK_MS or longer, and there are not as many processes whose
 *     connection was closed, connections close after their responses, one for each that waits: the
 *     process accepts the next one, and requests are served in their order.  Nothing is sent
 *     twice, and it costs little if the application had accepted it after all;
 *   - if a connection was answered a request that began later, and after that the one that
 *     waited is answered, the application serves as many as did not wait.  This is the limit, and
 *     further requests wait in the server;
 *   - while requests wait there, the limit is raised by a quarter, in case the application has got
 *     more processes: again each CAPACITY_RAISE_MS as long as it serves them; if the limit is found
 *     again, after twice the time of before, up to CAPACITY_RAISE_MAX_MS.
 *
 * No system calls; any thread may use a struct capacity.  Times are those of a monotonic clock.
 */
#ifndef SWEET_CAPACITY_H
#define SWEET_CAPACITY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CAPACITY_STUCK_MS 3u
#define CAPACITY_TAKEN_MS 100u /* for a process that is free to accept; later it has others */
#define CAPACITY_TRY_MS 100u   /* one connection in that time is kept to learn the limit */
#define CAPACITY_RAISE_MS 10u
#define CAPACITY_RAISE_MAX_MS 1000u

struct capacity {
	_Atomic unsigned limit;	   /* connections that may be open; at least 1 */
	_Atomic unsigned open;	   /* connections that are */
	_Atomic unsigned waiting;  /* of these, as far as known not accepted */
	_Atomic uint64_t order;	   /* numbers given out */
	_Atomic uint64_t accepted; /* the highest one of a connection that was accepted */
	_Atomic uint64_t raise_ms; /* the limit is not raised before; UINT64_MAX: never */
	pthread_mutex_t lock;
	/* Protected by the lock: */
	unsigned most;
	uint64_t stuck_ms;    /* when the one that is stuck was opened */
	uint64_t reported_ms; /* when that was noticed last; 0: never */
	uint64_t tried_ms;    /* when a connection was kept although others wait */
	uint64_t taken_ms;    /* when the processes of those that were closed were given up */
	unsigned closed;      /* connections that were accepted, and not followed by another one */
	unsigned found;	      /* the limit if the one that is stuck is answered next; or 0 */
	uint64_t found_ms;    /* when that one was opened */
	unsigned before;      /* the limit before it was raised; 0: it was found since */
	unsigned pause_ms;    /* before the limit is raised */
};

/* most: the limit to begin with. */
void capacity_init(struct capacity *capacity, unsigned most);
void capacity_clear(struct capacity *capacity);

/* The address is that of another application now; there are no connections. */
void capacity_forget(struct capacity *capacity);
/*
 * Returns a number for the order of connections, from 1 on: one is taken before connecting, and one
 * after it.  A connection was opened before another one if its second number is lower than the
 * first one of the other.  Clocks of loops are not exact enough.
 */
uint64_t capacity_number(struct capacity *capacity);

/* A connection is opened, and waits; and is closed. */
void capacity_opened(struct capacity *capacity);
void capacity_closed(struct capacity *capacity, bool waited);

/*
 * The application has accepted a connection that waited; number: its first one.  Returns true if
 * the limit has changed.
 */
bool capacity_accepted(struct capacity *capacity, uint64_t number, uint64_t opened_ms,
		       uint64_t now_ms);

/* Whether a later connection was accepted; number: its second one. */
static inline bool capacity_is_passed(const struct capacity *capacity, uint64_t number)
{
	return number < atomic_load_explicit(&capacity->accepted, memory_order_relaxed);
}

static inline bool capacity_has_waiting(const struct capacity *capacity)
{
	return atomic_load_explicit(&capacity->waiting, memory_order_relaxed);
}

/* A connection has waited for too long; called again each CAPACITY_STUCK_MS as long as it does. */
void capacity_stuck(struct capacity *capacity, uint64_t opened_ms, uint64_t now_ms);

/*
 * The connection of a request that began at that time is free; 0: of none.  Returns true if it
 * has to be closed for one that waits.
 */
bool capacity_yields(struct capacity *capacity, uint64_t began_ms, uint64_t now_ms);

/* Requests wait.  Returns true if the limit was raised. */
bool capacity_raise(struct capacity *capacity, uint64_t now_ms);

#endif
