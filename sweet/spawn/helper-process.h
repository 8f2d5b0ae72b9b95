/* SPDX-License-Identifier: MIT */
/*
 * helper-process.h - what a small process does first that the server forks before it drops its
 * privileges: it keeps nothing of the server but its channels.
 */
#ifndef SWEET_HELPER_PROCESS_H
#define SWEET_HELPER_PROCESS_H

/*
 * Gives the process its name, takes signals from it, closes everything but standard error and the
 * channels, which get other numbers (own[]; also valid on failure), and drops capabilities.  Other
 * processes of its user cannot read its memory.  It ends with its channels, not by a signal to its
 * group.  Returns 0 or -errno.
 */
int helper_process_enter(const char *name, const int *channels, unsigned count, int *own);

#endif
