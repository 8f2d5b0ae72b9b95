/* SPDX-License-Identifier: MIT */
/*
 * body.h - the body of one request as it comes in: decoded, bounded, and
 * either dropped or gathered into a unit that a worker can be given.
 */
#ifndef SWEET_BODY_H
#define SWEET_BODY_H

#include <stdatomic.h>

#include <chunked.h>
#include <request.h>

/* Bytes of bodies that are being gathered, of all threads together. */
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
	char *content;
	size_t room; /* of content, taken from the budget */
};

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
 * The content is to be kept, before any of it has come; limit: bytes.  0, or
 * -413: its length is known and more than that.
 */
int body_keep(struct body *body, uint64_t limit, struct body_budget *budget);

/*
 * Takes what belongs to the body of data[0, length).  Returns its bytes, or
 * the negated status of the answer: -400 and -431 (see chunked.h), -413 more
 * than the limit, -503 no memory.
 */
ssize_t body_take(struct body *body, const char *data, size_t length);

static inline bool body_is_over(const struct body *body)
{
	return body->framing == BODY_NONE;
}

/* More is to come than the limit lets be taken: reading on is no use. */
bool body_is_hopeless(const struct body *body);

/*
 * Makes a sealed unit of the kept content, held by the caller, who releases
 * and destroys it.  *id: 0 if there is no content.  0 or -errno.
 */
int body_unit(const struct body *body, size_t *id);

/* Lets go of the content. */
void body_end(struct body *body);

#endif
