/* SPDX-License-Identifier: MIT */
/*
 * access-log.h - a thread's part of the access log.
 *
 * Lines are collected in memory.  They are written when the thread is about to sleep and the last
 * write is a second ago, or at the latest one second later; also when the memory is full, when the
 * log changes, and at the end.  One write contains many whole lines.  The thread has its own
 * descriptor, opened for appending, so that it can change to another file independently of other
 * threads.
 */
#ifndef SWEET_ACCESS_LOG_H
#define SWEET_ACCESS_LOG_H

#include <stdatomic.h>

#include "event/loop.h"
#include "log/access-line.h"

#define ACCESS_LOG_BUFFER 65536 /* bytes */
#define ACCESS_LOG_MS 1000	/* between writes that are not urgent */

struct access_log {
	int fd; /* -1: off */
	enum access_format format;
	struct loop *loop;
	struct loop_hook hook; /* before a sleep */
	struct timer timer;    /* runs while lines are buffered */
	struct loop_task task; /* to take the next descriptor */
	_Atomic int64_t coming;
	uint64_t written_ms;
	bool failing; /* and the failure was logged */
	bool torn;    /* the file ends in the middle of a line */
	struct access_clock clock;
	size_t used;
	char buffer[ACCESS_LOG_BUFFER];
};

/*
 * Opens the value of access-log: "off" (*fd -1), "-" (standard output), or a file to append to.
 * Returns -errno on failure.
 */
int access_log_open(const char *where, int *fd);

/* Starts the log before the loop runs.  Takes over fd; -1: off. */
void access_log_start(struct access_log *log, struct loop *loop, int fd, enum access_format format);

/*
 * Changes to another descriptor, which it takes over, and another format, as soon as the log's
 * thread processes this; buffered lines go to the previous one.  Only one thread at a time may call
 * it.
 */
void access_log_change(struct access_log *log, int fd, enum access_format format);

/* Runs on the log's thread.  The line gets the time of the loop's clock. */
void access_log_put(struct access_log *log, const struct access_line *line);
void access_log_flush(struct access_log *log);

/* Flushes and closes; the loop does not run any more. */
void access_log_stop(struct access_log *log);

/* Whether lines contain more of a request than its first line. */
static inline bool access_log_wants_fields(const struct access_log *log)
{
	return log->fd >= 0 && log->format >= ACCESS_COMBINED;
}

#endif
