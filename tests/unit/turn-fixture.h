/* SPDX-License-Identifier: MIT */
/*
 * turn-fixture.h - counts the callbacks of a loop in each of its turns.  The struct outlives the loop.
 */
#ifndef TURN_FIXTURE_H
#define TURN_FIXTURE_H

#include <stdbool.h>

#include "event/loop.h"

#include "loop-fixture.h"

struct turn {
	struct loop_hook hook; /* must be first */
	struct runner *runner;
	unsigned now;  /* callbacks in this turn */
	unsigned most; /* in any turn */
	unsigned all;
};

static inline bool turn_is_over(struct loop_hook *hook)
{
	((struct turn *)hook)->now = 0;
	return false;
}

static inline void turn_watch_now(void *argument)
{
	struct turn *turn = argument;

	turn->hook.before_sleep = turn_is_over;
	loop_hook_add(turn->runner->loop, &turn->hook);
}

static inline void turn_watch(struct turn *turn, struct runner *runner)
{
	*turn = (struct turn){.runner = runner};
	call(runner, turn_watch_now, turn);
}

/* A callback, on the loop's thread; the test that awaits it may continue. */
static inline void turn_count(struct turn *turn)
{
	turn->now++;
	EVENT(turn->all++; turn->most = turn->now > turn->most ? turn->now : turn->most);
}

#endif
