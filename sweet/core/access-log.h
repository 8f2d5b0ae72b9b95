/* SPDX-License-Identifier: MIT */
/*
 * access-log.h - a thread's lines for one access log.
 *
 * Lines are collected in memory.  They are written when the thread is about to sleep and the last
 * write is a second ago, or at the latest one second later; also when the memory is full, when the
 * log changes, and at the end.  One write contains many whole lines, which is appended, so that
 * several threads can share the descriptor.
 *
 * Nothing waits for the reader of a pipe: lines stay in memory until they can be written, also to
 * the next file.  If the memory is full, lines are lost; they are counted, and the error log says
 * so.
 */
#ifndef SWEET_ACCESS_LOG_H
#define SWEET_ACCESS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/timer.h"
#include "event/loop.h"
#include "log/access-line.h"
#include "log/log-output.h"

struct log_format;
struct loop;

#define ACCESS_LOG_BUFFER 65536 /* bytes */
#define ACCESS_LOG_MS 1000	/* between writes that are not urgent */

struct access_log {
	struct log_output output;	 /* of log-set.c; fd -1: off */
	const struct log_format *format; /* the same */
	struct loop *loop;
	struct loop_hook hook; /* before a sleep */
	struct timer timer;    /* runs while lines are buffered */
	uint64_t written_ms;
	bool failing;  /* and the failure was logged */
	unsigned lost; /* lines since then */
	bool torn;     /* the file ends in the middle of a line */
	struct access_clock clock;
	size_t used;
	char buffer[ACCESS_LOG_BUFFER];
};

/*
 * Opens the value of access-log: "off" (*fd -1), "-" (standard output), or a file to append to.
 * Returns -errno on failure.
 */
int access_log_open(const char *where, int *fd);

/* Starts the log, on its thread or before its loop runs.  It ends only with the loop. */
void access_log_start(struct access_log *log, struct loop *loop, int fd,
		      const struct log_format *format);

/* Changes to another descriptor and format; buffered lines go to the previous one if it takes them. */
void access_log_use(struct access_log *log, int fd, const struct log_format *format);

/* Runs on the log's thread.  The line gets the time of the loop's clock. */
void access_log_put(struct access_log *log, const struct access_line *line);
void access_log_flush(struct access_log *log);

/* Flushes for the last time: what cannot be written now is lost. */
void access_log_end(struct access_log *log);

#endif
