/* SPDX-License-Identifier: MIT */
/*
 * body.h - the body of one request as it comes in: decoded, bounded, and
 * either dropped or gathered into units that a worker can be given: one of it
 * all, or one after another of a window's size.
 */
#ifndef SWEET_BODY_H
#define SWEET_BODY_H

#include <stdatomic.h>

#include <nabc.h>

#include "http/chunked.h"
#include "http/request.h"

/* Bytes of bodies that are kept for a while, of all threads together. */
struct body_budget {
	_Atomic uint64_t used;
	uint64_t most;
};

enum body_framing { BODY_NONE, BODY_LENGTH, BODY_CHUNKED };

/* The caller's memory; all zeros: no body. */
struct body {
	enum body_framing framing;  /* BODY_NONE: all of it has come */
	uint64_t left;		    /* BODY_LENGTH: bytes to come */
	struct chunked chunked;	    /* BODY_CHUNKED */
	uint64_t length;	    /* bytes of content so far */
	uint64_t limit;		    /* that they may not exceed */
	struct body_budget *budget; /* NULL: the content is dropped */
	size_t window;		    /* bytes of content that are gathered at most */
	char *content;
	size_t gathered; /* bytes of content */
	size_t room;	 /* of content, taken from the budget */
};

#define BODY_WHOLE SIZE_MAX /* a window for all of it */

/* There is one. */
void body_expect(struct body *body, const struct request *request, uint64_t limit);

/*
 * What follows the head of request; dropped if nobody asks for it, limit bytes
 * at most.  The one before is over or was ended.
 */
static inline void body_begin(struct body *body, const struct request *request, uint64_t limit)
{
	if (request->content_length || request->chunked)
		body_expect(body, request, limit);
}

/*
 * The content is to be kept, from its first byte on; limit: bytes of all of it,
 * window: bytes at a time, or fewer when memory is short.  Again when a window was made a unit: the limit may
 * be another.  0, or -413: its length is known and more than the limit.
 */
int body_keep(struct body *body, uint64_t limit, size_t window, struct body_budget *budget);

/*
 * Takes what belongs to the body of data[0, length), and what the window has
 * room for if the content is kept.  Returns its bytes, or
 * the negated status of the answer: -400 and -431 (see chunked.h), -413 more
 * than the limit, -503 no memory.
 */
ssize_t body_take(struct body *body, const char *data, size_t length);

static inline bool body_is_over(const struct body *body)
{
	return body->framing == BODY_NONE;
}

/* More is known to come than the limit lets be taken: reading on is no use. */
bool body_is_hopeless(const struct body *body);

/* All of it has come, or a whole window of what is kept: a unit is to be made. */
static inline bool body_is_ready(const struct body *body)
{
	return body_is_over(body) || (body->budget && body->gathered == body->window);
}

/*
 * Makes a sealed unit of the content that is gathered, with a hold of the caller's, who
 * releases and destroys it.  *id: 0 if there is none.  The window is empty
 * then, and what it had of the budget is kept for what follows.  0 or -errno.
 */
int body_unit(struct body *body, size_t *id, struct NC_hold *hold);

/* What is still to come is dropped after all, limit bytes at most. */
void body_drop(struct body *body, uint64_t limit);

/* Lets go of the content. */
void body_end(struct body *body);

#endif
