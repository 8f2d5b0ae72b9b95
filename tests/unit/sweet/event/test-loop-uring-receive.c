/* SPDX-License-Identifier: MIT */
/*
 * test-loop-uring-receive.c - unit tests of loop-uring-receive.c: the buffers that connections
 * share.  Both loops keep the promises.
 */
#include <stddef.h>
#include <unistd.h>

#include "event/loop.h"

#include "loop-fixture.h"
#include "loop-pause-fixture.h"
#include "suite.h"

#define BUSY 8u
#define MUCH ((size_t)48 << 10) /* bytes that wait for each of them: more than all buffers have */

static struct inlet busy[BUSY], quiet;
static unsigned before_quiet; /* calls of the others */

static void note_quiet(struct loop_receive *op, const char *data, int length)
{
	if (length > 0)
		EVENT(for (unsigned i = 0; i < BUSY; i++) before_quiet += busy[i].calls);
	inlet_received(op, data, length);
}

static int open_with(struct inlet *inlet, size_t bytes)
{
	int pair[2];

	tcp_pair(pair);
	inlet_init(inlet, &runner, pair[1], bytes);
	write_pattern(pair[0], 7, 0, bytes);
	return pair[0];
}

/* Those that receive much first, in one turn. */
static void begin_all(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < BUSY; i++)
		inlet_begin(&busy[i]);
	inlet_begin(&quiet);
}

/* Others that send more than all buffers hold do not delay one that sends a few bytes. */
START_TEST(test_few_bytes_beside_many)
{
	int peers[BUSY + 1];

	runner_start_in(&runner, kind_of(_i), LOOP_FEW);
	before_quiet = 0;
	for (unsigned i = 0; i < BUSY; i++)
		peers[i] = open_with(&busy[i], MUCH);
	peers[BUSY] = open_with(&quiet, 10);
	quiet.receive.received = note_quiet;
	call(&runner, begin_all, NULL);
	AWAIT(quiet.length == 10);
	/* Each of them once, and what the buffers held. */
	SEEN(before_quiet <= BUSY + 16);
	for (unsigned i = 0; i < BUSY; i++) {
		AWAIT(busy[i].length == MUCH);
		SEEN(pattern_match(busy[i].got, 7, 0, MUCH) == MUCH);
		inlet_close(&busy[i]);
	}
	inlet_close(&quiet);
	runner_stop(&runner);
	for (unsigned i = 0; i <= BUSY; i++)
		close(peers[i]);
}
END_TEST

static void pause_quiet(void *argument)
{
	(void)argument;
	begin_all(NULL);
	loop_receive_pause(runner.loop, quiet.fd);
}

static void resume_quiet(void *argument)
{
	(void)argument;
	loop_receive_resume(runner.loop, quiet.fd);
}

/* Without a buffer, the end is reported, too; and a pause lasts. */
START_TEST(test_pause_and_end_beside_many)
{
	int peers[BUSY + 1];

	runner_start_in(&runner, kind_of(_i), LOOP_FEW);
	for (unsigned i = 0; i < BUSY; i++)
		peers[i] = open_with(&busy[i], MUCH);
	peers[BUSY] = open_with(&quiet, 10);
	call(&runner, pause_quiet, NULL);
	for (unsigned i = 0; i < BUSY; i++)
		AWAIT(busy[i].length == MUCH);
	SEEN(quiet.calls == 0);
	close(peers[BUSY]);
	call(&runner, resume_quiet, NULL);
	AWAIT(quiet.end == 0);
	SEEN(quiet.length == 10 && quiet.late == 0);
	for (unsigned i = 0; i < BUSY; i++) {
		inlet_close(&busy[i]);
		close(peers[i]);
	}
	inlet_close(&quiet);
	runner_stop(&runner);
}
END_TEST

static void fill(TCase *tcase)
{
	int kind = first_kind();

	tcase_add_loop_test(tcase, test_few_bytes_beside_many, kind, KINDS);
	tcase_add_loop_test(tcase, test_pause_and_end_beside_many, kind, KINDS);
}

RUN_SUITE("loop-uring-receive", fill)
