/* SPDX-License-Identifier: MIT */
/*
 * prefork.h - arch mp: the parent of the processes that serve.
 *
 * It keeps the sockets and whatever rights it was started with, starts as many
 * processes as are wanted, and another for each that dies.  At a reload it reads
 * the configuration and starts a new set of processes; when all of these serve,
 * the old ones retire.
 */
#ifndef SWEET_PREFORK_H
#define SWEET_PREFORK_H

#include "config/configuration.h"
#include "spawn/supervisor.h"

/*
 * After server_main_open().  Returns when all processes have ended, in the parent
 * and also in each of them, which then ends as its parent does.  False: they
 * cannot serve, and somebody has said why.
 */
bool prefork_run(int argc, char **argv, struct config *config, struct supervisor *supervisor);

#endif
