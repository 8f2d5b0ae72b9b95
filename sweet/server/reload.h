/* SPDX-License-Identifier: MIT */
/*
 * reload.h - the step to the next configuration while the server runs: all
 * of it, or nothing.
 *
 * A helper thread reads it and opens its folders; the main thread opens new
 * addresses and logs; then each runner takes it over in its own loop, where
 * running requests end by the configuration that they began with.
 */
#ifndef SWEET_RELOAD_H
#define SWEET_RELOAD_H

#include "event/thread-pool.h"
#include "server/thread.h"
#include "spawn/endpoints.h"
#include "spawn/reload-call.h"

struct reload {
	/* Given at the start, and what changes with a reload: */
	int argc;
	char **argv;
	struct server *server;
	struct server_threads *runners;
	struct endpoints *endpoints;
	struct config *config; /* referenced: the present one */
	struct reload_calls calls;
	/* When it is over, good or not; on the main thread. */
	void (*over)(struct reload *reload, bool good);

	/* reload.c's: */
	struct job job;
	struct config *next; /* read, not yet taken */
	GPtrArray *errors;
	char *fixed; /* keys that need a restart, as a line; NULL: none */
	bool busy;
	bool again;	      /* asked for while busy */
	bool ended;	      /* no more of it */
	GPtrArray *under_way; /* struct thread_change that no runner has taken yet; NULL: none */
};

#define RELOAD_ENDING "the server is ending"

/* What a caller is told of a refused reload, g_free. */
char *reload_lines(GPtrArray *errors);

/* Main thread.  One after the other; asking twice while one is under way is asking once. */
void reload_begin(struct reload *reload);

/* The server is about to end: what is under way is dropped. */
void reload_end(struct reload *reload);

/* After all threads have ended: gives back the configuration. */
void reload_clear(struct reload *reload);

#endif
