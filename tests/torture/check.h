/* SPDX-License-Identifier: MIT */
/*
 * check.h - follows the body of one response and checks that it is one version of its
 * document (content.h), complete, and one that existed meanwhile.  Pure, except for
 * the shared memory.  One user at a time.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content.h"

#define CHECK_RANGES 4u

struct check_range {
	size_t from, to; /* the first byte, and the last */
};

struct check {
	struct content_board *board;
	uint64_t key;
	unsigned number;
	uint32_t least; /* the oldest possible version */
	uint32_t version;
	char kind;
	bool known;				 /* the version */
	bool ranged;				 /* parts of the document were requested ... */
	struct check_range ranges[CHECK_RANGES]; /* ... which */
	unsigned range_count;
	size_t from;	/* where the body, or this part, begins in the document ... */
	size_t to;	/* ... and, of a part, its last byte */
	size_t size;	/* of the document, as announced with a part */
	size_t done;	/* received bytes */
	char start[16]; /* the first of them, until the version is known */
	char why[200];	/* the error */
};

/* Call before the request is sent. board: NULL if the versions of files are unknown. */
void check_begin(struct check *check, struct content_board *board, char kind, unsigned number);

/* Only these bytes were requested; others, in order, if called again. */
void check_range(struct check *check, size_t from, size_t to);

/* The response is a part of the document, of size bytes.  Returns false if it was not requested. */
bool check_part(struct check *check, size_t first, size_t last, size_t size);

/* Returns how many of the requested parts exist. */
unsigned check_parts(const struct check *check, size_t size);

/* The response is the whole document, whatever was requested. */
void check_all(struct check *check);

/* Checks the next bytes.  Returns false if they are wrong. */
bool check_feed(struct check *check, const char *bytes, size_t length);

/*
 * No more bytes follow, of the document or this part.  Returns false if some are
 * missing, or if no such version existed.
 */
bool check_end(struct check *check);

/* The response says that there is no such part (416).  Returns false if there is one. */
bool check_none(struct check *check);

#endif
