/* SPDX-License-Identifier: MIT */
/*
 * conditional.h - preconditions of a request (RFC 9110, section 13): whether to
 * perform it, and whether its Range counts.
 */
#ifndef SWEET_CONDITIONAL_H
#define SWEET_CONDITIONAL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/slice.h"

struct request;

/*
 * Entity tags (RFC 9110, section 8.8.3): made from a file's version, found in clients' fields.
 */
#define ETAG_LENGTH 18 /* with quotes */
#define ETAG_WEAK "W/" /* before a weak tag */

/* What a tag is made of; in the order of the values of "etag". */
enum etag_kind {
	ETAG_FILE, /* everything */
	ETAG_TIME, /* size and time of modification, which copies on other machines have, too */
};

/* Everything that distinguishes one version of a file from another. */
struct etag_source {
	uint64_t device, inode, size;
	int64_t modified_s, modified_ns, changed_s, changed_ns;
	uint64_t coded; /* 0: the file; else how it was compressed */
};

/*
 * Writes the strong tag of that version, exactly ETAG_LENGTH bytes, no NUL.  Equal
 * sources give equal tags, also after a restart; a tag does not reveal its source.
 */
void etag_format(const struct etag_source *source, char *out);

static inline bool etag_is_weak(struct slice tag)
{
	return tag.length >= 2 && memcmp(tag.at, ETAG_WEAK, 2) == 0;
}

/* Returns true if both tags are the same by weak comparison. */
bool etag_is_same(struct slice one, struct slice other);

/*
 * Returns true if a field value, "*" or a list of tags, contains our strong tag.
 * Strong comparison (If-Match) ignores weak tags; weak comparison (If-None-Match)
 * treats W/"x" as "x".  A list is read until its first syntax error.
 */
bool etag_listed(struct slice list, struct slice tag, bool strong);

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
