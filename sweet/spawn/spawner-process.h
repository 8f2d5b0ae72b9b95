/* SPDX-License-Identifier: MIT */
/*
 * spawner-process.h - the small process that starts programs for the server; and its
 * monitor, the parent process, which forks the next one if the spawner is killed.
 *
 * Only such a process can do this: a spawner has privileges that the server has
 * dropped, and its parent must have no threads.  The monitor has closed all descriptors of the
 * spawner but the channels and the first four.
 */
#ifndef SWEET_SPAWNER_PROCESS_H
#define SWEET_SPAWNER_PROCESS_H

#include <stdbool.h>

struct spawner_program;

/*
 * Reports on the first channel that it is ready, or why not (then it exits with
 * status 1).  Serves the channels until the server has closed the last of them,
 * then kills its programs and exits with status 0. renewed: it replaces a killed
 * spawner; it reports that on each channel instead.
 */
_Noreturn void spawner_process(const struct spawner_program *programs, unsigned count,
			       const int *channels, unsigned channel_count, bool renewed);

/* Sends READY; error: 0 or errno.  Also for a monitor that could not start a spawner. */
bool spawner_report_ready(int channel, int error);

/*
 * spawner-monitor.c: keeps a spawner running on the channels until the server has closed
 * the last of them, and ends after it.
 */
_Noreturn void spawner_monitor(const struct spawner_program *programs, unsigned count,
			       const int *channels, unsigned channel_count);

#endif
