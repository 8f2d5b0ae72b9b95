/* SPDX-License-Identifier: MIT */
/*
 * sandbox.h - restricts the server to what it needs, after it has opened what
 * requires root and before it starts threads.
 */
#ifndef SWEET_SANDBOX_H
#define SWEET_SANDBOX_H

#include <stdbool.h>

struct config;
struct endpoints;
struct privileges;

/*
 * Gives the files that config names to the user of privileges, and becomes that
 * user.  With read-only, later writes are possible only where logs and sockets are,
 * and in the spool folder (may be NULL).  Returns false with a line for the
 * operator in *why (g_free).
 */
bool sandbox_enter(const struct config *config, const struct privileges *privileges,
		   const struct endpoints *endpoints, const char *spool_folder, char **why);

#endif
