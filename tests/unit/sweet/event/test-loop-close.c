/* SPDX-License-Identifier: MIT */
/*
 * test-loop-close.c - unit tests of the event loop: after loop_close_fd() no callback
 * is called, whatever was pending, and a reused descriptor number gets nothing of its
 * predecessor; very many connections at once.  Every test is run with each kind of
 * loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "event/loop.h"

#include "loop-fixture.h"
#include "suite.h"

static struct runner runner;

static void begin_and_end(void *argument)
{
	inlet_begin(argument);
	inlet_end(argument);
}

/* Closed in the turn in which it started, and in one in which bytes are there. */
START_TEST(test_close_at_once)
{
	runner_start(&runner, kind_of(_i));
	for (unsigned i = 0; i < 4; i++) {
		struct inlet inlet;
		int pair[2];
		char byte;

		tcp_pair(pair);
		inlet_init(&inlet, &runner, pair[1], 10);
		if (i & 1)
			ck_assert_int_eq(write(pair[0], "hello", 5), 5);
		if (i & 2) {
			call(&runner, inlet_begin, &inlet);
			if (i & 1)
				AWAIT(inlet.length == 5);
			call(&runner, inlet_end, &inlet);
		} else {
			call(&runner, begin_and_end, &inlet);
		}
		await(pair[0], POLLIN);
		ck_assert_int_le(read(pair[0], &byte, 1), 0);
		settle(&runner);
		SEEN(inlet.calls == (i == 3 ? 1 : 0) && inlet.end == 1);
		free(inlet.got);
		close(pair[0]);
	}
	runner_stop(&runner);
}
END_TEST

static void received_and_closes(struct loop_receive *op, const char *data, int length)
{
	inlet_received(op, data, length);
	loop_close_fd(runner.loop, ((struct inlet *)op)->fd);
}

/* By its own callback: with more bytes pending, or with the end. */
START_TEST(test_close_itself)
{
	size_t size = 200000;
	char *data = must_alloc(size);

	memset(data, 'x', size);
	runner_start(&runner, kind_of(_i));
	for (unsigned i = 0; i < 3; i++) {
		struct inlet inlet;
		int pair[2];
		char byte;

		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
		inlet_init(&inlet, &runner, pair[1], size);
		inlet.receive.received = received_and_closes;
		if (i < 2)
			ck_assert_int_eq(write(pair[0], data, i ? 5 : size), i ? 5 : size);
		else
			shutdown(pair[0], SHUT_WR);
		call(&runner, inlet_begin, &inlet);
		await(pair[0], POLLIN);
		ck_assert_int_le(read(pair[0], &byte, 1), 0);
		settle(&runner);
		SEEN(inlet.calls == 1);
		free(inlet.got);
		close(pair[0]);
	}
	runner_stop(&runner);
	free(data);
}
END_TEST

/*
 * Two sockets that are readable in the same turn: the first callback closes the other
 * socket and starts a new connection, if possible with the descriptor number that is
 * now free.
 */
struct rival {
	struct inlet inlet; /* must be first */
	struct rival *other;
};

static struct rival rivals[2], heir;
static int spare[2]; /* to become the heir's */
static unsigned heirs, wins;

static void rival_received(struct loop_receive *op, const char *data, int length)
{
	struct rival *rival = (struct rival *)op;
	int fd;

	inlet_received(op, data, length);
	loop_close_fd(runner.loop, rival->other->inlet.fd);
	fd = fcntl(spare[1], F_DUPFD_CLOEXEC, rival->other->inlet.fd);
	if (fd < 0)
		ck_abort_msg("dup: %s", strerror(errno));
	heir.inlet.fd = fd;
	EVENT(heirs += fd == rival->other->inlet.fd; wins++);
	inlet_begin(&heir.inlet);
}

static void rivals_begin(void *argument)
{
	(void)argument;
	inlet_begin(&rivals[0].inlet);
	inlet_begin(&rivals[1].inlet);
}

