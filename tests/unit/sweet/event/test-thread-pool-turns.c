/* SPDX-License-Identifier: MIT */
/*
 * test-thread-pool-turns.c - unit tests of thread-pool.c: turns of clients and of classes, the share
 * of slow jobs, and jobs that are cancelled.
 *
 * A gate keeps threads busy until all jobs are queued, so that the order is known.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "loop-fixture.h"
#include "suite.h"
#include "turn-fixture.h"

#include "event/client-limit.h"
#include "event/loop.h"
#include "event/thread-pool.h"

#define JOBS 40u

struct chore {
	struct job job; /* must be first */
	unsigned number;
	int gate; /* work waits until it is closed; -1: none */
	bool saw; /* that it is cancelled */
	unsigned worked, done;
};

static struct runner runner;
static struct thread_pool *thread_pool;
static struct chore chores[JOBS];
static unsigned order[JOBS], started, finished;
static int gate[2];

static void work(struct job *job)
{
	struct chore *chore = (struct chore *)job;
	char byte;

	EVENT(order[started++] = chore->number);
	if (chore->gate >= 0)
		(void)!read(chore->gate, &byte, 1);
	chore->saw = job_cancelled(job);
	chore->worked++;
}

static void done(struct job *job)
{
	struct chore *chore = (struct chore *)job;

	EVENT(chore->done++; finished++; ck_assert(job->worked == (chore->worked > 0)));
}

static void submit(unsigned number, enum job_class class, char client, int wait)
{
	chores[number] = (struct chore){.job = {.work = work,
						.done = done,
						.loop = runner.loop,
						.class = class,
						.client = {.family = 2, .net = {(uint8_t)client}}},
					.number = number,
					.gate = wait};
	thread_pool_submit(thread_pool, &chores[number].job);
}

static void begin(unsigned threads, unsigned slow)
{
	thread_pool = thread_pool_open(threads, slow);
	ck_assert_ptr_nonnull(thread_pool);
	ck_assert_int_eq(pipe2(gate, O_CLOEXEC), 0);
	runner_start(&runner, any_kind());
}

static void end(void)
{
	/* First, as its threads may still be about to wake the loop. */
	thread_pool_close(thread_pool);
	runner_stop(&runner);
	close(gate[0]);
}

static void expect_order(const unsigned *wanted, unsigned count)
{
	AWAIT(finished == count);
	for (unsigned i = 0; i < count; i++)
		ck_assert_msg(order[i] == wanted[i], "job %u at place %u", order[i], i);
}

/* A client with many jobs does not delay the one of another; its own keep their order. */
START_TEST(test_clients)
{
	static const unsigned wanted[] = {0, 1, 6, 8, 2, 7, 3, 4, 5};

	begin(1, 1);
	submit(0, JOB_QUICK, 'a', gate[0]);
	AWAIT(started == 1);
	for (unsigned i = 1; i < 6; i++)
		submit(i, JOB_QUICK, 'a', -1);
	submit(6, JOB_QUICK, 'b', -1);
	submit(7, JOB_QUICK, 'b', -1);
	submit(8, JOB_QUICK, 'c', -1);
	close(gate[1]);
	expect_order(wanted, 9);
	end();
}
END_TEST

/* Also if there is one thread only, a class does not wait for the other's whole queue. */
START_TEST(test_classes)
{
	static const unsigned wanted[] = {0, 1, 5, 2, 6, 3, 4};

	begin(1, 1);
	submit(0, JOB_QUICK, 'a', gate[0]);
	AWAIT(started == 1);
	for (unsigned i = 1; i < 5; i++)
		submit(i, JOB_SLOW, 'a', -1);
	submit(5, JOB_QUICK, 'a', -1);
	submit(6, JOB_QUICK, 'a', -1);
	close(gate[1]);
	expect_order(wanted, 7);
	end();
}
END_TEST

/* Slow jobs that block keep no more threads than their share, even those of many clients. */
START_TEST(test_share)
{
	struct thread_pool_stat stat;

	begin(3, 2);
	for (unsigned i = 0; i < 10; i++)
		submit(i, JOB_SLOW, (char)i, gate[0]);
	AWAIT(started == 2);
	for (unsigned i = 10; i < 20; i++)
		submit(i, JOB_QUICK, 'a', -1);
	AWAIT(finished == 10);
	SEEN(started == 12);
	thread_pool_stat(thread_pool, &stat);
	ck_assert_uint_eq(stat.waiting[JOB_SLOW], 8);
	ck_assert_uint_eq(stat.run[JOB_SLOW], 2);
	ck_assert_uint_eq(stat.run[JOB_QUICK], 10);
	close(gate[1]);
	AWAIT(finished == 20);
	end();
}
END_TEST

static void cancel(void *argument)
{
	thread_pool_cancel(argument);
	thread_pool_cancel(argument);
}

