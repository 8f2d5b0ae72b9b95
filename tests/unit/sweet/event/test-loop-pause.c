/* SPDX-License-Identifier: MIT */
/*
 * test-loop-pause.c - unit tests of loop.c, loop-uring.c and loop-epoll.c: receiving
 * is paused and resumed.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/timer.h"
#include "event/loop.h"

#include "loop-fixture.h"
#include "loop-pause-fixture.h"
#include "suite.h"

/* --- receive ------------------------------------------------------------------- */

static void pause_inlet(void *argument)
{
	loop_receive_pause(runner.loop, ((struct inlet *)argument)->fd);
}

static void resume_inlet(void *argument)
{
	loop_receive_resume(runner.loop, ((struct inlet *)argument)->fd);
}

START_TEST(test_pause)
{
	struct inlet inlet;
	int peer;

	runner_start(&runner, kind_of(_i));
	peer = inlet_open(&inlet, 100000);
	write_pattern(peer, 4, 0, 10);
	AWAIT(inlet.length == 10);
	for (size_t at = 10; at < 50000; at += 10000) {
		call(&runner, pause_inlet, &inlet);
		settle(&runner);
		write_pattern(peer, 4, at, 10000);
		settle(&runner);
		SEEN(inlet.length == at);
		call(&runner, resume_inlet, &inlet);
		AWAIT(inlet.length == at + 10000);
	}
	/* First without data, then with some. */
	call(&runner, pause_inlet, &inlet);
	call(&runner, pause_inlet, &inlet);
	call(&runner, resume_inlet, &inlet);
	call(&runner, resume_inlet, &inlet);
	write_pattern(peer, 4, 50010, 10);
	AWAIT(inlet.length == 50020);
	/* The end arrives during a pause and is reported after it, or at once. */
	call(&runner, pause_inlet, &inlet);
	settle(&runner);
	write_pattern(peer, 4, 50020, 10);
	shutdown(peer, SHUT_WR);
	settle(&runner);
	SEEN(inlet.length == 50020 && inlet.end == 1);
	call(&runner, resume_inlet, &inlet);
	AWAIT(inlet.end == 0);
	SEEN(inlet.length == 50030 && inlet.late == 0);
	SEEN(pattern_match(inlet.got, 4, 0, 50010) == 50010);
	inlet_close(&inlet);
	runner_stop(&runner);
	close(peer);
}
END_TEST

/* The reset arrives during a pause, after some bytes: both are reported. */
START_TEST(test_reset_in_a_pause)
{
	struct linger now = {.l_onoff = 1};

	runner_start(&runner, kind_of(_i));
	/* In the end more than the kernel returns at once. */
	for (size_t length = 0; length < 200000; length += 29999) {
		struct inlet inlet;
		int pair[2];

		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
		inlet_init(&inlet, &runner, pair[1], 200010);
		call(&runner, inlet_begin, &inlet);
		write_pattern(pair[0], 8, 0, 10);
		AWAIT(inlet.length == 10);
		call(&runner, pause_inlet, &inlet);
		settle(&runner);
		if (length)
			write_pattern(pair[0], 8, 10, length);
		ck_assert_int_eq(setsockopt(pair[0], SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
		close(pair[0]);
		settle(&runner);
		call(&runner, resume_inlet, &inlet);
		AWAIT(inlet.end != 1);
		SEEN(inlet.end == -ECONNRESET && inlet.late == 0);
		SEEN(pattern_match(inlet.got, 8, 0, inlet.length) == inlet.length);
		inlet_close(&inlet);
	}
	runner_stop(&runner);
}
END_TEST

/* Closed during a pause. */
START_TEST(test_close_paused)
{
	struct inlet inlet;
	char byte;

	runner_start(&runner, kind_of(_i));
	for (unsigned i = 0; i < 3; i++) {
		int peer = inlet_open(&inlet, 100);

		call(&runner, pause_inlet, &inlet);
		if (i)
			settle(&runner);
		if (i == 2)
			write_pattern(peer, 5, 0, 10);
		inlet_close(&inlet);
		await(peer, POLLIN);
		/* Unread bytes turn it into a reset. */
		ck_assert_int_eq(read(peer, &byte, 1), i == 2 ? -1 : 0);
		settle(&runner);
		SEEN(inlet.calls == 0);
		close(peer);
	}
	runner_stop(&runner);
}
END_TEST

/* Pauses itself at random; a timer or the same callback resumes: no byte is lost. */
struct moody {
	struct inlet inlet; /* must be first */
	struct timer timer;
	uint64_t random;
	unsigned pauses;
};

static void moody_resumes(struct timer *timer)
{
	struct moody *moody = (struct moody *)((char *)timer - offsetof(struct moody, timer));

	loop_receive_resume(runner.loop, moody->inlet.fd);
}

static void moody_received(struct loop_receive *op, const char *data, int length)
{
	struct moody *moody = (struct moody *)op;

	inlet_received(op, data, length);
	if (length <= 0)
		return;
	switch (random_next(&moody->random) % 8) {
	case 0:
		loop_receive_pause(runner.loop, moody->inlet.fd);
		loop_receive_resume(runner.loop, moody->inlet.fd);
		break;
	case 1:
		moody->pauses++;
		loop_receive_pause(runner.loop, moody->inlet.fd);
		loop_timer_start(runner.loop, &moody->timer, 1, moody_resumes);
		break;
	default:
		break;
	}
}

START_TEST(test_pause_at_random)
{
	size_t size = scaled(4 << 20);
	static struct moody moody;
	int pair[2];

	runner_start(&runner, kind_of(_i));
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 0, 8192);
	memset(&moody, 0, sizeof(moody));
	moody.random = 99;
	inlet_init(&moody.inlet, &runner, pair[1], size);
	moody.inlet.receive.received = moody_received;
	call(&runner, inlet_begin, &moody.inlet);
	for (size_t at = 0; at < size; at += 10000)
		write_pattern(pair[0], 6, at, size - at < 10000 ? size - at : 10000);
	shutdown(pair[0], SHUT_WR);
	AWAIT(moody.inlet.end == 0);
	SEEN(moody.inlet.length == size && moody.inlet.late == 0 && moody.pauses > 0);
	SEEN(pattern_match(moody.inlet.got, 6, 0, size) == size);
	inlet_close(&moody.inlet);
	runner_stop(&runner);
	close(pair[0]);
}
END_TEST

static void fill(TCase *tcase)
{
	int first = first_kind();

	/* Valgrind enforces the limit itself, and drops the connection with the error. */
	if (!no_uring())
		tcase_add_loop_test(tcase, test_pause, first, KINDS);
	tcase_add_loop_test(tcase, test_reset_in_a_pause, first, KINDS);
	tcase_add_loop_test(tcase, test_close_paused, first, KINDS);
	tcase_add_loop_test(tcase, test_pause_at_random, first, KINDS);
}

RUN_SUITE("loop-pause", fill)
