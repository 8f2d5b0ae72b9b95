/* SPDX-License-Identifier: MIT */
/*
 * spawner-monitor.c - the monitor of spawner-process.h.
 *
 * It only waits, so it can hardly fail.  Both it and the spawner hold the spawner's
 * ends of the channels: the server sees them close when both have ended, and
 * requests that a dead spawner has not read wait there for the next one.
 *
 * A spawner's death ends its programs (spawner-exec.c).  The monitor inherits their
 * orphans, and processes that programs left running, which end when they want.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "spawn/helper-process.h"
#include "spawn/spawner-process.h"
#include "spawn/spawner-wire.h"

#define LIVED_NS 1000000000u	/* a spawner that lived so long is replaced at once */
#define PAUSE_NS 100000000	/* others after this pause */
#define FAILED W_EXITCODE(1, 0) /* as of waitpid() */

/* Returns 0 or -errno. own: the descriptors of the channels afterwards, also on failure. */
static int set_up(const int *channels, unsigned count, int *own)
{
	int error = helper_process_enter("sweet: keeper", channels, count, own);

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	return error;
}

/* Waits for the spawner and returns its status; reaps orphans meanwhile. */
static int wait_for(pid_t spawner)
{
	siginfo_t info = {0};
	int status = FAILED;

	while (info.si_pid != spawner) {
		if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) < 0) {
			if (errno != EINTR)
				break;
			continue;
		}
		/* As a spawner does: kill what the killed program has started. */
		if (info.si_pid != spawner && info.si_code == CLD_KILLED &&
		    info.si_status == SIGKILL)
			kill(-info.si_pid, SIGKILL);
		while (waitpid(info.si_pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	return status;
}

void spawner_monitor(const struct spawner_program *programs, unsigned count, const int *channels,
		     unsigned channel_count)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	int own[SPAWNER_CHANNELS_MAX], status = FAILED;
	int error = -set_up(channels, channel_count, own);
	bool renewed = false;

	for (; !error; renewed = true) {
		uint64_t born = clock_monotonic_ns();
		pid_t spawner = fork();

		if (spawner == 0)
			spawner_process(programs, count, own, channel_count, renewed);
		if (spawner < 0 && !renewed)
			error = errno;
		status = spawner > 0 ? wait_for(spawner) : FAILED;
		/*
		 * The server has ended; or the first spawner failed to start, which
		 * is reported.
		 */
		if (status == 0 || (status == FAILED && !renewed))
			break;
		if (clock_monotonic_ns() - born < LIVED_NS)
			nanosleep(&pause, NULL);
	}
	if (error)
		(void)spawner_report_ready(own[0], error);
	_exit(WEXITSTATUS(status));
}