START_TEST(test_reuse_in_a_turn)
{
	unsigned rounds = scaled(200);

	runner_start(&runner, kind_of(_i));
	for (unsigned round = 1; round <= rounds; round++) {
		int pair[2][2];

		tcp_pair(spare);
		for (unsigned i = 0; i < 2; i++) {
			tcp_pair(pair[i]);
			inlet_init(&rivals[i].inlet, &runner, pair[i][1], 10);
			rivals[i].inlet.receive.received = rival_received;
			rivals[i].other = &rivals[!i];
			/* Half of the time the event is an end. */
			if (round & 1)
				shutdown(pair[i][0], SHUT_WR);
			else
				ck_assert_int_eq(write(pair[i][0], "rival", 5), 5);
		}
		inlet_init(&heir.inlet, &runner, spare[1], 10);
		call(&runner, rivals_begin, NULL);
		AWAIT(wins == round);
		settle(&runner);
		SEEN(wins == round && heir.inlet.calls == 0);
		ck_assert_int_eq(write(spare[0], "heir", 4), 4);
		AWAIT(heir.inlet.length == 4);
		SEEN(memcmp(heir.inlet.got, "heir", 4) == 0 && heir.inlet.end == 1);
		SEEN(rivals[0].inlet.calls + rivals[1].inlet.calls == 1);
		call(&runner, inlet_end, &heir.inlet);
		call(&runner, inlet_end,
		     rivals[0].inlet.calls ? &rivals[0].inlet : &rivals[1].inlet);
		close_pair(spare);
		for (unsigned i = 0; i < 2; i++) {
			close(pair[i][0]);
			free(rivals[i].inlet.got);
		}
		free(heir.inlet.got);
	}
	/* With epoll the close takes effect at once, so the case occurred. */
	if (kind_of(_i) == LOOP_EPOLL)
		ck_assert_uint_gt(heirs, 0);
	runner_stop(&runner);
}
END_TEST

/* Connection after connection with the same numbers: each one gets its own bytes. */
START_TEST(test_churn)
{
	runner_start(&runner, kind_of(_i));
	for (unsigned round = 0; round < scaled(1000); round++) {
		struct inlet inlet;
		int pair[2];

		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		inlet_init(&inlet, &runner, pair[1], sizeof(round));
		if (round & 1)
			ck_assert_int_eq(write(pair[0], &round, sizeof(round)), sizeof(round));
		call(&runner, inlet_begin, &inlet);
		if (!(round & 1))
			ck_assert_int_eq(write(pair[0], &round, sizeof(round)), sizeof(round));
		AWAIT(inlet.length == sizeof(round));
		SEEN(memcmp(inlet.got, &round, sizeof(round)) == 0 && inlet.end == 1);
		if (round & 2)
			close(pair[0]);
		call(&runner, inlet_end, &inlet);
		SEEN(inlet.calls <= 2 && inlet.late == 0);
		if (!(round & 2))
			close(pair[0]);
		free(inlet.got);
	}
	runner_stop(&runner);
}
END_TEST

static void received_and_stops(struct loop_receive *op, const char *data, int length)
{
	received_and_closes(op, data, length);
	loop_stop(runner.loop);
}

