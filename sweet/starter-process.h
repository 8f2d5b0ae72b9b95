/* SPDX-License-Identifier: MIT */
/*
 * starter-process.h - the small process that starts programs for the server,
 * from its fork on.
 */
#ifndef SWEET_STARTER_PROCESS_H
#define SWEET_STARTER_PROCESS_H

#include <starter-program.h>

/*
 * Serves the channels until the last of them is closed at the server's end,
 * then ends its programs and itself.
 */
_Noreturn void starter_process(const struct starter_program *programs, unsigned count,
			       const int *channels, unsigned channel_count);

#endif
