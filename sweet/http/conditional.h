/* SPDX-License-Identifier: MIT */
/*
 * conditional.h - preconditions of a request (RFC 9110, section 13): whether to
 * perform it, and whether its Range counts.
 */
#ifndef SWEET_CONDITIONAL_H
#define SWEET_CONDITIONAL_H

#include <stdbool.h>
#include <time.h>

#include "base/slice.h"

struct request;

enum condition {
	CONDITION_MATCH,
	CONDITION_UNMODIFIED_SINCE,
	CONDITION_NONE_MATCH,
	CONDITION_MODIFIED_SINCE,
	CONDITION_IF_RANGE,
	CONDITION_RANGE, /* not a condition, but depends on If-Range */
	CONDITION_COUNT,
};

#define CONDITIONS_TEXT_MAX 1024 /* bytes */

/*
 * A copy of the fields of one request that form its conditions: the server may have
 * to read a file before it evaluates them, and then the request is gone.
 */
struct conditions {
	bool any;	  /* false: the other fields are not set */
	unsigned present; /* one bit for each enum condition */
	unsigned short start[CONDITION_COUNT], length[CONDITION_COUNT];
	unsigned short used; /* bytes of text */
	char text[CONDITIONS_TEXT_MAX];
};

/*
 * Copies the conditions of a request in one pass over its fields; joins lines of
 * one name (RFC 9110, section 5.3).  Returns false if they are too long.
 */
bool conditions_take(struct conditions *conditions, const struct request *request);

/* Returns the value of a field that is present. */
struct slice conditions_value(const struct conditions *conditions, enum condition which);

/* What the conditions are compared with. */
struct representation {
	struct slice etag;
	time_t modified; /* as in Last-Modified */
	/* It is not the time of the last change, so other bytes may have had the same. */
	bool weak_date;
};

/*
 * For a representation that has variants in other codings.  Ignores the range if If-Range is a
 * date: the variants have the same one, so that parts of two could be mixed.
 */
void conditions_ignore_dated_range(struct conditions *conditions);

/* Whether If-Match or If-Range names that variant: the client has it, or a part of it. */
bool conditions_name(const struct conditions *conditions, struct slice etag);

enum condition_verdict {
	CONDITION_PROCEED,	 /* with the range, if there is one */
	CONDITION_PROCEED_WHOLE, /* as if there were no Range */
	CONDITION_NOT_MODIFIED,	 /* 304 */
	CONDITION_FAILED,	 /* 412 */
};

/*
 * Evaluates the conditions in the order of RFC 9110, section 13.2.2, for GET or,
 * with head_only, HEAD, of a representation that exists.
 */
enum condition_verdict conditions_evaluate(const struct conditions *conditions, bool head_only,
					   const struct representation *representation, time_t now);

#endif
