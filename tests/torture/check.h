/* SPDX-License-Identifier: MIT */
/*
 * check.h - follows the body of one answer and tells whether it is one version
 * of its document (content.h), all of it, and one that there was meanwhile.
 * Pure, but for the board.  One user at a time.
 */
#ifndef CHECK_H
#define CHECK_H

#include "content.h"

#define CHECK_RANGES 4u

struct check_range {
	size_t from, to; /* the first byte, and the last */
};

struct check {
	struct content_board *board;
	uint64_t key;
	unsigned number;
	uint32_t least; /* the oldest version that it may be */
	uint32_t version;
	char kind;
	bool known;				 /* the version */
	bool ranged;				 /* parts of the document were wanted ... */
	struct check_range ranges[CHECK_RANGES]; /* ... which */
	unsigned range_count;
	size_t from;	/* where the body, or this part, begins in the document ... */
	size_t to;	/* ... and, of a part, its last byte */
	size_t size;	/* of the document, as told with a part */
	size_t done;	/* bytes that came */
	char start[16]; /* the first of them, until the version is known */
	char why[200];	/* what is wrong */
};

/* Before the request is sent.  board: NULL, if nobody tells the versions of files. */
void check_begin(struct check *check, struct content_board *board, char kind, unsigned number);

/* Of the same request, that only these bytes are wanted; others, in order, if there were some. */
void check_range(struct check *check, size_t from, size_t to);

/* It is a part of the document, of size bytes.  False: that was not asked for. */
bool check_part(struct check *check, size_t first, size_t last, size_t size);

/* How many parts there are of what was asked for. */
unsigned check_parts(const struct check *check, size_t size);

/* It is all of the document, whatever was asked for. */
void check_all(struct check *check);

/* The next bytes.  False: they are wrong. */
bool check_feed(struct check *check, const char *bytes, size_t length);

/*
 * No more come, of the document or this part.  False: there had to, or it is not
 * a version that there was.
 */
bool check_end(struct check *check);

/* There was no such part (416).  False: there was one. */
bool check_none(struct check *check);

#endif