/* A queued job is not run, a running one sees it; each is done once. */
START_TEST(test_cancel)
{
	struct thread_pool_stat stat;

	begin(1, 1);
	submit(0, JOB_SLOW, 'a', gate[0]);
	AWAIT(started == 1);
	for (unsigned i = 1; i < 30; i++)
		submit(i, i % 2 ? JOB_SLOW : JOB_QUICK, (char)(i % 3), -1);
	for (unsigned i = 0; i < 30; i++)
		if (i != 7)
			call(&runner, cancel, &chores[i].job);
	AWAIT(finished == 28);
	SEEN(started == 1 && !chores[0].done && !chores[7].done);
	close(gate[1]);
	AWAIT(finished == 30);
	SEEN(started == 2 && order[1] == 7);
	for (unsigned i = 0; i < 30; i++)
		ck_assert_uint_eq(chores[i].done, 1);
	ck_assert(chores[0].saw && !chores[7].saw);
	thread_pool_stat(thread_pool, &stat);
	ck_assert_uint_eq(stat.cancelled, 28);
	ck_assert_uint_eq(stat.waiting[JOB_SLOW] + stat.waiting[JOB_QUICK], 0);
	/* It may be submitted again. */
	call(&runner, cancel, &chores[7].job);
	submit(1, JOB_QUICK, 'a', -1);
	AWAIT(finished == 31);
	ck_assert_uint_eq(chores[1].worked, 1);
	end();
}
END_TEST

static void defer(void *argument)
{
	thread_pool_defer(argument);
}

/* Deferred jobs run after all others, within the share of slow ones; and can be cancelled. */
START_TEST(test_defer)
{
	static const unsigned wanted[] = {0, 4, 5, 1, 3};
	struct thread_pool_stat stat;

	begin(2, 1);
	submit(0, JOB_SLOW, 'a', gate[0]);
	AWAIT(started == 1);
	for (unsigned i = 1; i < 4; i++)
		submit(i, JOB_SLOW, 'a', -1);
	for (unsigned i = 0; i < 4; i++)
		call(&runner, defer, &chores[i].job);
	submit(4, JOB_SLOW, 'a', -1);
	submit(5, JOB_SLOW, 'a', -1);
	call(&runner, cancel, &chores[2].job);
	thread_pool_stat(thread_pool, &stat);
	ck_assert_uint_eq(stat.waiting[JOB_SLOW], 4);
	/* The other thread has nothing to do: the share is used up. */
	AWAIT(finished == 1 && chores[2].done);
	SEEN(started == 1);
	close(gate[1]);
	AWAIT(finished == 6);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_msg(order[i] == wanted[i], "job %u at place %u", order[i], i);
	ck_assert_uint_eq(chores[2].worked, 0);
	end();
}
END_TEST

/* At the end of the server, jobs are dropped; then what has them is closed, and cancels them. */
START_TEST(test_cancel_after_close)
{
	begin(1, 1);
	submit(0, JOB_QUICK, 'a', -1);
	AWAIT(finished == 1);
	submit(1, JOB_QUICK, 'a', gate[0]);
	AWAIT(started == 2);
	for (unsigned i = 2; i < 10; i++)
		submit(i, JOB_SLOW, (char)i, gate[0]);
	close(gate[1]);
	thread_pool_close(thread_pool);
	for (unsigned i = 0; i < 10; i++)
		thread_pool_cancel(&chores[i].job);
	settle(&runner);
	runner_stop(&runner);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_uint_eq(chores[i].done, chores[i].worked);
	close(gate[0]);
}
END_TEST

static void submit_and_cancel(void *argument)
{
	(void)argument;
	submit(0, JOB_SLOW, 'a', -1);
	thread_pool_cancel(&chores[0].job);
}

START_TEST(test_no_threads)
{
	begin(0, 0);
	call(&runner, submit_and_cancel, NULL);
	AWAIT(finished == 1);
	ck_assert_uint_eq(chores[0].worked, 1);
	close(gate[1]);
	end();
}
END_TEST

static void set_up(void)
{
	started = finished = 0;
	memset(chores, 0, sizeof(chores));
}

#define CROWD (4u * LOOP_QUEUED_MAX)

static struct job crowd[CROWD];
static struct turn turn;
static unsigned worked;

static void counts_work(struct job *job)
{
	(void)job;
	EVENT(worked++);
}

static void counts_done(struct job *job)
{
	(void)job;
	turn_count(&turn);
}

/* The loop is busy until all jobs are done. */
static void submit_crowd(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < CROWD; i++) {
		crowd[i] =
			(struct job){.work = counts_work, .done = counts_done, .loop = runner.loop};
		thread_pool_submit(thread_pool, &crowd[i]);
	}
	AWAIT(worked == CROWD);
}

/* Many results at once come in several turns of the loop. */
START_TEST(test_many_results)
{
	begin(2, 1);
	turn_watch(&turn, &runner);
	call(&runner, submit_crowd, NULL);
	AWAIT(turn.all == CROWD);
	SEEN(turn.most <= LOOP_QUEUED_MAX);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_many_results);
	tcase_add_checked_fixture(tcase, set_up, NULL);
	tcase_add_test(tcase, test_clients);
	tcase_add_test(tcase, test_classes);
	tcase_add_test(tcase, test_share);
	tcase_add_test(tcase, test_cancel);
	tcase_add_test(tcase, test_defer);
	tcase_add_test(tcase, test_cancel_after_close);
	tcase_add_test(tcase, test_no_threads);
}

RUN_SUITE("thread-pool-turns", fill)
