/* SPDX-License-Identifier: MIT */
/*
 * starter-exec.h - a launch becomes a process.  In the starter, which has
 * one thread.
 */
#ifndef SWEET_STARTER_EXEC_H
#define SWEET_STARTER_EXEC_H

#include "spawn/starter-program.h"

struct starter_exec;

/* NULL with errno. */
struct starter_exec *starter_exec_open(void);

/*
 * Starts it with fds[n] as its descriptor n; -1: none, and for standard input
 * and output and errors those of the starter.  They may not be below
 * STARTER_FDS.  Returns when the program runs: 0, with its pid and a pidfd (-1
 * where there are none), or -errno: it was not to be.
 */
int starter_exec_run(struct starter_exec *exec, const struct starter_launch *launch,
		     const int fds[STARTER_FDS], pid_t *pid, int *pidfd);

#endif
