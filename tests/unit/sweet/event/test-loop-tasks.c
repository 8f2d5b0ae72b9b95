/* SPDX-License-Identifier: MIT */
/*
 * test-loop-tasks.c - unit tests of the event loop: tasks from other threads,
 * timers, hooks, and its end.  Every test is run with each kind of loop.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/timer.h"
#include "event/loop.h"

#include "loop-fixture.h"
#include "suite.h"

#define POSTERS 4

static struct runner runner;

/* --- tasks ------------------------------------------------------------------------ */

struct errand {
	struct loop_task task; /* must be first */
	unsigned poster, number;
};

struct poster {
	pthread_t thread;
	unsigned number, count;
	struct errand *errands;
};

static unsigned next_errand[POSTERS], disorder, done_errands;

static void errand_runs(struct loop_task *task)
{
	struct errand *errand = (struct errand *)task;

	EVENT(disorder += errand->number != next_errand[errand->poster] ||
			  !pthread_equal(pthread_self(), runner.thread);
	      next_errand[errand->poster]++; done_errands++);
}

static void *post_all(void *argument)
{
	struct poster *poster = argument;

	for (unsigned i = 0; i < poster->count; i++) {
		poster->errands[i] = (struct errand){
			.task.run = errand_runs, .poster = poster->number, .number = i};
		loop_post(runner.loop, &poster->errands[i].task);
	}
	return NULL;
}

/* Each runs once, on the loop's thread, in the order in which its thread posted. */
START_TEST(test_post)
{
	struct poster poster[POSTERS];
	unsigned count = scaled(20000);

	runner_start(&runner, kind_of(_i));
	for (unsigned i = 0; i < POSTERS; i++) {
		poster[i] = (struct poster){.number = i,
					    .count = count,
					    .errands = must_alloc(count * sizeof(struct errand))};
		ck_assert_int_eq(pthread_create(&poster[i].thread, NULL, post_all, &poster[i]), 0);
	}
	AWAIT(done_errands == POSTERS * count);
	for (unsigned i = 0; i < POSTERS; i++)
		pthread_join(poster[i].thread, NULL);
	settle(&runner);
	SEEN(done_errands == POSTERS * count && disorder == 0);
	/* One at a time, each of which must wake the loop. */
	for (unsigned i = 0; i < scaled(1000); i++) {
		struct errand errand = {.task.run = errand_runs, .number = count + i};

		loop_post(runner.loop, &errand.task);
		AWAIT(next_errand[0] == count + i + 1);
	}
	SEEN(disorder == 0);
	for (unsigned i = 0; i < POSTERS; i++)
		free(poster[i].errands);
	runner_stop(&runner);
}
END_TEST

struct chain {
	struct loop_task task; /* must be first */
	unsigned left;
	unsigned depth, deepest;
};

static void chain_runs(struct loop_task *task)
{
	struct chain *chain = (struct chain *)task;

	chain->depth++;
	if (chain->depth > chain->deepest)
		chain->deepest = chain->depth;
	if (chain->left > 1)
		loop_post(runner.loop, task);
	chain->depth--;
	EVENT(chain->left--);
}

/* A task posts itself: it runs later, not immediately, and others get their turn. */
START_TEST(test_post_itself)
{
	struct chain chain = {.task.run = chain_runs, .left = 1000};

	runner_start(&runner, kind_of(_i));
	loop_post(runner.loop, &chain.task);
	settle(&runner);
	AWAIT(chain.left == 0);
	ck_assert_uint_eq(chain.deepest, 1);
	runner_stop(&runner);
}
END_TEST

static void stops(struct loop_task *task)
{
	(void)task;
	loop_stop(runner.loop);
}

/* Tasks posted before the loop runs are not lost; and the loop may end at once. */
START_TEST(test_post_first)
{
	struct loop_task task = {.run = stops};
	struct errand errand = {.task.run = errand_runs};
	char why[128];

	runner.loop = loop_open(kind_of(_i), LOOP_MANY, why, sizeof(why));
	ck_assert_ptr_nonnull(runner.loop);
	runner.thread = pthread_self();
	loop_post(runner.loop, &errand.task);
	loop_post(runner.loop, &task);
	loop_run(runner.loop);
	ck_assert_uint_eq(done_errands, 1);
	ck_assert_uint_eq(disorder, 0);
	loop_close(runner.loop);
}
END_TEST

/* --- timers ------------------------------------------------------------------------ */

#define TIMERS 6

struct alarm {
	struct timer timer; /* must be first */
	unsigned ms;
	uint64_t started_ms;
	uint64_t expired_ms; /* 0: not */
	bool early;
};

static struct alarm alarms[TIMERS];
static unsigned expiries;

