/* SPDX-License-Identifier: MIT */
/*
 * spawner-process.h - the small process that starts programs for the server,
 * from its fork on.  Its monitor (spawner-monitor.h) has left it nothing else
 * open than the channels and the first four descriptors.
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

#endif
