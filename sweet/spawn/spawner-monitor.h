/* SPDX-License-Identifier: MIT */
/*
 * spawner-monitor.h - the parent of the spawner, from its fork on: when the
 * spawner is ended from outside, it forks the next one.
 *
 * Nobody else could: a spawner has rights that the server has given up, and is
 * forked by who has no threads.
 */
#ifndef SWEET_SPAWNER_MONITOR_H
#define SWEET_SPAWNER_MONITOR_H

#include "spawn/spawner-program.h"

/*
 * Keeps a spawner at the channels until the last of them is closed at the
 * server's end, and ends after it.
 */
_Noreturn void spawner_monitor(const struct spawner_program *programs, unsigned count,
			       const int *channels, unsigned channel_count);

#endif
