/* SPDX-License-Identifier: MIT */
/*
 * request-internal.h - shared by request.c, which parses a head that is text, request-line.c,
 * which parses its first line, and request-list.c, which takes one that is a list.
 *
 * What a line or a field means, and which are refused, both kinds decide by the same functions.
 */
#ifndef SWEET_REQUEST_INTERNAL_H
#define SWEET_REQUEST_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "http/request.h"

#define REQUEST_FIELD_WRONG "a malformed header field"
#define REQUEST_LEADING_LINES 4 /* empty lines accepted before a request line */

/* What the fields that determine the end of a message have said so far. */
struct request_framing {
	bool absolute; /* the target names the host, which overrides the Host field */
	bool host;
	bool length;
	bool coding;	    /* there is a Transfer-Encoding field */
	bool chunked;	    /* chunked is its last coding so far */
	bool other;	    /* it has other codings */
	bool coding_broken; /* it is not a list of codings */
	bool close;
	bool keep_alive;
};

static inline bool request_is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/*
 * Compares with a lower case literal of the same length.  Setting bit 5 maps no
 * other byte to a letter, but it maps CR to '-'; no token contains CR.
 */
static inline bool request_same(const char *at, const char *lower, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++) {
		if ((at[i] | 0x20) != lower[i])
			return false;
	}
	return true;
}

static inline int request_refuse(struct request *request, int status, const char *wrong)
{
	request->wrong = wrong;
	return status;
}

/* --- request.c --- */

/* Makes a request without fields, of that head. */
void request_begin(struct request *request, struct slice head, bool listed);

/* Takes one more field, which is there and has valid syntax.  Returns as request_parse(). */
int request_take_field(struct request *request, struct request_framing *framing);

/* Checks what depends on all fields together.  Returns as request_parse(). */
int request_end(struct request *request, const struct request_framing *framing);

/* --- request-line.c --- */

/* Takes method and target without a line around them.  Returns as request_parse(). */
int request_take_line(struct request *request, struct request_framing *framing, struct slice method,
		      struct slice target);

/* Returns true if it is a valid host, with or without a port. */
bool request_is_host(struct slice host);

/* Parses the line at *from and moves *from after it.  Returns as request_parse(). */
int request_parse_line(struct request *request, struct request_framing *framing, const char **from,
		       const char *end);

#endif
