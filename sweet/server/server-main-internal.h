/* SPDX-License-Identifier: MIT */
/*
 * server-main-internal.h - the state of a process that serves; private to the sources of
 * server-main.h.  Main thread.
 */
#ifndef SWEET_SERVER_MAIN_INTERNAL_H
#define SWEET_SERVER_MAIN_INTERNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/timer.h"
#include "core/server.h"
#include "event/loop.h"
#include "process/endpoints.h"
#include "server/reload.h"

struct program {
	struct reload reload; /* with the current configuration */
	struct server server;
	struct endpoints endpoints;
	struct server_threads *runners;
	struct supervisor *supervisor; /* NULL: this is a child, the parent has it */
	pid_t parent;		       /* 0: this is not a child */
	int news_fd;		       /* pipe to the parent; -1: no parent */
	char *pid_file;		       /* NULL unless written; of the first configuration */
	int signal_fd;
	struct loop_watch signal, cache;
	struct loop_task more; /* of the cache's work */
	bool more_posted;
	struct timer delay, watchdog;
	unsigned watchdog_ms;
	unsigned signals; /* to end the server, so far */
};

extern struct program program;

/* --- server-main.c --- */

/* Logs the line; returns false. */
bool server_main_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Logs the line and frees it; returns false. */
bool server_main_complain_of(char *line);

/* Reads signals from a descriptor from now on.  Returns false if that fails; it was logged. */
bool server_main_open_signals(void);

/* --- server-main-privileged.c --- */

/* Does what needs root, then drops privileges.  Returns false on failure; it was logged. */
bool server_main_enter(void);

/* --- server-main-open.c --- */

/* Opens what threads share, and their loops.  Returns false on failure; it was logged. */
bool server_main_open_shared(void);

#endif
