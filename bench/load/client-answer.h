/* SPDX-License-Identifier: MIT */
/*
 * client-answer.h - follows one HTTP response through bytes in pieces of any size:
 * status, where the body ends, whether the connection is kept.  Bodies may be counted
 * without being read.  Pure; one user at a time.
 */
#ifndef CLIENT_ANSWER_H
#define CLIENT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ANSWER_LINE_MAX 128u	    /* of a line, how much is stored */
#define ANSWER_HEAD_MAX (64u << 10) /* a longer head is bad */

enum answer_state {
	ANSWER_STATUS,	/* in the status line */
	ANSWER_FIELDS,	/* in the fields */
	ANSWER_LENGTH,	/* in a body of known length */
	ANSWER_CLOSE,	/* in a body that ends with the connection */
	ANSWER_SIZE,	/* in the line before a chunk */
	ANSWER_CHUNK,	/* in a chunk */
	ANSWER_BREAK,	/* in the line end after a chunk */
	ANSWER_TRAILER, /* in the fields after the last chunk */
	ANSWER_DONE,
	ANSWER_BAD,
};

struct answer {
	enum answer_state state;
	unsigned status;
	uint64_t body;	   /* bytes of body so far */
	uint64_t left;	   /* of the body or the chunk */
	uint64_t declared; /* Content-Length, if there was one */
	unsigned head;	   /* bytes of lines so far */
	unsigned kept;	   /* of the incomplete line */
	bool begun, minor_one, with_length, chunked, close, keep;
	char line[ANSWER_LINE_MAX];
};

void answer_begin(struct answer *answer);

/*
 * Takes bytes until the response is complete or bad; returns how many.  Bytes after a
 * complete response do not belong to it.
 */
size_t answer_feed(struct answer *answer, const char *bytes, size_t length);

/* Returns how many of the next bytes are body, which need not be read. */
uint64_t answer_droppable(const struct answer *answer);

/* Drops that many received bytes; not more than answer_droppable(). */
void answer_drop(struct answer *answer, uint64_t length);

/* The connection has ended.  Returns true if the response is now complete. */
bool answer_end(struct answer *answer);

/* For a complete response: returns whether the server keeps the connection. */
bool answer_keeps(const struct answer *answer);

#endif
