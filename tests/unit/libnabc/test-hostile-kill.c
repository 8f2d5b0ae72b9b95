/* SPDX-License-Identifier: MIT */
/*
 * test-hostile-kill.c - members that are killed: at random instants of a busy life,
 * and after the k-th instruction of insert, grant and destroy, for each k.  After each
 * death the owner has as many descriptors and bytes in use and as many units and
 * records as before, what it held is complete, and every valid id has the right bytes.
 */
#include <errno.h>
#include <limits.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/registry.h"
#include "base/hash-table.h"
#include "base/id.h"
#include "cache/grant.h"
#include "cache/index.h"
#include "membership/handle.h"
#include "store/pool.h"
#include "store/unit.h"

#include "hostile-fixture.h"
#include "nabc-fixture.h"
#include "process-fixture.h"
#include "suite.h"
#include "unit-holds.h"

#define MEMBER 4001
#define SIZE ((size_t)4096)

static const struct NC_cache_options options =
	NC_CACHE_OPTIONS_INIT(.memory = 16 * MIB, .member_size = 256 << 10,
			      .flags = NC_CACHE_NO_URING);

/* --- what must be unchanged ---------------------------------------------------------- */

static struct {
	unsigned descriptors;
	size_t records;
	struct NC_cache_stat stat;
} before;

static size_t records(void)
{
	size_t count;

	pthread_mutex_lock(&cache->index.grants.lock);
	count = cache->index.grants.records.count;
	pthread_mutex_unlock(&cache->index.grants.lock);
	return count;
}

static void note_all(void)
{
	before.descriptors = open_descriptors();
	before.records = records();
	ck_assert_int_eq(NC_cache_stat(cache, &before.stat, sizeof(before.stat)), 0);
}

/*
 * Checks that sealed units of dead members, which stay until they are destroyed, are
 * complete; destroys them.
 */
static void destroy_what_is_left(void)
{
	struct NC_stat units[16];
	size_t cursor = 0;
	int count;

	do {
		count = NC_list(cache, &cursor, units, sizeof(*units), 16);
		ck_assert_int_ge(count, 0);
		for (int i = 0; i < count; i++) {
			ck_assert_int_eq(units[i].kind, NC_KIND_SEALED);
			ck_assert_uint_eq(units[i].member, 0);
			ck_assert(holds_pattern(cache, units[i].id, units[i].size, units[i].size));
			ck_assert_int_eq(NC_destroy(NULL, units[i].id), 0);
		}
	} while (cursor);
}

static void check_all(const char *where, unsigned long k)
{
	struct NC_cache_stat stat;

	destroy_what_is_left();
	serve_until_open(before.descriptors);
	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_msg(stat.members == 0 && stat.used == before.stat.used &&
			      stat.units == before.stat.units && records() == before.records &&
			      open_descriptors() == before.descriptors,
		      "%s, %lu: %lu members, %lu bytes, %lu units, %zu records, %u descriptors",
		      where, k, stat.members, stat.used, stat.units, records(), open_descriptors());
}

/* Returns whether a unit of a living or dead member, which the owner holds, is complete. */
static bool is_whole(size_t id, size_t size)
{
	size_t run;
	const void *data = data_of_id(cache, id, 0, &run);

	return data && run == size && pattern_match(data, size, 0, size) == size;
}

/* --- at random instants ----------------------------------------------------------------- */

