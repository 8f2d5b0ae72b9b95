/* SPDX-License-Identifier: MIT */
/*
 * log.h - messages for the operator, and the access log.
 *
 * Messages go to standard error at once, a line each.  Access lines are
 * gathered per thread and written when the thread is about to sleep or its
 * buffer is full; one write is one or more whole lines.
 */
#ifndef SWEET_LOG_H
#define SWEET_LOG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <slice.h>

#define LOG_BUFFER 16384

struct access_log {
	int fd; /* -1: off */
	size_t used;
	char buffer[LOG_BUFFER];
};

/* "sweet: " and the message; any thread. */
void log_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Opens what --access-log says: "off" (-1), "-" (standard output), or a file
 * to append to.  -errno on failure, with -1 for off given as *fd.
 */
int log_open_access(const char *where, int *fd);

/*
 * One line: client [date] "method target protocol" status bytes microseconds.
 * The request line is written with control characters and quotes escaped.
 */
void log_access(struct access_log *log, const char *client, const char *date,
		struct slice request_line, int status, uint64_t bytes, uint64_t microseconds);
void log_flush(struct access_log *log);

#endif
