/* SPDX-License-Identifier: MIT */
/*
 * test-thread-pool.c - unit tests of thread-pool.c: work on the pool's threads,
 * completed on the loop's, whatever blocks meanwhile; closing with pending jobs.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "loop-fixture.h"
#include "suite.h"

#include "event/thread-pool.h"

#define JOBS 2000
#define THREADS 3

struct chore {
	struct job job; /* must be first */
	struct runner *runner;
	unsigned number;
	int gate;	/* work waits until it is closed; -1: none */
	bool elsewhere; /* ran on another thread than the loop's */
	bool home;	/* completed on the loop's */
	unsigned worked, done;
};

static struct runner runner;
static struct chore chores[JOBS];
static unsigned order[JOBS], started, finished;

static void work(struct job *job)
{
	struct chore *chore = (struct chore *)job;
	char byte;

	EVENT(order[started++] = chore->number);
	if (chore->gate >= 0)
		(void)!read(chore->gate, &byte, 1);
	chore->elsewhere = !pthread_equal(pthread_self(), chore->runner->thread);
	chore->worked++;
}

static void done(struct job *job)
{
	struct chore *chore = (struct chore *)job;

	/* Only the job's completion orders this read after the writes of work(). */
	chore->home = pthread_equal(pthread_self(), chore->runner->thread);
	EVENT(chore->done += chore->worked; finished++);
}

static struct job *chore(unsigned number, int gate, struct runner *to)
{
	chores[number] = (struct chore){.job = {.work = work, .done = done, .loop = to->loop},
					.runner = to,
					.number = number,
					.gate = gate};
	return &chores[number].job;
}

/* One thread: one job after the other, in the order of submission. */
START_TEST(test_order)
{
	struct thread_pool *thread_pool = thread_pool_open(1, 1);
	int gate[2];

	ck_assert_ptr_nonnull(thread_pool);
	ck_assert_int_eq(pipe2(gate, O_CLOEXEC), 0);
	runner_start(&runner, any_kind());
	thread_pool_submit(thread_pool, chore(0, gate[0], &runner));
	for (unsigned i = 1; i < 100; i++)
		thread_pool_submit(thread_pool, chore(i, -1, &runner));
	AWAIT(started == 1);
	settle(&runner);
	/* The loop continues while a helper is blocked, and the other jobs wait. */
	SEEN(finished == 0 && started == 1);
	close(gate[1]);
	AWAIT(finished == 100);
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_uint_eq(order[i], i);
		ck_assert(chores[i].elsewhere);
		ck_assert(chores[i].home);
		ck_assert_uint_eq(chores[i].done, 1);
	}
	/* First, as its threads may still be about to wake the loop. */
	thread_pool_close(thread_pool);
	runner_stop(&runner);
	close(gate[0]);
}
END_TEST

/* All but one thread are blocked: that one does all work. */
START_TEST(test_blocked)
{
	struct thread_pool *thread_pool = thread_pool_open(THREADS, THREADS);
	int gate[2];

	ck_assert_ptr_nonnull(thread_pool);
	ck_assert_int_eq(pipe2(gate, O_CLOEXEC), 0);
	runner_start(&runner, any_kind());
	for (unsigned i = 0; i < THREADS - 1; i++)
		thread_pool_submit(thread_pool, chore(i, gate[0], &runner));
	AWAIT(started == THREADS - 1);
	for (unsigned i = THREADS; i < 50; i++)
		thread_pool_submit(thread_pool, chore(i, -1, &runner));
	AWAIT(finished == 50 - THREADS);
	close(gate[1]);
	AWAIT(finished == 50 - 1);
	/* First, as its threads may still be about to wake the loop. */
	thread_pool_close(thread_pool);
	runner_stop(&runner);
	close(gate[0]);
}
END_TEST

/* Without threads the work is done on the calling thread, and completed as by a helper. */
static void submit_own(void *argument)
{
	struct thread_pool *thread_pool = argument;

	for (unsigned i = 0; i < 3; i++)
		thread_pool_submit(thread_pool, chore(i, -1, &runner));
	EVENT(finished += 100);
}

START_TEST(test_no_threads)
{
	struct thread_pool *thread_pool = thread_pool_open(0, 0);

	ck_assert_ptr_nonnull(thread_pool);
	runner_start(&runner, any_kind());
	call(&runner, submit_own, thread_pool);
	AWAIT(finished == 103);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(order[i], i);
		ck_assert(!chores[i].elsewhere && chores[i].home);
		ck_assert_uint_eq(chores[i].done, 1);
	}
	thread_pool_close(thread_pool);
	runner_stop(&runner);
}
END_TEST

