/* SPDX-License-Identifier: MIT */
/*
 * server-main.h - a process that serves, from its sockets to its end.
 *
 * Whatever can be wrong with the settings is found before anything starts;
 * whatever needs root is done before root is given up; and that, before there
 * are threads.  Once in a process; main thread.
 */
#ifndef SWEET_SERVER_MAIN_H
#define SWEET_SERVER_MAIN_H

#include <stdbool.h>
#include <sys/types.h>

#include "config/configuration.h"
#include "spawn/supervisor.h"

/*
 * Opens the logs and the addresses and writes the pid-file.  The configuration
 * is this one's from here on, the supervisor stays the caller's.  False: it
 * has been said why, and server_main_close() is to be called all the same.
 */
bool server_main_open(int argc, char **argv, struct config *config, struct supervisor *supervisor);

/* Gives up privileges and serves until it is asked to end.  False: it cannot, and said why. */
bool server_main_run(void);

void server_main_close(void);

/* Logs what is listened on. */
void server_main_announce(void);

/* Tells the supervisor.  good: not after a reload that was refused. */
void server_main_tell_ready(bool good);

/* Somebody has moved the files away.  False: the old ones are kept, and it has been said why. */
bool server_main_reopen_logs(void);

/* --- for the parent of processes that serve (prefork.h) --- */

/* What a process tells its parent, in one write. */
struct server_main_news {
	pid_t pid;
	enum { SERVER_MAIN_SERVES, SERVER_MAIN_REOPENED, SERVER_MAIN_KEPT } what;
};

/*
 * Addresses and logs of the next configuration, which it refers to; false: all stays as it was,
 * and errors has why.
 */
bool server_main_renew(struct config *next, GPtrArray *errors);

/*
 * In a new process, before server_main_run(): the sockets are shared with others,
 * and files, pid-file and supervisor are the parent's, with which this one
 * ends.  What the parent waits for is written to news_fd.
 */
void server_main_be_child(pid_t parent, int news_fd);

#endif
