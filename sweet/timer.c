/* SPDX-License-Identifier: MIT */
/*
 * timer.c - see timer.h.  The caller embeds the timers; one thread.
 */
#include <assert.h>
#include <limits.h>
#include <stddef.h>

#include "timer.h"

static struct timer_queue *queue_of(struct timers *timers, unsigned duration)
{
	for (unsigned i = 0; i < timers->count; i++)
		if (timers->queues[i].duration == duration)
			return &timers->queues[i];
	assert(timers->count < TIMER_DURATIONS);
	timers->queues[timers->count] = (struct timer_queue){.duration = duration};
	return &timers->queues[timers->count++];
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

	timer_stop(timer);
	timer->expired = expired;
	timer->due = now + duration;
	timer->queue = queue;
	timer->next = NULL;
	timer->previous = queue->last;
	if (queue->last)
		queue->last->next = timer;
	else
		queue->first = timer;
	queue->last = timer;
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
