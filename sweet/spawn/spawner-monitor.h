/* SPDX-License-Identifier: MIT */
/*
 * spawner-monitor.h - the parent process of the spawner: if the spawner is killed,
 * it forks the next one.
 *
 * Only such a process can do this: a spawner has privileges that the server has
 * dropped, and its parent must have no threads.
 */
#ifndef SWEET_SPAWNER_MONITOR_H
#define SWEET_SPAWNER_MONITOR_H

#include "spawn/spawner-program.h"

/*
 * Keeps a spawner running on the channels until the server has closed the last of
 * them, and ends after it.
 */
_Noreturn void spawner_monitor(const struct spawner_program *programs, unsigned count,
			       const int *channels, unsigned channel_count);

#endif
