/* SPDX-License-Identifier: MIT */
/*
 * access-log.h - a thread's part of the access log.
 *
 * Lines are gathered in memory.  They are written when the thread is about to
 * sleep and the last write is a second ago, at the latest a second after that,
 * when the memory is full, when the log changes, and at the end; one write is
 * many whole lines.  The thread has a descriptor of its own, opened for
 * appending, so that it can leave one file for another without anybody else.
 */
#ifndef SWEET_ACCESS_LOG_H
#define SWEET_ACCESS_LOG_H

#include <stdatomic.h>

#include "event/loop.h"
#include "log/access-line.h"

#define ACCESS_LOG_BUFFER 65536 /* bytes */
#define ACCESS_LOG_MS 1000	/* between writes that need not be */

struct access_log {
	int fd; /* -1: off */
	enum access_format format;
	struct loop *loop;
	struct loop_hook hook; /* before a sleep */
	struct timer timer;    /* runs while lines wait */
	struct loop_task task; /* to take what comes */
	_Atomic int64_t coming;
	uint64_t written_ms;
	bool failing; /* and it was said */
	bool torn;    /* the file ends in the middle of a line */
	struct access_clock clock;
	size_t used;
	char buffer[ACCESS_LOG_BUFFER];
};

/*
 * Opens what access-log says: "off" (-1), "-" (standard output), or a file
 * to append to.  -errno on failure, with -1 for off given as *fd.
 */
int access_log_open(const char *where, int *fd);

/* Before the loop runs.  Takes over fd; -1: off. */
void access_log_start(struct access_log *log, struct loop *loop, int fd, enum access_format format);

/*
 * From now on to another descriptor, which is taken over, and in another
 * format: as soon as the log's thread comes to it, and what was gathered
 * before goes where it belonged.  Any one thread at a time.
 */
void access_log_change(struct access_log *log, int fd, enum access_format format);

/* On its thread.  The line is as of the loop's clock. */
void access_log_put(struct access_log *log, const struct access_line *line);
void access_log_flush(struct access_log *log);

/* Flushes and closes; the loop does not run any more. */
void access_log_stop(struct access_log *log);

/* True: lines have more of a request than its first line. */
static inline bool access_log_wants_fields(const struct access_log *log)
{
	return log->fd >= 0 && log->format >= ACCESS_COMBINED;
}

#endif
