/* SPDX-License-Identifier: MIT */
/*
 * body.h - receives the body of one request: decodes it, limits it, and either
 * drops it or collects it into units for a worker: one unit for the whole body, or
 * a sequence of units of a window's size.
 */
#ifndef SWEET_BODY_H
#define SWEET_BODY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <nabc.h>

#include "http/chunked.h"
#include "http/request.h"

struct NC_hold;
struct budget;

enum body_framing { BODY_NONE, BODY_LENGTH, BODY_CHUNKED, BODY_OPEN };

/* In the caller's memory; all zeros: no body. */
struct body {
	enum body_framing framing; /* BODY_NONE: all of it was received */
	uint64_t left;		   /* BODY_LENGTH: bytes still missing */
	struct chunked chunked;	   /* BODY_CHUNKED */
	uint64_t length;	   /* bytes of content so far */
	uint64_t limit;		   /* maximum of length */
	struct budget *budget;	   /* NULL: the content is dropped */
	size_t window;		   /* maximum of gathered */
	char *content;
	size_t gathered; /* bytes of content */
	size_t room;	 /* bytes allocated for content, counted in the budget */
};

#define BODY_WHOLE SIZE_MAX /* a window for the whole body */

/* Starts a body that is known to exist. */
void body_expect(struct body *body, const struct request *request, uint64_t limit);

/*
 * Starts the body after the head of request; its content is dropped unless
 * body_keep() follows; limit: maximum in bytes.  The previous body is complete or
 * was ended.
 */
static inline void body_begin(struct body *body, const struct request *request, uint64_t limit)
{
	if (request->content_length || request->chunked)
		body_expect(body, request, limit);
}

/*
 * Collects the content from its first byte; limit: bytes of the whole body; window:
 * bytes at a time, or fewer if memory is short.  Call it again after each
 * body_unit(); the limit may change.  Returns 0, or -413 if the known length
 * exceeds the limit.
 */
int body_keep(struct body *body, uint64_t limit, size_t window, struct budget *budget);

/*
 * Consumes the part of data[0, length) that belongs to the body; if the content is
 * collected, only what fits into the window.  Returns its bytes, or a negated
 * status for the response: -400 and -431 (see chunked.h), -413 over the limit, -503
 * no memory.
 */
ssize_t body_take(struct body *body, const char *data, size_t length);

static inline bool body_is_over(const struct body *body)
{
	return body->framing == BODY_NONE;
}

/*
 * HTTP/2 ends a body of unknown length outside of its bytes: all of them are content, until
 * body_close() says how many are still to be taken.
 */
static inline void body_open(struct body *body)
{
	if (body->framing == BODY_CHUNKED)
		body->framing = BODY_OPEN;
}
static inline void body_close(struct body *body, size_t left)
{
	/* Without any, it is over when that was taken: the caller has promised a last piece. */
	if (body->framing != BODY_OPEN)
		return;
	body->framing = BODY_LENGTH;
	body->left = left;
}

/* Returns true if the known length exceeds the limit: reading on is of no use. */
bool body_is_too_long(const struct body *body);

/* Returns true if the body is complete or the window is full: call body_unit(). */
static inline bool body_is_ready(const struct body *body)
{
	return body_is_over(body) || (body->budget && body->gathered == body->window);
}

/*
 * Makes a sealed unit of the collected content.  The caller has the hold, and must
 * release it and destroy the unit.  *id: 0 if there is no content.  Empties the window, but
 * keeps its memory for what follows.  Returns 0 or -errno.
 */
int body_unit(struct body *body, size_t *id, struct NC_hold *hold);

/* Drops the rest of the body, at most limit bytes. */
void body_drop(struct body *body, uint64_t limit);

/* Frees the content. */
void body_end(struct body *body);

#endif
