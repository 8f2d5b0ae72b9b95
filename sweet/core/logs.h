/* SPDX-License-Identifier: MIT */
/*
 * logs.h - opens, reopens and changes all logs of the whole server.
 */
#ifndef SWEET_LOGS_H
#define SWEET_LOGS_H

#include <stdbool.h>

struct config;
struct server;
struct thread;

/*
 * Opens the logs that config names, and uses config for all threads: at the start, when the
 * configuration has changed, and when the files have been moved.  Returns false with *why, a line
 * for the operator (g_free()), and changes nothing then.  Main thread.
 */
bool logs_apply(struct server *server, const struct config *config, char **why);

/* Sends spans where config says, once server->spans is open; logs_apply() does it from then on. */
void logs_use_collector(struct server *server, const struct config *config);

/* Sets up a thread's part, before its loop runs. */
void logs_join(struct server *server, struct thread *thread);

/* Call it after all threads have ended. */
void logs_close(struct server *server);

#endif
