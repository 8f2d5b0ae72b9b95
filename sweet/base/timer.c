/* SPDX-License-Identifier: MIT */
/*
 * timer.c - see timer.h.  The caller embeds the timers; for one thread.
 */
#include <limits.h>
#include <stddef.h>

#include "base/list.h"
#include "base/timer.h"

static struct timer *first_of(const struct timer_queue *queue)
{
	return list_first(&queue->timers, struct timer, node);
}

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
		if (list_is_empty(&timers->queues[i].timers))
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
	list_remove(&timer->node);
}

void timer_start(struct timers *timers, struct timer *timer, unsigned duration, uint64_t now,
		 void (*expired)(struct timer *timer))
{
	struct timer_queue *queue = queue_of(timers, duration);
	struct timer *before;

	timer_stop(timer);
	timer->expired = expired;
	timer->due = now + duration;
	/* Usually this goes to the end: only a shared queue has several durations. */
	before = list_last(&queue->timers, struct timer, node);
	while (before && before->due > timer->due)
		before = list_previous(&queue->timers, before, node);
	if (before)
		list_insert_after(&before->node, &timer->node);
	else
		list_prepend(&queue->timers, &timer->node);
}

/* One of each queue, as long as there are any: no duration keeps the others waiting. */
void timers_run(struct timers *timers, uint64_t now)
{
	unsigned run = 0, before;

	do {
		before = run;
		for (unsigned i = 0; i < timers->count && run < TIMERS_RUN_MAX; i++) {
			struct timer *timer = first_of(&timers->queues[i]);

			if (!timer || timer->due > now)
				continue;
			timer_stop(timer);
			run++;
			timer->expired(timer);
		}
	} while (run != before && run < TIMERS_RUN_MAX);
}

int timers_wait(const struct timers *timers, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < timers->count; i++) {
		const struct timer *first = first_of(&timers->queues[i]);

		if (first && first->due < next)
			next = first->due;
	}
	if (next == UINT64_MAX)
		return -1;
	if (next <= now)
		return 0;
	return next - now < INT_MAX ? (int)(next - now) : INT_MAX;
}
