/* SPDX-License-Identifier: MIT */
/*
 * loop-fixture.h - shared by the tests around the event loop: a loop of either kind
 * on a thread of its own, so that a test runs from top to bottom and plays the
 * peer.
 *
 * call() starts operations on the loop's thread; their callbacks record results in
 * EVENT(); the test waits for these with AWAIT().
 */
#ifndef LOOP_FIXTURE_H
#define LOOP_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "event/loop.h"

#include "suite.h"

#define KINDS 2 /* of loops: every test runs with each, with its number _i */

struct runner {
	struct loop *loop;
	pthread_t thread;
	/* settle()'s */
	struct loop_receive probe;
	int ends[2];
	unsigned probes;
};

static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t event = PTHREAD_COND_INITIALIZER;

/* Statements of a callback that the test reads. */
#define EVENT(...)                                                                                 \
	do {                                                                                       \
		pthread_mutex_lock(&event_lock);                                                   \
		__VA_ARGS__;                                                                       \
		pthread_cond_broadcast(&event);                                                    \
		pthread_mutex_unlock(&event_lock);                                                 \
	} while (0)

/* Waits until an event has made the condition true. */
#define AWAIT(condition)                                                                           \
	do {                                                                                       \
		struct timespec until;                                                             \
                                                                                                   \
		clock_gettime(CLOCK_REALTIME, &until);                                             \
		until.tv_sec += 60;                                                                \
		pthread_mutex_lock(&event_lock);                                                   \
		while (!(condition))                                                               \
			if (pthread_cond_timedwait(&event, &event_lock, &until))                   \
				ck_abort_msg("not in a minute: %s", #condition);                   \
		pthread_mutex_unlock(&event_lock);                                                 \
	} while (0)

/* Asserts a condition on what events have recorded. */
#define SEEN(condition)                                                                            \
	do {                                                                                       \
		bool seen_;                                                                        \
                                                                                                   \
		pthread_mutex_lock(&event_lock);                                                   \
		seen_ = (condition);                                                               \
		pthread_mutex_unlock(&event_lock);                                                 \
		ck_assert_msg(seen_, "not true: %s", #condition);                                  \
	} while (0)

static inline enum loop_kind kind_of(int number)
{
	return number ? LOOP_EPOLL : LOOP_URING;
}

/*
 * Valgrind 3.19 runs one thread at a time, and no other thread runs while one waits
 * in io_uring: check-valgrind.sh sets this variable.
 */
static inline bool no_uring(void)
{
	return getenv("NABC_TEST_NO_URING") != NULL;
}

/* The kind for tests that run once. */
static inline enum loop_kind any_kind(void)
{
	return no_uring() ? LOOP_EPOLL : LOOP_AUTO;
}

static inline void *runner_thread(void *context)
{
	struct runner *runner = context;

	loop_run(runner->loop);
	return NULL;
}

struct call {
	struct loop_task task;
	void (*function)(void *argument);
	void *argument;
	bool done;
};

static inline void call_runs(struct loop_task *task)
{
	struct call *call = (struct call *)task;

	call->function(call->argument);
	EVENT(call->done = true);
}

/* Runs a function on the loop's thread and waits for its end. */
static inline void call(struct runner *runner, void (*function)(void *argument), void *argument)
{
	struct call call = {.task.run = call_runs, .function = function, .argument = argument};

	loop_post(runner->loop, &call.task);
	AWAIT(call.done);
}

static inline void runner_probed(struct loop_receive *op, const char *data, int length)
{
	struct runner *runner = (struct runner *)((char *)op - offsetof(struct runner, probe));

	(void)data;
	EVENT(runner->probes += length > 0 ? (unsigned)length : 0);
}

static inline void runner_begin(void *argument)
{
	struct runner *runner = argument;

	runner->probe.received = runner_probed;
	if (loop_receive_start(runner->loop, &runner->probe, runner->ends[0]))
		ck_abort_msg("no probe");
}

static inline void runner_start_in(struct runner *runner, enum loop_kind kind, enum loop_room room)
{
	char why[128];

	*runner = (struct runner){.loop = loop_open(kind, room, why, sizeof(why))};
	ck_assert_msg(runner->loop, "%s", why);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, runner->ends), 0);
	ck_assert_int_eq(pthread_create(&runner->thread, NULL, runner_thread, runner), 0);
	call(runner, runner_begin, runner);
}

static inline void runner_start(struct runner *runner, enum loop_kind kind)
{
	runner_start_in(runner, kind, LOOP_MANY);
}

/* Runs some turns, each with an event of the kernel, so that pending operations complete. */
static inline void settle(struct runner *runner)
{
	for (unsigned i = 0; i < 3; i++) {
		unsigned before;

		pthread_mutex_lock(&event_lock);
		before = runner->probes;
		pthread_mutex_unlock(&event_lock);
		ck_assert_int_eq(write(runner->ends[1], "x", 1), 1);
		AWAIT(runner->probes == before + 1);
	}
}

static inline void runner_end(void *argument)
{
	struct runner *runner = argument;

	loop_close_fd(runner->loop, runner->ends[0]);
	loop_stop(runner->loop);
}

static inline void runner_stop(struct runner *runner)
{
	call(runner, runner_end, runner);
	pthread_join(runner->thread, NULL);
	loop_close(runner->loop);
	close(runner->ends[1]);
}

/* Returns the number of the first kind of loop that is available. */
static inline int first_kind(void)
{
	char why[128] = "NABC_TEST_NO_URING is set";
	struct loop *loop = no_uring() ? NULL : loop_open(LOOP_URING, LOOP_MANY, why, sizeof(why));

	if (loop) {
		loop_close(loop);
		return 0;
	}
	printf("with epoll alone: %s\n", why);
	fflush(stdout);
	return 1;
}

/* --- a connection that records what it receives ----------------------------- */

struct inlet {
	struct loop_receive receive; /* must be first */
	struct loop *loop;
	int fd;
	char *got;
	size_t room, length;
	unsigned calls;
	unsigned late; /* calls after the end */
	int end;       /* its result; 1: not yet */
};

static inline void inlet_received(struct loop_receive *op, const char *data, int length)
{
	struct inlet *inlet = (struct inlet *)op;

	pthread_mutex_lock(&event_lock);
	inlet->calls++;
	inlet->late += inlet->end != 1;
	if (length <= 0) {
		inlet->end = length;
	} else if (inlet->length + (size_t)length <= inlet->room) {
		memcpy(inlet->got + inlet->length, data, (size_t)length);
		inlet->length += (size_t)length;
	} else {
		inlet->late++; /* more than was sent */
	}
	pthread_cond_broadcast(&event);
	pthread_mutex_unlock(&event_lock);
}

static inline void inlet_begin(void *argument)
{
	struct inlet *inlet = argument;

	if (loop_receive_start(inlet->loop, &inlet->receive, inlet->fd))
		ck_abort_msg("loop_receive_start");
}

static inline void inlet_end(void *argument)
{
	struct inlet *inlet = argument;

	loop_close_fd(inlet->loop, inlet->fd);
}

/* Makes an inlet for a socket, not yet started; room: maximum of expected bytes. */
static inline void inlet_init(struct inlet *inlet, struct runner *runner, int fd, size_t room)
{
	*inlet = (struct inlet){.receive.received = inlet_received,
				.loop = runner->loop,
				.fd = fd,
				.got = must_alloc(room),
				.room = room,
				.end = 1};
	set_nonblocking(fd);
}

#endif
