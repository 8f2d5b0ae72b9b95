/* SPDX-License-Identifier: MIT */
/*
 * server-main.h - a process that serves, from its sockets to its end.
 *
 * It checks all settings before it starts anything, does everything that needs root before it drops
 * privileges, and drops privileges before it starts threads.  Once for each process; main thread.
 */
#ifndef SWEET_SERVER_MAIN_H
#define SWEET_SERVER_MAIN_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

struct config;
struct supervisor;

/*
 * Opens the logs and the addresses and writes the pid-file.  Takes over the configuration; the
 * supervisor remains the caller's.  Returns false on failure, which was logged; the caller has to
 * call server_main_close() even then.
 */
bool server_main_open(int argc, char **argv, const struct config *config,
		      struct supervisor *supervisor);

/* Drops privileges and serves until it is told to end.  Returns false on failure; it was logged. */
bool server_main_run(void);

void server_main_close(void);

/* Logs the addresses. */
void server_main_announce(void);

/* Notifies the supervisor. good: false after a refused reload. */
void server_main_report_ready(bool good);

/* Reopens the logs after the files were moved; false: keeps the old ones, and logs why. */
bool server_main_reopen_logs(void);

/* --- for the parent of processes that serve (prefork.h) --- */

/* A message of a child to its parent, in one write. */
struct server_main_news {
	pid_t pid;
	enum { SERVER_MAIN_SERVES, SERVER_MAIN_REOPENED, SERVER_MAIN_KEPT } what;
};

/*
 * Opens addresses and logs of the next configuration, and takes a reference to it.  Returns false
 * with errors if nothing has changed.
 */
bool server_main_renew(const struct config *next, GPtrArray *errors);

/*
 * Call it in a new child, before server_main_run(): the sockets are shared with others; files,
 * pid-file and supervisor belong to the parent, and the child ends with it.  Messages to the parent
 * are written to news_fd.
 */
void server_main_be_child(pid_t parent, int news_fd);

#endif
