/* SPDX-License-Identifier: MIT */
/*
 * spawner-exec.h - starts the process of a launch.  In the spawner, which has one
 * thread.
 */
#ifndef SWEET_SPAWNER_EXEC_H
#define SWEET_SPAWNER_EXEC_H

#include <sys/types.h>

#include "spawn/spawner-wire.h"

struct spawner_exec;
struct spawner_launch;

/* Returns NULL with errno. */
struct spawner_exec *spawner_exec_open(void);

/*
 * Starts the program with fds[n] as its descriptor n; -1: none, and for standard
 * input, output and error those of the spawner. fds must be SPAWNER_FDS or above.
 * Returns 0 when the program runs, with its pid and a pidfd (-1 if not supported),
 * or -errno if it could not be started.
 */
int spawner_exec_run(struct spawner_exec *exec, const struct spawner_launch *launch,
		     const int fds[SPAWNER_FDS], pid_t *pid, int *pidfd);

#endif