static void alarm_expired(struct timer *timer)
{
	struct alarm *alarm = (struct alarm *)timer;
	uint64_t now = loop_now_ms(runner.loop);

	EVENT(expiries++; alarm->expired_ms = now;
	      alarm->early |= now < alarm->started_ms + alarm->ms);
}

static void alarms_begin(void *argument)
{
	static const unsigned ms[TIMERS] = {40, 10, 30, 20, 1, 50};

	(void)argument;
	for (unsigned i = 0; i < TIMERS; i++) {
		alarms[i].ms = ms[i];
		alarms[i].started_ms = loop_now_ms(runner.loop);
		loop_timer_start(runner.loop, &alarms[i].timer, ms[i], alarm_expired);
	}
	timer_stop(&alarms[2].timer);
}

/*
 * An idle loop wakes up for them, never early, and runs them in the order of their due
 * times; those for which it wakes up late, at the same time, have no order.
 */
START_TEST(test_timers)
{
	runner_start(&runner, kind_of(_i));
	call(&runner, alarms_begin, NULL);
	AWAIT(expiries == TIMERS - 1);
	for (unsigned i = 0; i < TIMERS; i++) {
		ck_assert(!alarms[i].early);
		ck_assert_int_eq(alarms[i].expired_ms == 0, i == 2);
		for (unsigned j = 0; j < TIMERS; j++)
			ck_assert(i == 2 || j == 2 || alarms[i].ms >= alarms[j].ms ||
				  alarms[i].expired_ms <= alarms[j].expired_ms);
	}
	runner_stop(&runner);
}
END_TEST

/* Says each turn that something waits to be processed. */
static struct holder {
	struct loop_hook hook; /* must be first */
	struct timer timer;
	unsigned turns;	 /* since the timer was started */
	unsigned expiry; /* in that turn; 0: not yet */
} holder;

#define HOLD 20000u /* waits: more than there are in a millisecond */

static bool hold(struct loop_hook *hook)
{
	(void)hook;
	holder.turns++;
	loop_hold_timers(runner.loop, HOLD);
	return true;
}

static void holder_expired(struct timer *timer)
{
	(void)timer;
	EVENT(holder.expiry = holder.turns);
}

static void begin_to_hold(void *argument)
{
	(void)argument;
	holder = (struct holder){.hook.before_sleep = hold};
	loop_hook_add(runner.loop, &holder.hook);
	loop_timer_start(runner.loop, &holder.timer, 1, holder_expired);
}

/* Timers wait for what has come before, for a limited number of turns. */
START_TEST(test_held_timers)
{
	runner_start(&runner, kind_of(_i));
	call(&runner, begin_to_hold, NULL);
	AWAIT(holder.expiry);
	SEEN(holder.expiry > HOLD);
	runner_stop(&runner);
}
END_TEST

static struct timer far;

static void far_expired(struct timer *timer)
{
	(void)timer;
	ck_abort_msg("an hour has not passed");
}

static void far_begin(void *argument)
{
	(void)argument;
	loop_timer_start(runner.loop, &far, 3600000, far_expired);
}

/* A timer in the far future delays nothing else. */
START_TEST(test_far_timer)
{
	runner_start(&runner, kind_of(_i));
	call(&runner, far_begin, NULL);
	settle(&runner);
	call(&runner, alarms_begin, NULL);
	AWAIT(expiries == TIMERS - 1);
	runner_stop(&runner);
}
END_TEST

struct clocks {
	uint64_t ms, ns;
};

static void read_clocks(void *argument)
{
	struct clocks *clocks = argument;

	clocks->ms = loop_now_ms(runner.loop);
	clocks->ns = loop_now_ns(runner.loop);
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Monotonic, and of this turn: not older than the event that woke the loop. */
START_TEST(test_clocks)
{
	struct clocks clocks, before = {0};

	runner_start(&runner, kind_of(_i));
	for (unsigned i = 0; i < 100; i++) {
		settle(&runner);
		call(&runner, read_clocks, &clocks);
		ck_assert_uint_eq(clocks.ms, clocks.ns / 1000000);
		ck_assert_uint_ge(clocks.ns, before.ns);
		ck_assert_uint_le(clocks.ns, monotonic_ns());
		before = clocks;
	}
	runner_stop(&runner);
}
END_TEST

/* --- hooks -------------------------------------------------------------------------- */

struct asked {
	struct loop_hook hook; /* must be first */
	unsigned times, yes;
	bool post; /* returns true and posts a task */
	struct errand errand;
};

static bool asked_before_sleep(struct loop_hook *hook)
{
	struct asked *asked = (struct asked *)hook;
	bool work = asked->yes > 0;

	if (asked->post) {
		asked->post = false;
		asked->errand.task.run = errand_runs;
		loop_post(runner.loop, &asked->errand.task);
	}
	EVENT(asked->times++; asked->yes -= work);
	return work;
}

static struct asked hooks[3];

static void hooks_begin(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < 3; i++) {
		hooks[i].hook.before_sleep = asked_before_sleep;
		loop_hook_add(runner.loop, &hooks[i].hook);
	}
	hooks[0].yes = 5;
	hooks[1].yes = 300;
}

