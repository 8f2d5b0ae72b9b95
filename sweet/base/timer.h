/* SPDX-License-Identifier: MIT */
/*
 * timer.h - coarse timers of one loop thread.
 *
 * A server has few durations and many timers, so timers of one duration form a
 * queue in order of expiry: starting and stopping are list operations, and only the
 * first timer of each queue is checked.  Resolution: the loop's clock, some ms.
 */
#ifndef SWEET_TIMER_H
#define SWEET_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define TIMER_DURATIONS 16

struct timer {
	struct list_node node;
	uint64_t due; /* ms */
	void (*expired)(struct timer *timer);
};

struct timer_queue {
	unsigned duration;  /* ms */
	struct list timers; /* the first one due first */
};

struct timers {
	struct timer_queue queues[TIMER_DURATIONS];
	unsigned count;
};

/* Starts or restarts; slower if more than TIMER_DURATIONS durations are in use. */
void timer_start(struct timers *timers, struct timer *timer, unsigned duration, uint64_t now,
		 void (*expired)(struct timer *timer));
void timer_stop(struct timer *timer);

static inline bool timer_is_running(const struct timer *timer)
{
	return list_is_linked(&timer->node);
}

/*
 * Calls expired() of due timers, at most TIMERS_RUN_MAX, so that others have their turn;
 * timers_wait() is 0 as long as more are due.  A callback may start and stop any timer.
 */
#define TIMERS_RUN_MAX 64u
void timers_run(struct timers *timers, uint64_t now);

/* Returns ms until the next timer is due; -1: none is running. */
int timers_wait(const struct timers *timers, uint64_t now);

#endif
