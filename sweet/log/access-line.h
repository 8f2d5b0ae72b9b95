/* SPDX-License-Identifier: MIT */
/*
 * access-line.h - a request's line in the access log, in four formats.
 */
#ifndef SWEET_ACCESS_LINE_H
#define SWEET_ACCESS_LINE_H

#include <stdint.h>
#include <time.h>

#include "base/slice.h"

/* In the order of the values of log-format. */
enum access_format { ACCESS_SHORT, ACCESS_COMMON, ACCESS_COMBINED, ACCESS_JSON };

/* Maximum bytes of a client's texts; longer ones are cut. */
#define ACCESS_REQUEST_MAX 2048
#define ACCESS_REFERER_MAX 1024
#define ACCESS_AGENT_MAX 512
#define ACCESS_HOST_MAX 256
#define ACCESS_USER_MAX 64

/* If a text is absent, its at is NULL. */
struct access_line {
	const char *remote; /* address */
	uint16_t remote_port;
	const char *date; /* IMF-fixdate of the response, DATE_LENGTH bytes; for the short format */
	struct slice user;
	struct slice request; /* the request line */
	struct slice referer, agent, host;
	int status;
	uint64_t bytes; /* of the body */
	uint64_t microseconds;
};

/* The current second in the formats of the log. */
struct access_clock {
	uint64_t began_ns; /* when it began, on the caller's monotonic clock */
	char local[96];	   /* 10/Oct/2000:13:55:36 -0700 */
	char utc[80];	   /* 2000-10-10T20:55:36 */
};

/* now_ns and real are the same moment on two clocks.  Accepts any year; never fails. */
void access_clock_set(struct access_clock *clock, struct timespec real, uint64_t now_ns);

/* Returns false if its second is over. */
static inline bool access_clock_good(const struct access_clock *clock, uint64_t now_ns)
{
	return now_ns - clock->began_ns < 1000000000u;
}

/* Returns the maximum length of the line in bytes. */
size_t access_line_most(const struct access_line *line);

/* Writes the line and its newline; returns the end. now_ns gives the milliseconds. */
char *access_line_write(char *to, enum access_format format, const struct access_line *line,
			const struct access_clock *clock, uint64_t now_ns);

#endif