/* A descriptor that is closed in the last turn is closed too. */
START_TEST(test_close_and_stop)
{
	unsigned descriptors = open_descriptors();
	struct inlet inlet;
	int pair[2];
	char byte;

	runner_start(&runner, kind_of(_i));
	tcp_pair(pair);
	inlet_init(&inlet, &runner, pair[1], 10);
	inlet.receive.received = received_and_stops;
	call(&runner, inlet_begin, &inlet);
	settle(&runner);
	ck_assert_int_eq(write(pair[0], "x", 1), 1);
	pthread_join(runner.thread, NULL);
	loop_close(runner.loop);
	/* It was not closed when the byte alone arrived. */
	await(pair[0], POLLIN);
	ck_assert_int_eq(read(pair[0], &byte, 1), 0);
	SEEN(inlet.calls == 1);
	free(inlet.got);
	close(pair[0]);
	close_pair(runner.ends);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* --- very many ------------------------------------------------------------------- */

#define MANY 1000
#define CHUNK 6000

static struct inlet many[MANY];
static int peers[MANY];

static void raise_limit(void)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Connections, not started, with space for the expected bytes. */
static void many_init(unsigned count, size_t room)
{
	for (unsigned i = 0; i < count; i++) {
		int pair[2];

		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		peers[i] = pair[0];
		inlet_init(&many[i], &runner, pair[1], room);
	}
}

static void many_begin(void *argument)
{
	for (unsigned i = 0; i < *(unsigned *)argument; i++) {
		inlet_begin(&many[i]);
		if (write(peers[i], many[i].got + CHUNK, CHUNK) != CHUNK)
			ck_abort_msg("write");
	}
}

/*
 * All of them send at once, while the loop is busy: far more than the buffers and the
 * completions of one turn; the table of descriptors grows meanwhile.
 */
START_TEST(test_many)
{
	unsigned count = scaled(MANY) < 300 ? 300 : MANY;
	unsigned descriptors = open_descriptors();

	raise_limit();
	runner_start(&runner, kind_of(_i));
	many_init(count, 2 * CHUNK);
	for (unsigned i = 0; i < count; i++)
		pattern_fill(many[i].got + CHUNK, i, 0, CHUNK);
	call(&runner, many_begin, &count);
	for (unsigned i = 0; i < count; i++) {
		AWAIT(many[i].length == CHUNK);
		SEEN(pattern_match(many[i].got, i, 0, CHUNK) == CHUNK);
	}
	/* Again from the other side, then all disconnect. */
	for (unsigned i = 0; i < count; i++) {
		EVENT(many[i].length = 0);
		ck_assert_int_eq(write(peers[i], "again", 5), 5);
		close(peers[i]);
	}
	for (unsigned i = 0; i < count; i++) {
		AWAIT(many[i].end != 1);
		SEEN(many[i].end == 0 && many[i].length == 5 && many[i].late == 0);
		call(&runner, inlet_end, &many[i]);
		free(many[i].got);
	}
	runner_stop(&runner);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/*
 * After the end of the loop's thread, another one closes the rest: more than the
 * ring's submissions, and no thread may submit any more.
 */
START_TEST(test_close_after_the_end)
{
	unsigned descriptors = open_descriptors();

	raise_limit();
	runner_start(&runner, kind_of(_i));
	many_init(MANY, 10);
	for (unsigned i = 0; i < MANY; i++)
		call(&runner, inlet_begin, &many[i]);
	call(&runner, runner_end, &runner);
	pthread_join(runner.thread, NULL);
	for (unsigned i = 0; i < MANY; i++)
		loop_close_fd(runner.loop, many[i].fd);
	loop_close(runner.loop);
	for (unsigned i = 0; i < MANY; i++) {
		char byte;

		await(peers[i], POLLIN);
		ck_assert_int_eq(read(peers[i], &byte, 1), 0);
		SEEN(many[i].calls == 0);
		close(peers[i]);
		free(many[i].got);
	}
	close(runner.ends[1]);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* Numbers far above all others, and back. */
START_TEST(test_large_numbers)
{
	static const int numbers[] = {63, 64, 65, 200, 255, 256, 511, 512, 900, 1000, 70};

	raise_limit();
	runner_start(&runner, kind_of(_i));
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct inlet inlet;
		int pair[2], fd;

		tcp_pair(pair);
		fd = fcntl(pair[1], F_DUPFD_CLOEXEC, numbers[i]);
		ck_assert_int_ge(fd, numbers[i]);
		close(pair[1]);
		inlet_init(&inlet, &runner, fd, 10);
		call(&runner, inlet_begin, &inlet);
		ck_assert_int_eq(write(pair[0], "number", 6), 6);
		AWAIT(inlet.length == 6);
		call(&runner, inlet_end, &inlet);
		free(inlet.got);
		close(pair[0]);
	}
	runner_stop(&runner);
}
END_TEST

/* --- closing beside others -------------------------------------------------------- */

#define SOME 100u

struct crowd {
	struct inlet *inlets;
	unsigned count;
	double took; /* CPU time of the loop's thread, in seconds */
};

static double thread_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void crowd_begin(void *argument)
{
	struct crowd *crowd = argument;

	for (unsigned i = 0; i < crowd->count; i++)
		inlet_begin(&crowd->inlets[i]);
}

static void crowd_close_some(void *argument)
{
	struct crowd *crowd = argument;

	crowd->took = thread_seconds();
	for (unsigned i = 0; i < SOME; i++)
		loop_close_fd(runner.loop, crowd->inlets[--crowd->count].fd);
}

static void crowd_time(void *argument)
{
	struct crowd *crowd = argument;

	crowd->took = thread_seconds() - crowd->took;
}

static void crowd_end(void *argument)
{
	struct crowd *crowd = argument;

	while (crowd->count)
		loop_close_fd(runner.loop, crowd->inlets[--crowd->count].fd);
}

/* Returns the minimum time of a few runs that close SOME of count. */
static double close_beside(int kind, unsigned count)
{
	struct crowd crowd = {.inlets = must_alloc(count * sizeof(*crowd.inlets))};
	int(*pairs)[2] = must_alloc(count * sizeof(*pairs));
	double best = 1e9;

	runner_start(&runner, kind_of(kind));
	for (unsigned i = 0; i < count; i++) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]), 0);
		inlet_init(&crowd.inlets[i], &runner, pairs[i][1], 10);
	}
	crowd.count = count;
	call(&runner, crowd_begin, &crowd);
	settle(&runner);
	for (unsigned turn = 0; turn < 3; turn++) {
		call(&runner, crowd_close_some, &crowd);
		settle(&runner);
		call(&runner, crowd_time, &crowd);
		if (crowd.took < best)
			best = crowd.took;
	}
	call(&runner, crowd_end, &crowd);
	settle(&runner);
	runner_stop(&runner);
	for (unsigned i = 0; i < count; i++) {
		free(crowd.inlets[i].got);
		close(pairs[i][0]);
	}
	free(crowd.inlets);
	free(pairs);
	return best;
}

