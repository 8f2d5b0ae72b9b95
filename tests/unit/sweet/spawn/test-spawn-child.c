/* SPDX-License-Identifier: MIT */
/*
 * test-spawn-child.c - unit tests of spawn-child.c with a real spawner: how exits are
 * reported, to which user, and that a closed child is stopped and released.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include <glib.h>
#include <unistd.h>

#include "base/list.h"
#include "spawn/spawn-child.h"
#include "spawn/spawner-program.h"
#include "spawn/spawner.h"

#include "loop-fixture.h"
#include "suite.h"

#define SHELL(command)                                                                             \
	{                                                                                          \
		.path = "/bin/sh", .argv = (char *const[])                                         \
		{                                                                                  \
			"sh", "-c", command, NULL                                                  \
		}                                                                                  \
	}

enum { OBEDIENT, DEFIANT, SHOWING, ABSENT };

static const struct spawner_program programs[] = {
	[OBEDIENT] = SHELL("read line; exit $line"),
	[DEFIANT] = SHELL("trap '' TERM; echo here; while :; do read line || sleep 1000; done"),
	[SHOWING] = SHELL("echo $NABC_TEST >&2; exit 0"),
	[ABSENT] = {.path = "/no/such/program", .argv = (char *const[]){"x", NULL}},
};

static struct runner runner;
static struct spawner *spawner;
static struct list leaving;

/* A process and the callbacks about it. */
struct job {
	unsigned program;
	const char *block;
	size_t block_length;
	struct spawn_child *child;
	int input, output; /* its 0, and its 1 and 2; the other ends */
	int error, pidfd;
	bool started;
	unsigned calls;
	int status;
};

static void on_start(void *user, int error, int pidfd)
{
	struct job *job = user;

	EVENT(job->started = true; job->error = error; job->pidfd = pidfd);
}

static void on_end(void *user, int status)
{
	struct job *job = user;

	EVENT(job->calls++; job->status = status);
}

static void attach(void *argument)
{
	(void)argument;
	expect(spawner_attach(spawner_channel(spawner, 0), runner.loop) == 0);
}

static void begin(void)
{
	char *why;

	leaving = (struct list){0};
	spawner = spawner_open(programs, G_N_ELEMENTS(programs), 1, &why);
	ck_assert_ptr_nonnull(spawner);
	runner_start(&runner, any_kind());
	call(&runner, attach, NULL);
}

static void end(void)
{
	runner_stop(&runner);
	spawn_children_free(&leaving);
	spawner_close(spawner);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}

static void start(void *argument)
{
	struct job *job = argument;
	static const struct spawn_child_user callbacks = {.started = on_start, .ended = on_end};
	int input[2], output[2];
	struct start what = {
		.program = job->program, .block = job->block, .block_length = job->block_length};

	expect(pipe2(input, O_CLOEXEC) == 0 && pipe2(output, O_CLOEXEC) == 0);
	memcpy(what.fds, (int[]){input[0], output[1], output[1], -1}, sizeof(what.fds));
	job->pidfd = -1;
	expect(spawn_child_start(&job->child, spawner_channel(spawner, 0), runner.loop, &what,
				 &callbacks, job) == 0);
	expect(!job->started);
	close(input[0]);
	close(output[1]);
	job->input = input[1];
	job->output = output[0];
}

static void job_start(struct job *job, unsigned program)
{
	*job = (struct job){.program = program};
	call(&runner, start, job);
	AWAIT(job->started);
	ck_assert_int_eq(job->error, 0);
	ck_assert_int_gt(spawn_child_pid(job->child), 0);
}

static void ask_to_end(void *argument)
{
	spawn_child_ask_to_end(((struct job *)argument)->child, 5000);
}

static void kill_now(void *argument)
{
	spawn_child_kill(((struct job *)argument)->child);
}

static void close_child(void *argument)
{
	spawn_child_close(((struct job *)argument)->child, &leaving);
}

static void look(void *argument)
{
	*(bool *)argument = !list_is_empty(&leaving);
}

/* Waits until all expected exits were reported. */
static void await_left(void)
{
	bool any = true;

	while (any)
		call(&runner, look, &any);
}

static void job_clear(struct job *job)
{
	close(job->input);
	close(job->output);
	if (job->pidfd >= 0)
		close(job->pidfd);
}

START_TEST(test_status)
{
	static const struct {
		const char *line;
		int status;
	} cases[] = {{"0\n", W_EXITCODE(0, 0)}, {"3\n", W_EXITCODE(3, 0)}};

	begin();
	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct job job;

		job_start(&job, OBEDIENT);
		SEEN(job.calls == 0);
		ck_assert_int_eq(write(job.input, cases[i].line, 2), 2);
		AWAIT(job.calls);
		SEEN(job.status == cases[i].status);
		/* It exists for its user until that closes it. */
		call(&runner, kill_now, &job);
		call(&runner, ask_to_end, &job);
		call(&runner, close_child, &job);
		await_left();
		SEEN(job.calls == 1);
		job_clear(&job);
	}
	end();
}
END_TEST

