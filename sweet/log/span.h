/* SPDX-License-Identifier: MIT */
/*
 * span.h - a request as the server's span of a trace (OpenTelemetry): as the data of one thread, and as
 * a record for another.
 */
#ifndef SWEET_SPAN_H
#define SWEET_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPAN_TRACE_DIGITS 32
#define SPAN_ID_DIGITS 16

enum span_text {
	SPAN_LINE,   /* the request's first line */
	SPAN_HOST,   /* its field Host */
	SPAN_AGENT,  /* User-Agent */
	SPAN_CLIENT, /* address */
	SPAN_POOL,
	SPAN_TEXTS
};

struct span {
	char trace[SPAN_TRACE_DIGITS + 1], id[SPAN_ID_DIGITS + 1];
	char parent[SPAN_ID_DIGITS + 1]; /* "": it begins the trace */
	bool https;
	uint16_t client_port;
	int status;	 /* 0: the response was cut off */
	uint64_t target; /* number of the collector's; the exporter sets it */
	uint64_t began_ns, ended_ns;
	/* For the parts of the time, on the same clock; 0: it did not happen. */
	uint64_t ready_ns, submitted_ns, answered_ns, responded_ns;
	const char *texts[SPAN_TEXTS]; /* NULL: unknown; in a span_copy(), they end with a NUL */
	size_t lengths[SPAN_TEXTS];
};

/* Returns the bytes that a copy needs, with its texts. */
size_t span_size(const struct span *span);

/* Writes a copy to memory that is aligned to 8 bytes. */
void span_copy(void *to, const struct span *span);

#endif
