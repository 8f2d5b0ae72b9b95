/* SPDX-License-Identifier: MIT */
/*
 * process.h - a worker's process: started with one descriptor beside standard
 * input, output and error, with default signals, and known by a pidfd.
 */
#ifndef NC_PROCESS_H
#define NC_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#define NC_PROCESS_SOCKET 3 /* as what the process finds its socket */

struct nc_process {
	pid_t pid;    /* -1: none */
	int pidfd;    /* readable when it has ended; -1: none */
	bool adopted; /* somebody else's child */
};

/*
 * argv is looked for in PATH; environment (NULL: nothing) is added to the
 * caller's own and replaces what it names.  The process dies with the calling thread.  0 or -errno; that
 * a program cannot be run shows as its end, with status 127.
 */
int nc_process_start(struct nc_process *process, int socket, char *const *argv,
		     char *const *environment);

/*
 * What a process that another starts is to find in its environment, before
 * more (NULL: nothing).  One allocation, to be freed; NULL: no memory.
 */
char **nc_process_environment(char *const *more);

/* One that another started; takes pidfd over. */
void nc_process_adopt(struct nc_process *process, pid_t pid, int pidfd);

/*
 * Kills it unless it has ended or was reaped by another; waits for its end,
 * but not for ever if it is not the caller's child.
 */
void nc_process_end(struct nc_process *process);

#endif
