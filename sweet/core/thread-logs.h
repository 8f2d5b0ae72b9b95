/* SPDX-License-Identifier: MIT */
/*
 * thread-logs.h - a thread's end of all access logs: which files are open, and its lines for each.
 */
#ifndef SWEET_THREAD_LOGS_H
#define SWEET_THREAD_LOGS_H

#include "event/loop.h"

struct access_line;
struct log_set;
struct loop;

struct thread_logs {
	unsigned wants; /* what is saved of a request, enum log_want; 0: all logs are off */
	struct log_set *set;
	struct access_log **all; /* by number; NULL: no line was written yet */
	unsigned count;		 /* of all[] */
	struct loop *loop;
	struct loop_task task; /* to take the next set */
	_Atomic(struct log_set *) coming;
};

/* Starts the logs before the loop runs, with a reference of the caller's to the set. */
void thread_logs_start(struct thread_logs *logs, struct loop *loop, struct log_set *set);

/*
 * Changes to another set, with a reference of the caller's, as soon as the logs' thread processes
 * this; buffered lines go to the previous files.  Only one thread at a time may call it.
 */
void thread_logs_change(struct thread_logs *logs, struct log_set *set);

/* Runs on the logs' thread, as the next one; number: as log_set_number() returns it. */
void thread_logs_put(struct thread_logs *logs, unsigned number, const struct access_line *line);

/* Flushes and releases the set; the loop does not run any more.  logs: or NULL. */
void thread_logs_stop(struct thread_logs *logs);

#endif
