/* SPDX-License-Identifier: MIT */
/*
 * spawner-process.h - the small process that starts programs for the server.  Its
 * monitor (spawner-monitor.h) has closed all descriptors but the channels and the
 * first four.
 */
#ifndef SWEET_SPAWNER_PROCESS_H
#define SWEET_SPAWNER_PROCESS_H

#include <stdbool.h>

#include "spawn/spawner-program.h"

/*
 * Reports on the first channel that it is ready, or why not (then it exits with
 * status 1).  Serves the channels until the server has closed the last of them,
 * then kills its programs and exits with status 0. renewed: it replaces a killed
 * spawner; it reports that on each channel instead.
 */
_Noreturn void spawner_process(const struct spawner_program *programs, unsigned count,
			       const int *channels, unsigned channel_count, bool renewed);

/* Sends READY; error: 0 or errno.  Also for a monitor that could not start a spawner. */
bool spawner_tell_ready(int channel, int error);

#endif
