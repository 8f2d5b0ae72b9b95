/* SPDX-License-Identifier: MIT */
/*
 * parts.h - a response with parts of a document (206): reads the ranges from the
 * fields of its head or from multipart/byteranges in its body, and checks that they
 * were requested.  Pure, except for the shared memory.
 */
#ifndef PARTS_H
#define PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "check.h"

struct parts {
	struct check *check;
	bool multipart;
	bool has_range; /* first, last and size are those of this response or part */
	bool over;	/* the line after the last part was read */
	size_t first, last, size;
	size_t left;	/* remaining bytes of this part */
	unsigned count; /* received parts */
	char boundary[71];
	char line[256]; /* as far as it was received */
	unsigned length;
};

/* Starts the next response. */
void parts_begin(struct parts *parts, struct check *check);

/* Reads bytes of the head, in any pieces. */
void parts_head(struct parts *parts, const char *bytes, size_t length);

/* Reads bytes of the body.  Returns false if they are wrong: check->why says why. */
bool parts_body(struct parts *parts, const char *bytes, size_t length);

/* No more bytes follow.  Returns false if some are missing. */
bool parts_end(struct parts *parts);

#endif