START_TEST(test_end)
{
	struct job job;

	begin();
	job_start(&job, OBEDIENT);
	call(&runner, ask_to_end, &job);
	AWAIT(job.calls);
	SEEN(WIFSIGNALED(job.status) && WTERMSIG(job.status) == SIGTERM);
	call(&runner, close_child, &job);
	job_clear(&job);
	job_start(&job, DEFIANT);
	call(&runner, kill_now, &job);
	AWAIT(job.calls);
	SEEN(WIFSIGNALED(job.status) && WTERMSIG(job.status) == SIGKILL);
	call(&runner, close_child, &job);
	job_clear(&job);
	end();
}
END_TEST

/* A process that ignores SIGTERM is killed. */
START_TEST(test_patience)
{
	struct job job;
	char line[5];

	begin();
	job_start(&job, DEFIANT);
	read_exactly(job.output, line, sizeof(line));
	call(&runner, ask_to_end, &job);
	AWAIT(job.calls);
	SEEN(WTERMSIG(job.status) == SIGKILL);
	call(&runner, close_child, &job);
	job_clear(&job);
	end();
}
END_TEST

/* Its user gets no more callbacks, and it is stopped. */
START_TEST(test_close)
{
	struct job jobs[3];
	char line[5];

	begin();
	for (unsigned i = 0; i < 3; i++) {
		job_start(&jobs[i], DEFIANT);
		/* From now on it ignores the signal. */
		read_exactly(jobs[i].output, line, sizeof(line));
	}
	call(&runner, ask_to_end, &jobs[1]);
	for (unsigned i = 0; i < 3; i++)
		call(&runner, close_child, &jobs[(i + 1) % 3]);
	for (unsigned i = 0; i < 3; i++)
		await(jobs[i].pidfd, POLLIN);
	await_left();
	for (unsigned i = 0; i < 3; i++) {
		SEEN(jobs[i].calls == 0);
		job_clear(&jobs[i]);
	}
	end();
}
END_TEST

/* If the loop has ended, there is no callback: memory is released all the same. */
START_TEST(test_late)
{
	struct job jobs[3];

	begin();
	for (unsigned i = 0; i < 3; i++)
		job_start(&jobs[i], DEFIANT);
	call(&runner, close_child, &jobs[0]);
	runner_stop(&runner);
	spawn_child_close(jobs[1].child, &leaving);
	spawn_child_close(jobs[2].child, &leaving);
	spawn_children_free(&leaving);
	ck_assert(list_is_empty(&leaving));
	spawner_close(spawner);
	for (unsigned i = 0; i < 3; i++) {
		await(jobs[i].pidfd, POLLIN);
		SEEN(jobs[i].calls == 0);
		job_clear(&jobs[i]);
	}
}
END_TEST

START_TEST(test_variables)
{
	static const char block[] = "NABC_TEST=value";
	struct job job = {.program = SHOWING, .block = block, .block_length = sizeof(block)};
	char said[6];

	begin();
	call(&runner, start, &job);
	AWAIT(job.started);
	ck_assert_int_eq(job.error, 0);
	read_exactly(job.output, said, sizeof(said));
	ck_assert_mem_eq(said, "value\n", sizeof(said));
	call(&runner, close_child, &job);
	job_clear(&job);
	end();
}
END_TEST

static void start_and_close(void *argument)
{
	start(argument);
	close_child(argument);
}

START_TEST(test_refused)
{
	struct job job = {.program = ABSENT};

	begin();
	call(&runner, start, &job);
	AWAIT(job.started);
	ck_assert_int_eq(job.error, ENOENT);
	ck_assert_int_eq(job.pidfd, -1);
	call(&runner, close_child, &job);
	/* Closed before its user is told. */
	job_clear(&job);
	job.started = false;
	call(&runner, start_and_close, &job);
	await_left();
	SEEN(!job.started);
	job.program = OBEDIENT;
	job_clear(&job);
	call(&runner, start_and_close, &job);
	await_left();
	SEEN(!job.started && job.calls == 0);
	job_clear(&job);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_status);
	tcase_add_test(tcase, test_end);
	tcase_add_test(tcase, test_patience);
	tcase_add_test(tcase, test_close);
	tcase_add_test(tcase, test_late);
	tcase_add_test(tcase, test_variables);
	tcase_add_test(tcase, test_refused);
}

RUN_SUITE("spawn-child", fill)
