/* SPDX-License-Identifier: MIT */
/*
 * spawner-process.h - the small process that starts programs for the server,
 * from its fork on; and its monitor, the parent of it, which forks the next one when
 * it is ended from outside.
 *
 * Nobody else could: a spawner has rights that the server has given up, and is
 * forked by who has no threads.  The monitor has left it nothing else open than the
 * channels and the first four descriptors.
 */
#ifndef SWEET_SPAWNER_PROCESS_H
#define SWEET_SPAWNER_PROCESS_H

#include <stdbool.h>

#include "spawn/spawner-program.h"

/*
 * Says on the first channel that it is ready, or why it is not and ends with
 * status 1; serves the channels until the last of them is closed at the
 * server's end, then ends its programs and itself, with status 0.  renewed:
 * there was one before it, which was ended; it says that instead, on each.
 */
_Noreturn void spawner_process(const struct spawner_program *programs, unsigned count,
			       const int *channels, unsigned channel_count, bool renewed);

/* Its first word, or that of who could not even come to it: error is 0, or errno. */
bool spawner_tell_ready(int channel, int error);

/*
 * spawner-monitor.c: keeps a spawner at the channels until the last of them is closed
 * at the server's end, and ends after it.
 */
_Noreturn void spawner_monitor(const struct spawner_program *programs, unsigned count,
			       const int *channels, unsigned channel_count);

#endif
