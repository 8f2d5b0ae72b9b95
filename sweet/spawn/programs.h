/* SPDX-License-Identifier: MIT */
/*
 * programs.h - which programs the starter may start: those that the pools of
 * the first configuration need.  Main thread; programs_find() on any.
 */
#ifndef SWEET_PROGRAMS_H
#define SWEET_PROGRAMS_H

#include "config/configuration.h"
#include "spawn/privileges.h"
#include "spawn/starter.h"

struct programs;

/*
 * Forks the starter, before privileges are given up, with a channel for each
 * of the threads; *programs stays NULL when no pool needs it.  Programs whose pool
 * names no user are those of the server.  False: *why is one line (g_free).
 */
bool programs_open(struct programs **programs, const struct config *config, unsigned threads,
		   const struct privileges *server, char **why);
void programs_close(struct programs *programs); /* may be NULL */

/* The channels' answers come on the thread's loop; before it runs.  0 or -errno. */
int programs_attach(struct programs *programs, unsigned thread, struct loop *loop);

struct starter_channel *programs_channel(struct programs *programs, unsigned thread);

/* The number of a pool's program, or -1: it was not known in time; programs may be NULL. */
int programs_find(const struct programs *programs, const struct pool_config *pool);

#endif