static void yes_again(void *argument)
{
	(void)argument;
	EVENT(hooks[2].yes = 100);
	hooks[0].post = true;
}

/* Between two rounds. */
static void compare_hooks(void *argument)
{
	*(bool *)argument = hooks[0].times == hooks[1].times && hooks[1].times == hooks[2].times;
}

/* All are called before each sleep, repeatedly while any has work. */
START_TEST(test_hooks)
{
	bool same = false;
	unsigned before;

	runner_start(&runner, kind_of(_i));
	call(&runner, hooks_begin, NULL);
	/* No other event wakes it; it continues because of their results. */
	AWAIT(hooks[1].yes == 0 && hooks[1].times > 300);
	call(&runner, compare_hooks, &same);
	ck_assert(same);
	/* Then it sleeps: one turn for each event, no others. */
	settle(&runner);
	pthread_mutex_lock(&event_lock);
	before = hooks[0].times;
	pthread_mutex_unlock(&event_lock);
	settle(&runner);
	SEEN(hooks[0].times > before && hooks[0].times < before + 30);
	/* A task that a hook posts runs during the sleep, or instead of it. */
	call(&runner, yes_again, NULL);
	AWAIT(hooks[2].yes == 0 && done_errands == 1);
	runner_stop(&runner);
}
END_TEST

/* A hook may end the loop. */
static bool stops_instead(struct loop_hook *hook)
{
	(void)hook;
	loop_stop(runner.loop);
	return false;
}

START_TEST(test_hook_stops)
{
	struct loop_hook hook = {.before_sleep = stops_instead};
	char why[128];

	runner.loop = loop_open(kind_of(_i), LOOP_MANY, why, sizeof(why));
	ck_assert_ptr_nonnull(runner.loop);
	loop_hook_add(runner.loop, &hook);
	loop_run(runner.loop);
	loop_close(runner.loop);
}
END_TEST

/* Loops are independent of each other. */
START_TEST(test_two_loops)
{
	struct runner two[2];

	for (unsigned i = 0; i < 2; i++)
		runner_start(&two[i], kind_of(_i));
	for (unsigned i = 0; i < 20; i++)
		settle(&two[i % 2]);
	runner_stop(&two[0]);
	settle(&two[1]);
	runner_stop(&two[1]);
}
END_TEST

struct notified {
	struct loop_notice notice;
	int reason;
};

static _Atomic bool has_notified;

static void *notify(void *context)
{
	struct notified *notified = context;

	notified->reason = 7;
	loop_notify(NULL, &notified->notice);
	/* Orders nothing: the notice alone must. */
	atomic_store_explicit(&has_notified, true, memory_order_relaxed);
	return NULL;
}

/* The reason of a notice that was posted already is seen by its task: TSan looks. */
START_TEST(test_notice_posted_already)
{
	struct notified notified = {.notice = {.posted = true}};
	pthread_t thread;

	atomic_store(&has_notified, false);
	ck_assert_int_eq(pthread_create(&thread, NULL, notify, &notified), 0);
	while (!atomic_load_explicit(&has_notified, memory_order_relaxed))
		sched_yield();
	loop_notice_begin(&notified.notice);
	ck_assert_int_eq(notified.reason, 7);
	pthread_join(thread, NULL);
}
END_TEST

static void fill(TCase *tcase)
{
	int first = first_kind();

	tcase_add_loop_test(tcase, test_post, first, KINDS);
	tcase_add_loop_test(tcase, test_post_itself, first, KINDS);
	tcase_add_loop_test(tcase, test_post_first, first, KINDS);
	tcase_add_loop_test(tcase, test_timers, first, KINDS);
	tcase_add_loop_test(tcase, test_held_timers, first, KINDS);
	tcase_add_loop_test(tcase, test_far_timer, first, KINDS);
	tcase_add_loop_test(tcase, test_clocks, first, KINDS);
	tcase_add_loop_test(tcase, test_hooks, first, KINDS);
	tcase_add_loop_test(tcase, test_hook_stops, first, KINDS);
	tcase_add_loop_test(tcase, test_two_loops, first, KINDS);
	tcase_add_test(tcase, test_notice_posted_already);
}

RUN_SUITE("loop-tasks", fill)
