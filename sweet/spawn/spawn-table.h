/* SPDX-License-Identifier: MIT */
/*
 * spawn-table.h - the programs that the spawner may start: those of the pools in
 * the first configuration.  Main thread; spawn_table_find() on any thread.
 */
#ifndef SWEET_SPAWN_TABLE_H
#define SWEET_SPAWN_TABLE_H

#include <stdbool.h>

struct spawn_table;
struct config;
struct loop;
struct pool_config;
struct privileges;

/*
 * Forks the spawner, before privileges are dropped, with a channel for each thread;
 * *table stays NULL if no pool needs it.  Programs whose pool names no user run as
 * the server's user.  Returns false with one line in *why (g_free).
 */
bool spawn_table_open(struct spawn_table **table, const struct config *config, unsigned threads,
		      const struct privileges *server, char **why);
void spawn_table_close(struct spawn_table *table); /* may be NULL */

/*
 * Delivers the channel's responses on the thread's loop; call it before the loop
 * runs.  Returns 0 or -errno.
 */
int spawn_table_attach(struct spawn_table *table, unsigned thread, struct loop *loop);

/* Before the first loop runs: waits for starts of its thread, at most ms; table may be NULL. */
void spawn_table_settle(struct spawn_table *table, unsigned ms);

struct spawner_channel *spawn_table_channel(struct spawn_table *table, unsigned thread);

/*
 * Returns the number of a pool's program, or -1 if it was not configured at
 * startup; table may be NULL.
 */
int spawn_table_find(const struct spawn_table *table, const struct pool_config *pool);

/*
 * Returns false with one line in *why (g_free) if CGI programs of the table need a
 * variable that was not configured at startup; table may be NULL.
 */
bool spawn_table_knows_variables(const struct spawn_table *table, const struct config *config,
				 char **why);

#endif
