/* SPDX-License-Identifier: MIT */
/*
 * parts.h - an answer that has parts of a document (206): which they are, by the
 * lines of its head or by those of multipart/byteranges within its body, and
 * whether they are those that were asked for.  Pure, but for the board.
 */
#ifndef PARTS_H
#define PARTS_H

#include "check.h"

struct parts {
	struct check *check;
	bool multipart;
	bool told; /* first, last and size are of this answer or part */
	bool over; /* the line behind the last part has come */
	size_t first, last, size;
	size_t left;	/* bytes of this part that are still to come */
	unsigned count; /* parts that came */
	char boundary[71];
	char line[256]; /* as far as it has come */
	unsigned length;
};

/* Of the next answer. */
void parts_begin(struct parts *parts, struct check *check);

/* Bytes of the head, in any pieces. */
void parts_head(struct parts *parts, const char *bytes, size_t length);

/* Bytes of the body.  False: check->why says what is wrong. */
bool parts_body(struct parts *parts, const char *bytes, size_t length);

/* No more come.  False: there had to. */
bool parts_end(struct parts *parts);

#endif
