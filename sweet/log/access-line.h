/* SPDX-License-Identifier: MIT */
/*
 * access-line.h - a request's line in the access log, in the fixed formats, and what
 * templates need (template-line.h).
 */
#ifndef SWEET_ACCESS_LINE_H
#define SWEET_ACCESS_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/slice.h"
#include "log/log-format.h"

struct timespec;

/* Maximum bytes of a client's texts; longer ones are cut. */
#define ACCESS_REQUEST_MAX 2048
#define ACCESS_REFERER_MAX 1024
#define ACCESS_AGENT_MAX 512
#define ACCESS_HOST_MAX 256
#define ACCESS_USER_MAX 64
#define ACCESS_FIELD_MAX 512 /* request.NAME, response.NAME */
#define ACCESS_NAME_MAX 128  /* texts of the server */

#define ACCESS_UNKNOWN UINT64_MAX /* for a number that was not measured */

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
	/* For JSON and templates; ACCESS_UNKNOWN: there was no such part. */
	uint64_t queue_us, program_us, send_us;
	const char *request_id; /* for JSON and templates; NULL: none */
	struct slice trace_id;	/* the same */
	/* For templates alone: */
	uint64_t head_bytes;				     /* of the response, as in HTTP/1.1 */
	const char *tls_version, *tls_cipher, *pool, *cache; /* or NULL */
	const struct slice *fields; /* of the request, as the parts of the template count them */
	unsigned field_count;
	struct slice head; /* header lines of the response */
};

/* The words of a request line. */
struct access_request {
	struct slice method, target, protocol;
};

/* A line without three words has no method and no protocol; all of it is the target. */
void access_request_split(struct access_request *request, struct slice line);

/* The current second in the formats of the log. */
struct access_clock {
	uint64_t began_ns; /* when it began, on the caller's monotonic clock */
	char local[96];	   /* 10/Oct/2000:13:55:36 -0700 */
	char utc[80];	   /* 2000-10-10T20:55:36 */
};

/* now_ns and real are the same moment on two clocks.  Accepts any year; never fails. */
void access_clock_set(struct access_clock *clock, struct timespec real, uint64_t now_ns);

/* Writes now_ns like 2000-10-10T20:55:36.123Z, at most 90 bytes; returns the end. */
char *access_clock_write(char *to, const struct access_clock *clock, uint64_t now_ns);

/* Returns false if its second is over. */
static inline bool access_clock_good(const struct access_clock *clock, uint64_t now_ns)
{
	return now_ns - clock->began_ns < 1000000000u;
}

/* Returns the maximum length of the line in bytes; not for templates, as the next one. */
size_t access_line_most(const struct access_line *line);

/* Writes the line and its newline; returns the end. now_ns gives the milliseconds. */
char *access_line_write(char *to, enum access_format format, const struct access_line *line,
			const struct access_clock *clock, uint64_t now_ns);

#endif
