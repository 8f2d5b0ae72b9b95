/* SPDX-License-Identifier: MIT */
/*
 * server-main-internal.h - what serves in a process, as the sources of server-main.h
 * see it.  Main thread.
 */
#ifndef SWEET_SERVER_MAIN_INTERNAL_H
#define SWEET_SERVER_MAIN_INTERNAL_H

#include "server/reload.h"
#include "server/server-main.h"

struct program {
	struct reload reload; /* with the present configuration */
	struct server server;
	struct endpoints endpoints;
	struct server_threads *runners;
	struct supervisor *supervisor; /* NULL: the parent's, whose child this is */
	pid_t parent;		       /* 0: this is nobody's child */
	int news_fd;		       /* hears what the child does; -1: it has no parent */
	char *pid_file;		       /* written; of the first configuration */
	int signal_fd;
	struct loop_watch signal, cache;
	struct loop_task more; /* of the cache's work */
	bool more_posted;
	struct timer delay, watchdog;
	unsigned watchdog_ms;
	unsigned signals; /* to end, so far */
};

extern struct program program;

/* --- server-main.c --- */

/* Logs the line; false. */
bool server_main_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same; frees the line. */
bool server_main_complain_of(char *line);

/* Signals are read from a descriptor from now on.  False: it has been said why. */
bool server_main_open_signals(void);

/* --- server-main-privileged.c --- */

/* What needs root; then that is given up.  False: it has been said why. */
bool server_main_enter(void);

/* --- server-main-open.c --- */

/* What threads share, and their loops.  False: it has been said why. */
bool server_main_open_shared(void);

#endif
