/* SPDX-License-Identifier: MIT */
/*
 * pool-process-end.h - the end of a process of a pool: how it was, for the log.  The same source
 * kills a process: pool_process_kill().
 */
#ifndef SWEET_POOL_PROCESS_END_H
#define SWEET_POOL_PROCESS_END_H

#define POOL_PROCESS_LIVED_MS 1000u /* a process that ran this long started successfully */

struct pool_process;

/* Returns the status of a child that is not reaped yet, as of waitpid(); or -1. */
int pool_process_status(int pidfd);

/* Logs that it has ended, with such a status, after what it has written. */
void pool_process_log_end(const struct pool_process *process, int status);

#endif