struct share {
	struct thread_pool *thread_pool;
	struct runner *runner;
	unsigned from, to;
};

static void submit_share(void *argument)
{
	struct share *share = argument;

	for (unsigned i = share->from; i < share->to; i++)
		thread_pool_submit(share->thread_pool, chore(i, -1, share->runner));
}

/* Many jobs of two loops: each runs once, and completes on its own loop. */
START_TEST(test_two_loops)
{
	struct thread_pool *thread_pool = thread_pool_open(THREADS, THREADS);
	unsigned count = scaled(JOBS / 2);
	struct share shares[2];
	struct runner two[2];

	ck_assert_ptr_nonnull(thread_pool);
	for (unsigned i = 0; i < 2; i++) {
		runner_start(&two[i], any_kind());
		shares[i] = (struct share){thread_pool, &two[i], i * count, (i + 1) * count};
	}
	for (unsigned i = 0; i < 2; i++)
		call(&two[i], submit_share, &shares[i]);
	AWAIT(finished == 2 * count);
	for (unsigned i = 0; i < 2 * count; i++) {
		ck_assert_uint_eq(chores[i].done, 1);
		ck_assert(chores[i].elsewhere && chores[i].home);
	}
	thread_pool_close(thread_pool);
	for (unsigned i = 0; i < 2; i++)
		runner_stop(&two[i]);
}
END_TEST

struct closing {
	pthread_t thread;
	struct thread_pool *thread_pool;
};

static void *close_helpers(void *argument)
{
	struct closing *closing = argument;

	thread_pool_close(closing->thread_pool);
	return NULL;
}

/* Closing waits for running jobs and drops waiting ones. */
START_TEST(test_close)
{
	struct closing closing = {.thread_pool = thread_pool_open(1, 1)};
	int gate[2];

	ck_assert_ptr_nonnull(closing.thread_pool);
	ck_assert_int_eq(pipe2(gate, O_CLOEXEC), 0);
	runner_start(&runner, any_kind());
	thread_pool_submit(closing.thread_pool, chore(0, gate[0], &runner));
	AWAIT(started == 1);
	for (unsigned i = 1; i < 20; i++)
		thread_pool_submit(closing.thread_pool, chore(i, gate[0], &runner));
	ck_assert_int_eq(pthread_create(&closing.thread, NULL, close_helpers, &closing), 0);
	settle(&runner);
	SEEN(finished == 0);
	/* One byte: enough for one job. */
	ck_assert_int_eq(write(gate[1], "x", 1), 1);
	AWAIT(finished >= 1);
	close(gate[1]);
	pthread_join(closing.thread, NULL);
	settle(&runner);
	SEEN(started == finished && chores[0].done == 1);
	runner_stop(&runner);
	close(gate[0]);
}
END_TEST

START_TEST(test_idle)
{
	for (unsigned threads = 1; threads < 10; threads++) {
		struct thread_pool *thread_pool = thread_pool_open(threads, threads);

		ck_assert_ptr_nonnull(thread_pool);
		thread_pool_close(thread_pool);
	}
	thread_pool_close(NULL);
}
END_TEST

static sigset_t mask;

static void look_at_mask(struct job *job)
{
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	work(job);
}

/* Helpers block all signals, and the caller's mask is unchanged. */
START_TEST(test_signals)
{
	struct thread_pool *thread_pool;
	sigset_t own;

	runner_start(&runner, any_kind());
	thread_pool = thread_pool_open(1, 1);
	ck_assert_ptr_nonnull(thread_pool);
	pthread_sigmask(SIG_SETMASK, NULL, &own);
	ck_assert_int_eq(sigismember(&own, SIGTERM), 0);
	chore(0, -1, &runner)->work = look_at_mask;
	thread_pool_submit(thread_pool, &chores[0].job);
	AWAIT(finished == 1);
	ck_assert_int_eq(sigismember(&mask, SIGTERM), 1);
	ck_assert_int_eq(sigismember(&mask, SIGINT), 1);
	ck_assert_int_eq(sigismember(&mask, SIGHUP), 1);
	/* First, as its threads may still be about to wake the loop. */
	thread_pool_close(thread_pool);
	runner_stop(&runner);
}
END_TEST

static void set_up(void)
{
	started = finished = 0;
}

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, NULL);
	tcase_add_test(tcase, test_order);
	tcase_add_test(tcase, test_blocked);
	tcase_add_test(tcase, test_no_threads);
	tcase_add_test(tcase, test_two_loops);
	tcase_add_test(tcase, test_close);
	tcase_add_test(tcase, test_idle);
	tcase_add_test(tcase, test_signals);
}

RUN_SUITE("thread-pool", fill)
