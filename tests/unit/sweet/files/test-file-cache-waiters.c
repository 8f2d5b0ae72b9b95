/* SPDX-License-Identifier: MIT */
/*
 * test-file-cache-waiters.c - unit tests of file-cache.c: requests that wait for one file, on two
 * loops.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "event/loop.h"
#include "event/thread-pool.h"
#include "files/file-cache.h"

#include "file-cache-fixture.h"
#include "loop-fixture.h"
#include "suite.h"
#include "turn-fixture.h"

struct gate {
	struct job job; /* must be first */
	int ends[2];
};

static void gate_waits(struct job *job)
{
	char byte;

	(void)!read(((struct gate *)job)->ends[0], &byte, 1);
}

static void gate_done(struct job *job)
{
	(void)job;
}

/* Blocks the only helper until the gate is opened. */
static void gate_shut(struct gate *gate)
{
	*gate = (struct gate){
		.job = {.work = gate_waits, .done = gate_done, .loop = runners[0].loop}};
	ck_assert_int_eq(pipe2(gate->ends, O_CLOEXEC), 0);
	thread_pool_submit(thread_pool, &gate->job);
}

#define ASKERS 20

/* A file is read once, however many requests wait for it; each gets a hold of its own. */
START_TEST(test_waiters)
{
	struct asker askers[ASKERS], missing[ASKERS];
	struct NC_stat stat;
	struct gate gate;
	size_t id;

	open_all(4 << 20, 1 << 20, 1, 0);
	put("file", 'w', 50000);
	gate_shut(&gate);
	for (unsigned i = 0; i < ASKERS; i++) {
		begin_asking(&askers[i], i % LOOPS, "/file");
		begin_asking(&missing[i], i % LOOPS, "/missing");
	}
	settle(&runners[0]);
	settle(&runners[1]);
	for (unsigned i = 0; i < ASKERS; i++)
		SEEN(!askers[i].done && !missing[i].done);
	close(gate.ends[1]);
	for (unsigned i = 0; i < ASKERS; i++)
		AWAIT(askers[i].done && missing[i].done);
	ck_assert_uint_eq(inserts(), 1);
	id = file_cache_view(askers[0].waiter.result.entry)->id;
	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.holds, ASKERS);
	for (unsigned i = 0; i < ASKERS; i++) {
		ck_assert(!askers[i].elsewhere && !askers[i].at_once);
		ck_assert_int_eq(askers[i].waiter.result.error, 0);
		ck_assert_int_eq(missing[i].waiter.result.error, -ENOENT);
		ck_assert_ptr_eq(askers[i].waiter.result.entry, askers[0].waiter.result.entry);
	}
	/* The file changes; the last request still has the old content. */
	put("file", 'x', 50000);
	(void)check_file(0, "/file", 'x', 50000);
	for (unsigned i = 0; i < ASKERS; i++) {
		ck_assert(uniform(file_cache_view(askers[i].waiter.result.entry), 'w'));
		give_back(i % LOOPS, &askers[i]);
	}
	/* And it was destroyed with the last one. */
	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)), -1);
	ck_assert_int_eq(errno, ENOENT);
	close(gate.ends[0]);
	close_all();
}
END_TEST

static void leave(void *argument)
{
	file_cache_leave(&((struct asker *)argument)->waiter);
}

/* If all waiters have left, the file is not read, and each of them is told so. */
START_TEST(test_left)
{
	struct asker askers[4], stays;
	struct thread_pool_stat stat;
	struct gate gate;

	/* Without the cache of paths, each request looks up for itself. */
	open_with(4 << 20, (struct file_cache_options){.max_unit = 1 << 20, .no_paths = _i}, 1);
	put("file", 'w', 50000);
	put("other", 'o', 50000);
	gate_shut(&gate);
	for (unsigned i = 0; i < 4; i++)
		begin_asking(&askers[i], i % LOOPS, "/file");
	begin_asking(&stays, 0, "/other");
	for (unsigned i = 0; i < 4; i++) {
		call(&runners[i % LOOPS], leave, &askers[i]);
		settle(&runners[0]);
		SEEN(askers[0].done == (_i || i == 3));
	}
	for (unsigned i = 0; i < 4; i++) {
		AWAIT(askers[i].done);
		ck_assert_int_eq(askers[i].waiter.result.error, -ECANCELED);
		ck_assert(!askers[i].elsewhere);
	}
	SEEN(!stays.done);
	close(gate.ends[1]);
	AWAIT(stays.done);
	ck_assert_int_eq(stays.waiter.result.error, 0);
	give_back(0, &stays);
	thread_pool_stat(thread_pool, &stat);
	ck_assert_uint_eq(stat.cancelled, _i ? 4 : 1);
	ck_assert_uint_eq(inserts(), 1);
	/* The next request gets the file. */
	(void)check_file(1, "/file", 'w', 50000);
	close(gate.ends[0]);
	close_all();
}
END_TEST