/* Units of all kinds, created, granted, reported and destroyed, forever. */
static int live(void)
{
	NC_cache *in = NC_cache_attach(path, &(struct NC_attach_options)NC_ATTACH_OPTIONS_INIT());
	uint64_t state = (uint64_t)getpid() * 7919;
	size_t ids[8] = {0};

	CHILD(in);
	for (;;) {
		unsigned at = (unsigned)(random_next(&state) % 8);
		size_t size = random_next(&state) % 9000 + 1, told[2];

		if (ids[at])
			(void)NC_destroy(in, ids[at]);
		ids[at] = child_insert(in, size, size,
				       random_next(&state) % 3 ? NC_KIND_RECYCLED : NC_KIND_SEALED);
		if (ids[at] && random_next(&state) % 4 == 0)
			(void)NC_grant(in, ids[at], NC_USER, 4999);
		if (ids[at] && random_next(&state) % 8 == 0)
			(void)NC_revoke(in, ids[at], NC_USER, 4999);
		told[0] = ids[at];
		told[1] = size;
		if (ids[at])
			(void)!send(TALK, told, sizeof(told), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

#define HELD_MAX 8u

/* Holds reported units, as a server would, for about that long. */
static unsigned hold_some(const struct member *member, size_t held[][2], uint64_t *state)
{
	unsigned count = 0, turns = (unsigned)(random_next(state) % 60);
	size_t told[2];

	while (turns--) {
		struct pollfd wait[2] = {{.fd = member->talk, .events = POLLIN},
					 {.fd = NC_cache_fd(cache), .events = POLLIN}};

		(void)poll(wait, 2, 1);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
		if (recv(member->talk, told, sizeof(told), MSG_DONTWAIT) != sizeof(told))
			continue;
		/* It may be destroyed by now, but its id never means another unit. */
		if (hold_id(NULL, told[0]) < 0) {
			ck_assert_int_eq(errno, ENOENT);
			continue;
		}
		ck_assert(is_whole(told[0], told[1]));
		if (count == HELD_MAX) {
			ck_assert_int_eq(release_id(NULL, told[0]), 0);
			continue;
		}
		held[count][0] = told[0];
		held[count++][1] = told[1];
	}
	return count;
}

START_TEST(test_random)
{
	uint64_t state = 4711;
	unsigned deaths = scaled(300), seen = 0;

	open_hostile(&options);
	note_all();
	for (unsigned i = 0; i < deaths; i++) {
		struct member member = start_member(live, MEMBER);
		size_t held[HELD_MAX][2];
		unsigned count;

		serve_until(member.talk);
		count = hold_some(&member, held, &state);
		seen += count;
		end_child(member.pid);
		for (unsigned k = 0; k < count; k++)
			ck_assert(is_whole(held[k][0], held[k][1]));
		serve_until_alone();
		close(member.talk);
		for (unsigned k = 0; k < count; k++) {
			ck_assert(is_whole(held[k][0], held[k][1]));
			ck_assert_int_eq(release_id(NULL, held[k][0]), 0);
			/* A unit in its segment is gone; a sealed one stays. */
			if (hold_id(NULL, held[k][0]) < 0)
				continue;
			ck_assert_uint_eq(nc_id_member(held[k][0]), 0);
			ck_assert_int_eq(release_id(NULL, held[k][0]), 0);
		}
		check_all("random", i);
	}
	ck_assert_uint_ge(seen, deaths / 4);
	close_hostile();
}
END_TEST

/* --- in the middle of responding --------------------------------------------------------- */

static bool is_large_body(const struct NC_response *response, uint64_t tag)
{
	size_t run;
	const unsigned char *data = data_of_id(cache, response->body.id, 0, &run);

	if (!data || run != response->body.length || memcmp(data, &tag, sizeof(tag)) != 0)
		return false;
	for (size_t i = sizeof(tag); i < run; i++)
		if (data[i] != (unsigned char)(i * 31 + (i >> 8)))
			return false;
	return true;
}

static unsigned reap_all(NC_backend *backend, struct NC_response *bodies, uint64_t *tags)
{
	unsigned count = 0;

	while (count < 8 && NC_backend_reap(backend, 0, &tags[count], &bodies[count],
					    sizeof(bodies[count])) == 1) {
		remember_response(&bodies[count]);
		ck_assert_int_eq(bodies[count].status, 200);
		ck_assert(is_large_body(&bodies[count], tags[count]));
		count++;
	}
	return count;
}

START_TEST(test_worker)
{
	char *const argv[] = {(char *)helper_path("WORKER_FIXTURE", "worker-fixture"), NULL};
	struct NC_backend_options start =
		NC_BACKEND_OPTIONS_INIT(.argv = argv, .channels = 1, .memory = MIB);
	unsigned served = 0;
	uint64_t state = 5;

	open_hostile(&options);
	note_all();
	for (unsigned i = 0; i < scaled(100); i++) {
		NC_backend *backend = NC_backend_start(cache, &start);
		struct NC_response bodies[8];
		uint64_t tags[8];
		unsigned count;

		ck_assert_ptr_nonnull(backend);
		for (uint64_t tag = 0; tag < 6; tag++)
			ck_assert_int_eq(NC_backend_submit(backend, 0, tag, "DO=large", 9, 0), 0);
		ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
		/* Until the first response, or some time; then it dies among others. */
		if (NC_backend_arm(backend, 0, 1) == 0)
			(void)poll(
				&(struct pollfd){.fd = NC_backend_fd(backend, 0), .events = POLLIN},
				1, i % 8 < 7 ? 10000 : 1);
		(void)poll(NULL, 0, (int)(random_next(&state) % 2));
		kill(NC_backend_pid(backend), SIGKILL);
		/* Responses before its death are valid until their last release. */
		count = reap_all(backend, bodies, tags);
		served += count;
		await(NC_backend_pidfd(backend), POLLIN);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
		if (i % 2)
			ck_assert_int_eq(NC_backend_close(backend), 0);
		for (unsigned k = 0; k < count; k++) {
			ck_assert(is_large_body(&bodies[k], tags[k]));
			ck_assert_int_eq(release_id(NULL, bodies[k].body.id), 0);
		}
		if (i % 2 == 0)
			ck_assert_int_eq(NC_backend_close(backend), 0);
		serve_until_alone();
		check_all("worker", i);
	}
	ck_assert_uint_gt(served, 0);
	close_hostile();
}
END_TEST

/* --- after the k-th instruction --------------------------------------------------------------- */

enum { INSERT, INSERT_SEALED, GRANT, REVOKE, DESTROY, DESTROY_GRANTED, ACTS };
static const char *const names[] = {"insert", "insert sealed", "grant",
				    "revoke", "destroy",       "destroy granted"};
static unsigned act;

/* Creates one unit that is reported, and one whose operation is run one instruction at a time. */
static int act_step_by_step(void)
{
	NC_cache *in = NC_cache_attach(path, &(struct NC_attach_options)NC_ATTACH_OPTIONS_INIT());
	unsigned char data[SIZE];
	struct nc_handle *inside;
	NC_handle handle;
	size_t ids[2];
	int result = -1;

	CHILD(in);
	pattern_fill(data, SIZE, 0, SIZE);
	ids[0] = child_insert(in, SIZE, SIZE, NC_KIND_RECYCLED);
	CHILD(NC_unit_alloc(in, &handle, SIZE, 0,
			    act == INSERT_SEALED ? NC_KIND_SEALED : NC_KIND_RECYCLED, 0) == 0);
	CHILD(NC_write(&handle, data, SIZE, 0) == (ssize_t)SIZE);
	/* The id that it will get. */
	inside = (struct nc_handle *)(void *)&handle;
	ids[1] = act == INSERT_SEALED ? 0
				      : nc_index_id(&in->index, inside->unit->slot,
						    nc_word_generation(nc_unit_word(inside->unit)));
	if (act > INSERT_SEALED)
		CHILD(NC_insert(&handle) == 0);
	if (act == REVOKE || act == DESTROY_GRANTED)
		CHILD(NC_grant(in, ids[1], NC_USER, 4999) == 0);
	CHILD(said(ids, 2));
	CHILD(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	raise(SIGSTOP);
	switch (act) {
	case INSERT:
	case INSERT_SEALED:
		result = NC_insert(&handle);
		break;
	case GRANT:
		result = NC_grant(in, ids[1], NC_USER, 4999);
		break;
	case REVOKE:
		result = NC_revoke(in, ids[1], NC_USER, 4999);
		break;
	case DESTROY:
	case DESTROY_GRANTED:
		result = NC_destroy(in, ids[1]);
	}
	raise(SIGSTOP);
	return result;
}

/*
 * Waits for a stop of the child, and does the owner's work whenever that takes long;
 * returns the signal, or 0 if it exited.  Sleeps: the child needs the processor.
 */
static int stopped(pid_t pid)
{
	int status;
	pid_t got;

	while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	ck_assert_int_eq(got, pid);
	return WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
}

static void on_alarm(int number)
{
	(void)number;
}

/* Interrupts stopped() after each millisecond, or not. */
static void interrupt(bool often)
{
	const struct sigaction alarm = {.sa_handler = on_alarm};
	const struct itimerval every = {{.tv_usec = often * 1000}, {.tv_usec = often * 1000}};

	ck_assert_int_eq(sigaction(SIGALRM, &alarm, NULL), 0);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
}

/* Lets it execute that many instructions, or all; returns how many it did. */
static unsigned long step(pid_t pid, unsigned long most)
{
	unsigned long done = 0;

	while (done < most) {
		int signal_number;

		ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		signal_number = stopped(pid);
		ck_assert_int_ne(signal_number, 0);
		if (signal_number == SIGSTOP)
			break;
		done++;
	}
	return done;
}

/* One life; returns the number of its instructions. */
static unsigned long die_after(unsigned long most)
{
	struct member member = start_member(act_step_by_step, MEMBER);
	unsigned long done;
	size_t ids[2];

	hear_ids(&member, ids, 2);
	ck_assert_int_eq(hold_id(NULL, ids[0]), 0);
	interrupt(true);
	ck_assert_int_eq(stopped(member.pid), SIGSTOP);
	done = step(member.pid, most);
	interrupt(false);
	end_child(member.pid);
	close(member.talk);
	ck_assert(is_whole(ids[0], SIZE));
	/* If its id is valid, it has the expected bytes. */
	if (ids[1] && hold_id(NULL, ids[1]) == 0) {
		ck_assert_msg(is_whole(ids[1], SIZE), "%s: wrong bytes after %lu", names[act],
			      done);
		ck_assert_int_eq(release_id(NULL, ids[1]), 0);
	}
	serve_until_alone();
	ck_assert(is_whole(ids[0], SIZE));
	ck_assert_int_eq(release_id(NULL, ids[0]), 0);
	FAILS(hold_id(NULL, ids[0]), ENOENT);
	FAILS(hold_id(NULL, ids[1]), ENOENT);
	check_all(names[act], done);
	return done;
}

static bool can_step(void)
{
	pid_t pid = fork_alone();
	int status;
	bool can;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	can = WIFSTOPPED(status) && ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0 &&
	      waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
	if (!WIFEXITED(status))
		end_child(pid);
	return can;
}

/* With the children: a step costs less if no other processor must wake for it. */
static void share_one_processor(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

#define STEPS_IN_ALL 200000ul

START_TEST(test_step_by_step)
{
	unsigned long length, lives, k;
	uint64_t state = 99;

	/* Under Valgrind its own instructions would be counted. */
	if (skip_without_pidfds("hostile-kill: step by step"))
		return;
	if (!can_step()) {
		printf("hostile-kill: step by step: skipped: no stepping here\n");
		fflush(stdout);
		return;
	}
	act = (unsigned)_i;
	share_one_processor();
	open_hostile(&options);
	note_all();
	length = die_after(ULONG_MAX);
	ck_assert_uint_gt(length, 100);
	lives = STEPS_IN_ALL / length < scaled(100) ? STEPS_IN_ALL / length : scaled(100);
	lives = lives > 4 ? lives : 4;
	for (k = 0; k < lives; k++) {
		unsigned long at = length * k / lives;

		(void)die_after(at + random_next(&state) % (length / lives + 1));
	}
	printf("hostile-kill: %s: %lu deaths in %lu instructions\n", names[act], lives, length);
	fflush(stdout);
	close_hostile();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_random);
	tcase_add_test(tcase, test_worker);
	tcase_add_loop_test(tcase, test_step_by_step, 0, ACTS);
}

RUN_SUITE("hostile-kill", fill)
