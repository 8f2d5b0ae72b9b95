/* SPDX-License-Identifier: MIT */
/*
 * conditional.h - preconditions of a request (RFC 9110, section 13): whether
 * it is to be done, and whether its Range counts.
 */
#ifndef SWEET_CONDITIONAL_H
#define SWEET_CONDITIONAL_H

#include <time.h>

#include "http/request.h"

enum condition {
	CONDITION_MATCH,
	CONDITION_UNMODIFIED_SINCE,
	CONDITION_NONE_MATCH,
	CONDITION_MODIFIED_SINCE,
	CONDITION_IF_RANGE,
	CONDITION_RANGE, /* no condition, but it depends on one */
	CONDITION_COUNT,
};

#define CONDITIONS_TEXT_MAX 1024 /* bytes */

/*
 * The fields of one request that conditions are made of, copied: a file may
 * have to be read before they can be evaluated, the request is gone then.
 */
struct conditions {
	bool any;	  /* the rest is good only with this */
	unsigned present; /* bit of each enum condition */
	unsigned short start[CONDITION_COUNT], length[CONDITION_COUNT];
	unsigned short used; /* bytes of text */
	char text[CONDITIONS_TEXT_MAX];
};

/*
 * Takes them out of a request, in one pass over its fields; lines of one name
 * become one value (RFC 9110, section 5.3).  False: they are too long.
 */
bool conditions_take(struct conditions *conditions, const struct request *request);

/* The value of one that is present. */
struct slice conditions_value(const struct conditions *conditions, enum condition which);

/* What the request asks about. */
struct representation {
	struct slice etag;
	time_t modified; /* as Last-Modified says */
};

enum condition_verdict {
	CONDITION_PROCEED,	 /* with the range, if there is one */
	CONDITION_PROCEED_WHOLE, /* as if there were no Range */
	CONDITION_NOT_MODIFIED,	 /* 304 */
	CONDITION_FAILED,	 /* 412 */
};

/*
 * Evaluates them in the order of RFC 9110, section 13.2.2, for GET or, with
 * head_only, HEAD, of a representation that exists.
 */
enum condition_verdict conditions_evaluate(const struct conditions *conditions, bool head_only,
					   const struct representation *representation, time_t now);

#endif