#define CROWD (5 * LOOP_QUEUED_MAX)

static struct asker crowd[CROWD];
static struct turn turns[LOOPS];
static unsigned disorder;
/*
 * How it goes: there is no such file; some leave meanwhile; each reads the file for itself; the unit is
 * destroyed, or the file replaced and asked for, when the first has it.
 */
static enum { LOADED, MISSING, SOME_LEAVE, NO_CONTENTS, DESTROYED, REPLACED, CASES } how;
static struct asker after;

/* On the loop of the first. */
static void first_arrived(struct file_cache_waiter *waiter)
{
	if (how == DESTROYED)
		ck_assert_int_eq(NC_destroy(NULL, file_cache_view(waiter->result.entry)->id), 0);
	if (how != REPLACED)
		return;
	put("new", 'n', 6000);
	ck_assert_int_eq(rename(at("new"), at("file")), 0);
	after = (struct asker){.waiter = {.arrived = arrived, .loop = waiter->loop},
			       .path = "/file"};
	ask(&after);
}

static void one_arrived(struct file_cache_waiter *waiter)
{
	unsigned loop = waiter->loop != runners[0].loop;

	EVENT(disorder += &crowd[turns[loop].all * LOOPS + loop].waiter != waiter);
	if (waiter == &crowd[0].waiter)
		first_arrived(waiter);
	turn_count(&turns[loop]);
}

/* Many that wait for one file get it in several turns of their loops, in their order. */
START_TEST(test_crowd)
{
	struct gate gate;

	how = (unsigned)_i;
	open_with(
		4 << 20,
		(struct file_cache_options){.max_unit = 1 << 20, .no_contents = how == NO_CONTENTS},
		1);
	put("file", 'w', 5000);
	gate_shut(&gate);
	for (unsigned i = 0; i < LOOPS; i++)
		turn_watch(&turns[i], &runners[i]);
	for (unsigned i = 0; i < CROWD; i++) {
		crowd[i] = (struct asker){
			.waiter = {.arrived = one_arrived, .loop = runners[i % LOOPS].loop},
			.path = how == MISSING ? "/missing" : "/file"};
		call(&runners[i % LOOPS], ask, &crowd[i]);
	}
	for (unsigned i = 0; how == SOME_LEAVE && i < CROWD; i += 3)
		call(&runners[i % LOOPS], leave, &crowd[i]);
	SEEN(turns[0].all + turns[1].all == 0);
	close(gate.ends[1]);
	AWAIT(turns[0].all + turns[1].all == CROWD);
	SEEN(turns[0].most <= LOOP_QUEUED_MAX && turns[1].most <= LOOP_QUEUED_MAX);
	SEEN(disorder == 0 || how == DESTROYED); /* these ask again */
	for (unsigned i = 0; i < CROWD; i++) {
		ck_assert_int_eq(crowd[i].waiter.result.error, how == MISSING ? -ENOENT : 0);
		if (how != MISSING)
			give_back(i % LOOPS, &crowd[i]);
	}
	if (how == REPLACED) {
		AWAIT(after.done);
		ck_assert(uniform(file_cache_view(after.waiter.result.entry), 'n'));
		give_back(0, &after);
	}
	close(gate.ends[0]);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_waiters);
	tcase_add_loop_test(tcase, test_crowd, 0, CASES);
	tcase_add_loop_test(tcase, test_left, 0, 2);
}

RUN_SUITE("file-cache-waiters", fill)
