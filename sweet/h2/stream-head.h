/* SPDX-License-Identifier: MIT */
/*
 * stream-head.h - the head of an HTTP/2 request (RFC 9113, section 8.3), collected into the list
 * that becomes a request (http/request-list.h).
 *
 * It has what HTTP/1.1 has instead of some fields: a Host field, one Cookie field, and a
 * Transfer-Encoding if content of unknown length follows.  So the same checks judge all requests, and
 * all that is built on them sees the same request whichever way it came.
 */
#ifndef SWEET_STREAM_HEAD_H
#define SWEET_STREAM_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

#define STREAM_HEAD_MORE (64u << 10) /* bytes that are decoded to refuse a head that is too long */

enum stream_head_pseudo { HEAD_METHOD, HEAD_PATH, HEAD_AUTHORITY, HEAD_PSEUDOS };

/* In the caller's memory; all zeros: no memory. */
struct stream_head {
	size_t most;	/* bytes that may come */
	size_t bytes;	/* that have, as lines of HTTP/1.1; those of pseudo-fields count twice */
	size_t decoded; /* bytes of all fields, also of those that were refused */
	char *memory;	/* first the values of pseudo-fields, then the list */
	size_t used, room, start; /* start: of the list */
	bool begun;		  /* the list is */
	struct {
		size_t at, length;
	} pseudo[HEAD_PSEUDOS];
	char *cookies; /* joined (RFC 9113, section 8.2.3) */
	size_t cookies_used;
	bool length;	   /* there is a Content-Length */
	int error;	   /* a negated status */
	const char *wrong; /* its reason */
};

/* Begins a head of at most that many bytes; keeps memory of an earlier one. */
void stream_head_reset(struct stream_head *head, size_t most);

/*
 * Whether so much more has come than a head may have that the rest of it is not worth decoding: a
 * byte of HPACK can name thousands.
 */
static inline bool stream_head_is_endless(const struct stream_head *head)
{
	return head->decoded > 4 * head->most + STREAM_HEAD_MORE;
}

/* Adds a field; pseudo-fields come before the others. */
void stream_head_add(struct stream_head *head, struct slice name, struct slice value);

/*
 * Ends the head; body: content follows.  Returns the list, which exists until
 * stream_head_reset() or stream_head_free().  With head->error, it is as much of it as there is.
 */
struct slice stream_head_end(struct stream_head *head, bool body);

/* The list is not needed any more: frees the memory, if there is much of it. */
void stream_head_shrink(struct stream_head *head);

void stream_head_free(struct stream_head *head);

#endif
