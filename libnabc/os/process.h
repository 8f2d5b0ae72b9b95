/* SPDX-License-Identifier: MIT */
/*
 * process.h - a worker's process: started with one descriptor beside standard
 * input, output and error, with default signals, and identified by a pidfd.
 */
#ifndef NC_PROCESS_H
#define NC_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#define NC_PROCESS_SOCKET 3 /* number of the socket in the process */

struct nc_process {
	pid_t pid;    /* -1: none */
	int pidfd;    /* readable when it has ended; -1: none */
	bool adopted; /* not our child */
};

/*
 * output becomes standard output and error; -1: the caller's standard error.  argv[0] is
 * searched in PATH; environment (NULL: nothing) is added to the caller's own and
 * replaces variables of the same name.  The process is killed when the
 * calling thread ends.  Returns 0 or -errno; if the program cannot be run, the
 * process ends with status 127.
 */
int nc_process_start(struct nc_process *process, int socket, int output, char *const *argv,
		     char *const *environment);

/*
 * Returns the variables that a process started by others needs, followed by more
 * (NULL: nothing).  One allocation, which the caller frees; NULL: out of memory.
 */
char **nc_process_environment(char *const *more);

/* For a process that others started; takes ownership of pidfd. */
void nc_process_adopt(struct nc_process *process, pid_t pid, int pidfd);

/*
 * Kills the process unless it has ended or was reaped elsewhere.  Waits for its
 * end, but not without limit if it is not the caller's child.
 */
void nc_process_end(struct nc_process *process);

#endif
