/* SPDX-License-Identifier: MIT */
/*
 * timer.c - see timer.h.  The caller embeds the timers; for one thread.
 */
#include <limits.h>
#include <stddef.h>

#include "base/timer.h"

/*
 * Returns the queue of that duration, or else an empty one.  If there is none,
 * because reloads changed the durations several times, timers of several durations
 * share the last queue.
 */
static struct timer_queue *queue_of(struct timers *timers, unsigned duration)
{
	struct timer_queue *empty = NULL;

	for (unsigned i = 0; i < timers->count; i++) {
		if (timers->queues[i].duration == duration)
			return &timers->queues[i];
		if (!timers->queues[i].first)
			empty = &timers->queues[i];
	}
	if (timers->count < TIMER_DURATIONS)
		empty = &timers->queues[timers->count++];
	if (!empty)
		return &timers->queues[TIMER_DURATIONS - 1];
	empty->duration = duration;
	return empty;
}

void timer_stop(struct timer *timer)
{
	struct timer_queue *queue = timer->queue;

	if (!queue)
		return;
	if (timer->next)
		timer->next->previous = timer->previous;
	else
		queue->last = timer->previous;
	if (timer->previous)
		timer->previous->next = timer->next;
	else
		queue->first = timer->next;
	timer->queue = NULL;
}

void timer_start(struct timers *timers, struct timer *timer, unsigned duration, uint64_t now,
		 void (*expired)(struct timer *timer))
{
	struct timer_queue *queue = queue_of(timers, duration);
	struct timer *before;

	timer_stop(timer);
	timer->expired = expired;
	timer->due = now + duration;
	timer->queue = queue;
	/* Usually this goes to the end: only a shared queue has several durations. */
	before = queue->last;
	while (before && before->due > timer->due)
		before = before->previous;
	timer->previous = before;
	timer->next = before ? before->next : queue->first;
	if (timer->next)
		timer->next->previous = timer;
	else
		queue->last = timer;
	if (before)
		before->next = timer;
	else
		queue->first = timer;
}

void timers_run(struct timers *timers, uint64_t now)
{
	for (unsigned i = 0; i < timers->count; i++) {
		struct timer_queue *queue = &timers->queues[i];

		while (queue->first && queue->first->due <= now) {
			struct timer *timer = queue->first;

			timer_stop(timer);
			timer->expired(timer);
		}
	}
}

int timers_wait(const struct timers *timers, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < timers->count; i++)
		if (timers->queues[i].first && timers->queues[i].first->due < next)
			next = timers->queues[i].first->due;
	if (next == UINT64_MAX)
		return -1;
	if (next <= now)
		return 0;
	return next - now < INT_MAX ? (int)(next - now) : INT_MAX;
}
