/* SPDX-License-Identifier: MIT */
/*
 * sandbox.h - the moment after which the server can do no more than it must:
 * between the opening of what needs root and the start of the threads.
 */
#ifndef SWEET_SANDBOX_H
#define SWEET_SANDBOX_H

#include "config/configuration.h"
#include "spawn/endpoints.h"
#include "spawn/privileges.h"

/*
 * Becomes who privileges say, after the files that config names were given to
 * them; with read-only, writes from here on only where logs and sockets are, and
 * in the folder of spools (may be NULL).  False: *why is a line for the operator
 * (g_free).
 */
bool sandbox_enter(const struct config *config, const struct privileges *privileges,
		   const struct endpoints *endpoints, const char *spool_folder, char **why);

#endif
