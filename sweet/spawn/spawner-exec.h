/* SPDX-License-Identifier: MIT */
/*
 * spawner-exec.h - starts the process of a launch.  In the spawner, which has one
 * thread.
 */
#ifndef SWEET_SPAWNER_EXEC_H
#define SWEET_SPAWNER_EXEC_H

#include <sys/types.h>

#include "spawn/spawner-wire.h"

struct spawner_launch;

/*
 * Begins to start the program with fds[n] as its descriptor n; -1: none, for standard input and
 * error /dev/null, and for standard output the same as for standard error.  fds must be SPAWNER_FDS
 * or above.  Returns 0 with the pid, a pidfd (-1 if not supported) and a descriptor that becomes
 * readable when the result is known, or -errno.
 */
int spawner_exec_begin(const struct spawner_launch *launch, const int fds[SPAWNER_FDS], pid_t *pid,
		       int *pidfd, int *report);

/* Returns the result: 0 when the program runs, or -errno if it could not be started; -EAGAIN: none. */
int spawner_exec_result(int report);

#endif
