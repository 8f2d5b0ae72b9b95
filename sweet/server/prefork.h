/* SPDX-License-Identifier: MIT */
/*
 * prefork.h - arch mp: the parent of the processes that serve.
 *
 * It keeps the sockets and its privileges, starts the configured number of processes, and replaces
 * each that dies.  At a reload it reads the configuration and starts a new set of processes; when
 * all of these are ready, the old ones retire.
 */
#ifndef SWEET_PREFORK_H
#define SWEET_PREFORK_H

#include <stdbool.h>

struct config;
struct supervisor;

/*
 * Call it after server_main_open().  Returns when all processes have ended: in the parent, and in
 * each of them, which then ends as its parent does.  Returns false if they cannot serve; the reason
 * was logged.
 */
bool prefork_run(int argc, char **argv, const struct config *config, struct supervisor *supervisor);

#endif
