/* SPDX-License-Identifier: MIT */
/*
 * spawner-fixture.h - a real spawner and a loop that requests programs.  The spawner
 * is forked before the loop's thread starts, as in the server.
 */
#ifndef SPAWNER_FIXTURE_H
#define SPAWNER_FIXTURE_H

#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <glib.h>
#include <unistd.h>

#include "spawn/spawner.h"

#include "loop-fixture.h"
#include "process-fixture.h"
#include "suite.h"

struct spawner_program;

/* clang-format off */
#define SHELL(command)                                                                             \
	{.path = "/bin/sh", .argv = (char *const[]){"sh", "-c", command, NULL}, .variables = base}
/* clang-format on */

static char *const base[] = {"PATH=/usr/bin:/bin", NULL};

/* --- one request, until it is complete ----------------------------------------------------- */

struct job {
	struct start start; /* must be first */
	bool done, ended, gone;
	int error, pidfd, status;
	int output;	/* what it writes */
	unsigned calls; /* number of calls of done() */
};

static struct runner runner;
static struct spawner *spawner;
static struct spawner_channel *channel;

static inline void job_done(struct start *start, int error, int pidfd)
{
	struct job *job = (struct job *)start;

	EVENT(job->done = true; job->calls++; job->error = error; job->pidfd = pidfd);
}

static inline void job_ended(struct start *start, int status)
{
	struct job *job = (struct job *)start;

	EVENT(job->ended = true; job->status = status; job->calls += 100);
}

static inline void job_gone(struct start *start)
{
	struct job *job = (struct job *)start;

	EVENT(job->gone = true);
}

static inline void attach(void *argument)
{
	(void)argument;
	expect(spawner_attach(channel, runner.loop) == 0);
}

static inline void begin(const struct spawner_program *programs, unsigned count)
{
	char *why;

	spawner = spawner_open(programs, count, 2, &why);
	ck_assert_ptr_nonnull(spawner);
	runner_start(&runner, any_kind());
	channel = spawner_channel(spawner, 0);
	call(&runner, attach, NULL);
}

static inline void end(void)
{
	runner_stop(&runner);
	spawner_close(spawner);
}

static inline void job_init(struct job *job, unsigned program, const char *script)
{
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	*job = (struct job){.start = {.program = program,
				      .mount = script ? "/cgi" : NULL,
				      .script = script,
				      .fds = {-1, ends[1], -1, -1},
				      .done = job_done,
				      .ended = job_ended,
				      .gone = job_gone},
			    .pidfd = -1,
			    .output = ends[0]};
}

static inline void ask(void *argument)
{
	struct job *job = argument;

	spawner_ask(channel, &job->start);
	expect(!job->done);
}

/* Sends a request, and passes the descriptor on. */
static inline void job_start(struct job *job)
{
	call(&runner, ask, job);
	AWAIT(job->done);
	close(job->start.fds[1]);
	SEEN(job->calls % 100 == 1);
}

static inline void job_clear(struct job *job)
{
	if (job->ended)
		AWAIT(job->gone);
	if (job->pidfd >= 0)
		close(job->pidfd);
	close(job->output);
}

/* Returns what a program writes until it exits, with success. */
static inline const char *output_of(unsigned program, const char *script)
{
	struct job job;
	const char *text;

	job_init(&job, program, script);
	job_start(&job);
	ck_assert_msg(job.error == 0, "%s", strerror(job.error));
	text = read_to_end(job.output);
	AWAIT(job.ended);
	ck_assert_int_eq(job.status, 0);
	job_clear(&job);
	return text;
}

static inline int error_of(unsigned program, const char *script)
{
	struct job job;

	job_init(&job, program, script);
	job_start(&job);
	ck_assert_int_eq(job.pidfd, -1);
	ck_assert_str_eq(read_to_end(job.output), "");
	job_clear(&job);
	return job.error;
}

/* --- a folder ---------------------------------------------------------------------------------- */

static inline void write_file(const char *folder, const char *name, const char *text, mode_t mode)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
	ck_assert_int_eq(chmod(path, mode), 0);
}

#endif
