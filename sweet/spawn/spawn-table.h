/* SPDX-License-Identifier: MIT */
/*
 * spawn-table.h - which programs the spawner may start: those that the pools of
 * the first configuration need.  Main thread; spawn_table_find() on any.
 */
#ifndef SWEET_SPAWN_TABLE_H
#define SWEET_SPAWN_TABLE_H

#include "config/configuration.h"
#include "spawn/privileges.h"
#include "spawn/spawner.h"

struct spawn_table;

/*
 * Forks the spawner, before privileges are given up, with a channel for each
 * of the threads; *table stays NULL when no pool needs it.  Programs whose pool
 * names no user are those of the server.  False: *why is one line (g_free).
 */
bool spawn_table_open(struct spawn_table **table, const struct config *config, unsigned threads,
		      const struct privileges *server, char **why);
void spawn_table_close(struct spawn_table *table); /* may be NULL */

/* The channels' answers come on the thread's loop; before it runs.  0 or -errno. */
int spawn_table_attach(struct spawn_table *table, unsigned thread, struct loop *loop);

struct spawner_channel *spawn_table_channel(struct spawn_table *table, unsigned thread);

/* The number of a pool's program, or -1: it was not known in time; table may be NULL. */
int spawn_table_find(const struct spawn_table *table, const struct pool_config *pool);

#endif
