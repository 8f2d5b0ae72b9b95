/* SPDX-License-Identifier: MIT */
/*
 * reload.h - changes to the next configuration while the server runs, completely or not at all.
 *
 * A helper thread reads it and opens its directories; the main thread opens new addresses and logs;
 * then each thread takes it over in its own loop, where running requests end with the configuration
 * that they began with.
 */
#ifndef SWEET_RELOAD_H
#define SWEET_RELOAD_H

#include <glib.h>
#include <stdbool.h>

#include "event/thread-pool.h"
#include "process/reload-call.h"

struct config;
struct site;
struct endpoints_wanted;

struct reload {
	/* Given at the start, changed by a reload: */
	int argc;
	char **argv;
	struct server *server;
	struct server_threads *runners;
	struct endpoints *endpoints;
	struct site *site; /* a reference: the current one */
	struct reload_calls calls;
	/* Called at the end of a reload, successful or not; on the main thread. */
	void (*over)(struct reload *reload, bool good);

	/* Private to reload.c: */
	struct job job;
	struct site *next; /* read, not taken over yet */
	GPtrArray *errors;
	char *fixed; /* keys that need a restart, as a line; or NULL */
	bool busy;
	bool again;	      /* requested during a reload */
	bool ended;	      /* no more reloads */
	GPtrArray *under_way; /* struct thread_change that no thread has taken over yet; or NULL */
};

#define RELOAD_ENDING "the server is ending"

/* Returns what the caller of a refused reload is told; free it with g_free(). */
char *reload_lines(GPtrArray *errors);

/* Returns the addresses that the configuration wants, valid as long as it is. */
struct endpoints_wanted reload_endpoints(const struct config *config);

/* Main thread.  Requests during a reload cause one more reload. */
void reload_begin(struct reload *reload);

/* The server is about to end: drops a running reload. */
void reload_end(struct reload *reload);

/* Call it after all threads have ended: releases the configuration. */
void reload_clear(struct reload *reload);

#endif