/* Closing some does not scan all: a crowd of idle connections costs the others nothing. */
START_TEST(test_close_beside_many)
{
	struct rlimit limit;
	unsigned many;
	double few, crowded;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	many = limit.rlim_max > 17000 ? 8000 : (unsigned)limit.rlim_max / 2 - 500;
	few = close_beside(_i, 3 * SOME + 1);
	crowded = close_beside(_i, many);
	ck_assert_msg(crowded < 6 * few, "beside %u others it took %.1f times as long", many,
		      crowded / few);
}
END_TEST

static void fill(TCase *tcase)
{
	int first = first_kind();

	tcase_add_loop_test(tcase, test_close_at_once, first, KINDS);
	tcase_add_loop_test(tcase, test_close_itself, first, KINDS);
	tcase_add_loop_test(tcase, test_reuse_in_a_turn, first, KINDS);
	tcase_add_loop_test(tcase, test_churn, first, KINDS);
	tcase_add_loop_test(tcase, test_close_and_stop, first, KINDS);
	tcase_add_loop_test(tcase, test_many, first, KINDS);
	tcase_add_loop_test(tcase, test_close_after_the_end, first, KINDS);
	tcase_add_loop_test(tcase, test_large_numbers, first, KINDS);
	tcase_add_loop_test(tcase, test_close_beside_many, first, KINDS);
}

RUN_SUITE("loop-close", fill)
