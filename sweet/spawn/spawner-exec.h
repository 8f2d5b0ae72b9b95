/* SPDX-License-Identifier: MIT */
/*
 * spawner-exec.h - a launch becomes a process.  In the spawner, which has
 * one thread.
 */
#ifndef SWEET_SPAWNER_EXEC_H
#define SWEET_SPAWNER_EXEC_H

#include "spawn/spawner-program.h"

struct spawner_exec;

/* NULL with errno. */
struct spawner_exec *spawner_exec_open(void);

/*
 * Starts it with fds[n] as its descriptor n; -1: none, and for standard input
 * and output and errors those of the spawner.  They may not be below
 * SPAWNER_FDS.  Returns when the program runs: 0, with its pid and a pidfd (-1
 * where there are none), or -errno: it was not to be.
 */
int spawner_exec_run(struct spawner_exec *exec, const struct spawner_launch *launch,
		     const int fds[SPAWNER_FDS], pid_t *pid, int *pidfd);

#endif
