/* SPDX-License-Identifier: MIT */
/*
 * log-set.h - the open files of all access logs of a configuration.  It is constant and has a
 * reference for each thread that writes to them, and one of the server: the files are closed when
 * the last thread has changed to the next set.
 */
#ifndef SWEET_LOG_SET_H
#define SWEET_LOG_SET_H

#include <stdatomic.h>

struct config;
struct host;

struct log_set {
	_Atomic unsigned references;
	const struct config *config; /* referenced: its logs have the formats */
	unsigned wants;		     /* of all logs that are on: what is saved of a request */
	unsigned count;
	int fds[]; /* in the order of config->logs; -1: off */
};

/* Opens the files.  Returns NULL with *why, a line for the operator (g_free()). */
struct log_set *log_set_open(const struct config *config, char **why);

struct log_set *log_set_hold(struct log_set *set);
void log_set_release(struct log_set *set); /* may be NULL */

/*
 * Returns the number of the log for requests to a host, which may be of another configuration, or
 * NULL: then it is the log of the host that has its name now.
 */
unsigned log_set_number(const struct log_set *set, const struct config *config,
			const struct host *host);

#endif
