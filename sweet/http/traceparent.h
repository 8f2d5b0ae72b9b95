/* SPDX-License-Identifier: MIT */
/*
 * traceparent.h - the field traceparent (W3C Trace Context, 2021): which trace a request belongs to.
 * Pure.
 */
#ifndef SWEET_TRACEPARENT_H
#define SWEET_TRACEPARENT_H

#include <stdbool.h>
#include <string.h>

struct request;
struct slice;

#define TRACEPARENT_LENGTH 55 /* "00-TRACE-PARENT-FLAGS": 32, 16 and 2 hexadecimal digits */
#define TRACEPARENT_TRACE 3   /* where the trace's id begins */
#define TRACEPARENT_TRACE_LENGTH 32
#define TRACEPARENT_PARENT 36 /* where the parent's id begins */
#define TRACEPARENT_PARENT_LENGTH 16
#define TRACEPARENT_FLAGS 53

/*
 * Finds the field of a request.  Returns false if there is none, more than one, or it is not
 * valid: then a new trace begins.  Of a later version, the part that this one has counts.
 */
bool traceparent_find(const struct request *request, struct slice *value);

/* Whether the trace of a valid value is recorded. */
static inline bool traceparent_is_sampled(const char *value)
{
	return strchr("13579bdf", value[TRACEPARENT_FLAGS + 1]);
}

#endif
