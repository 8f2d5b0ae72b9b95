/* SPDX-License-Identifier: MIT */
/*
 * request-internal.h - what request.c, which parses a head, and request-line.c,
 * which parses its first line, share.
 */
#ifndef SWEET_REQUEST_INTERNAL_H
#define SWEET_REQUEST_INTERNAL_H

#include <stdbool.h>

#include "http/request.h"

#define REQUEST_LEADING_LINES 4 /* empty lines tolerated before a request line */

/* What the fields that decide where a message ends have said so far. */
struct request_framing {
	bool absolute; /* the target names the host, the Host field is overruled */
	bool host;
	bool length;
	bool coding;	    /* a Transfer-Encoding field, with */
	bool chunked;	    /* that as its last coding so far, */
	bool other;	    /* and others before, */
	bool coding_broken; /* or what is no list of codings */
	bool close;
	bool keep_alive;
};

static inline bool request_is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/*
 * Compares with a lower case literal of the same length.  Setting bit 5 folds
 * letters onto nothing but themselves, and CR onto '-': no token holds that.
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

/* --- request-line.c --- */

/* Whether it may stand for a host, with or without a port. */
bool request_is_host(struct slice host);

/* The line at *from, which moves behind it.  As request_parse(). */
int request_parse_line(struct request *request, struct request_framing *framing, const char **from,
		       const char *end);

#endif
