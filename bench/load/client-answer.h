/* SPDX-License-Identifier: MIT */
/*
 * client-answer.h - follows one HTTP answer through bytes in pieces of any
 * size: status, where the body ends, whether the connection lasts.  Bodies may
 * be counted without being looked at.  Pure; one user at a time.
 */
#ifndef CLIENT_ANSWER_H
#define CLIENT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ANSWER_LINE_MAX 128u	    /* of a line, what is kept */
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
	unsigned kept;	   /* of the line that is not yet whole */
	bool begun, minor_one, with_length, chunked, close, keep;
	char line[ANSWER_LINE_MAX];
};

void answer_begin(struct answer *answer);

/*
 * Takes bytes until the answer is done or bad; how many it took.  What follows
 * a done answer is not its own.
 */
size_t answer_feed(struct answer *answer, const char *bytes, size_t length);

/* How many of the bytes to come are body, so that nobody needs to see them. */
uint64_t answer_droppable(const struct answer *answer);

/* Drops that many received bytes; not more than answer_droppable(). */
void answer_drop(struct answer *answer, uint64_t length);

/* The connection ended.  True: the answer is done, if it was not before. */
bool answer_end(struct answer *answer);

/* Of a done answer: whether the server keeps the connection. */
bool answer_keeps(const struct answer *answer);

#endif
