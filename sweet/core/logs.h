/* SPDX-License-Identifier: MIT */
/*
 * logs.h - both logs of the whole server: opened, opened again, changed.
 */
#ifndef SWEET_LOGS_H
#define SWEET_LOGS_H

#include "config/configuration.h"
#include "core/server.h"

/*
 * Opens the logs that config names and takes it for all threads that are there:
 * at the start, when the configuration has changed, and when somebody has moved
 * the files.  False: *why is a line for the operator (g_free), and all is as
 * it was.  Main thread.
 */
bool logs_apply(struct server *server, const struct config *config, char **why);

/* A thread's part, before its loop runs.  False: as above. */
bool logs_join(struct server *server, struct thread *thread, char **why);

/* After all threads have ended. */
void logs_close(struct server *server);

#endif
