/* SPDX-License-Identifier: MIT */
/*
 * test-loop-queue.c - unit tests of the event loop: tasks of which each turn runs a limited number.
 * Every test is run with each kind of loop.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "event/loop.h"

#include "loop-fixture.h"
#include "suite.h"
#include "turn-fixture.h"

struct item {
	struct loop_task task; /* must be first */
	unsigned number;
};

/* A task that queues itself again. */
struct repeated {
	struct loop_task task; /* must be first */
	unsigned left;
};

static struct runner runner;
static unsigned disorder, posted_ran;

#define QUEUED 300u
#define LONG_TASKS 5u

static struct turn turn;
static struct item queued[QUEUED];
static unsigned queued_before; /* tasks of the queue that ran before one that was posted */

static void queued_runs(struct loop_task *task)
{
	unsigned number = ((struct item *)task)->number;

	EVENT(disorder += turn.all != number);
	/* Then the test may continue. */
	turn_count(&turn);
}

static void posted_runs(struct loop_task *task)
{
	(void)task;
	EVENT(queued_before = turn.all; posted_ran++);
}

/* A task of the queue posts another. */
static void queued_posts(struct loop_task *task)
{
	static struct loop_task posted = {.run = posted_runs};

	queued_runs(task);
	loop_post(runner.loop, &posted);
}

static void queue_all(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < QUEUED; i++) {
		queued[i] = (struct item){.task.run = i ? queued_runs : queued_posts, .number = i};
		loop_queue(runner.loop, &queued[i].task);
	}
}

/* Some in each turn, in their order, without an event between them; others have their turn. */
START_TEST(test_queue)
{
	runner_start(&runner, kind_of(_i));
	turn_watch(&turn, &runner);
	call(&runner, queue_all, NULL);
	AWAIT(turn.all == QUEUED && posted_ran == 1);
	SEEN(disorder == 0 && turn.most > 1 && turn.most <= LOOP_QUEUED_MAX &&
	     queued_before <= LOOP_QUEUED_MAX);
	/* From another thread, each of which must wake the loop. */
	for (unsigned i = 0; i < scaled(1000); i++) {
		struct item item = {.task.run = queued_runs, .number = QUEUED + i};

		loop_queue(runner.loop, &item.task);
		AWAIT(turn.all == QUEUED + i + 1);
	}
	SEEN(disorder == 0);
	runner_stop(&runner);
}
END_TEST

static struct repeated repeated[2];

static void repeats(struct loop_task *task)
{
	struct repeated *at = (struct repeated *)task;
	const struct repeated *other = &repeated[at == repeated];

	/* They alternate. */
	EVENT(disorder += at->left > other->left + 1 || other->left > at->left + 1; at->left--);
	if (at->left)
		loop_queue(runner.loop, task);
	turn_count(&turn);
}

static void queue_repeated(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < 2; i++) {
		repeated[i] = (struct repeated){.task.run = repeats, .left = QUEUED};
		loop_queue(runner.loop, &repeated[i].task);
	}
}

/* Tasks that queue themselves again share the turns. */
START_TEST(test_queue_itself)
{
	runner_start(&runner, kind_of(_i));
	turn_watch(&turn, &runner);
	call(&runner, queue_repeated, NULL);
	AWAIT(turn.all == 2 * QUEUED);
	SEEN(disorder == 0 && turn.most <= LOOP_QUEUED_MAX);
	runner_stop(&runner);
}
END_TEST

static void takes_long(struct loop_task *task)
{
	uint64_t since = clock_monotonic_ns();

	while (clock_monotonic_ns() - since < LOOP_QUEUED_NS)
		;
	queued_runs(task);
}

static void queue_long(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < LONG_TASKS; i++) {
		queued[i] = (struct item){.task.run = takes_long, .number = i};
		loop_queue(runner.loop, &queued[i].task);
	}
}

/* Each that takes long has a turn of its own. */
START_TEST(test_queue_of_long)
{
	runner_start(&runner, kind_of(_i));
	turn_watch(&turn, &runner);
	call(&runner, queue_long, NULL);
	AWAIT(turn.all == LONG_TASKS);
	SEEN(disorder == 0 && turn.most == 1);
	runner_stop(&runner);
}
END_TEST

static void fill(TCase *tcase)
{
	int first = first_kind();

	tcase_add_loop_test(tcase, test_queue, first, KINDS);
	tcase_add_loop_test(tcase, test_queue_itself, first, KINDS);
	tcase_add_loop_test(tcase, test_queue_of_long, first, KINDS);
}

RUN_SUITE("loop-queue", fill)
