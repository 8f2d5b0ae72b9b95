/* SPDX-License-Identifier: MIT */
/*
 * cgihead.h - the head of what a CGI or FastCGI program answers (RFC 3875,
 * section 6), with this server's own fields in it: X-NABC-*.
 *
 * Everything in a struct cgihead points into the caller's buffer; nothing is
 * allocated.
 */
#ifndef SWEET_CGIHEAD_H
#define SWEET_CGIHEAD_H

#include <stdint.h>

#include "base/slice.h"
#include "http/cachecontrol.h"
#include "http/field.h"

struct cgihead {
	struct slice lines;    /* all of them, for response_filter_headers() */
	int status;	       /* 200 to 599; 302 for a Location that has none with it */
	struct slice location; /* length 0: none */
	bool local_redirect;   /* location is a path here, whose answer is to be this one's */
	bool has_type;
	bool has_length;
	bool sets_cookie;
	uint64_t length; /* Content-Length, INT64_MAX at most */
	/* The body is a unit, or a part of one, instead of what follows the head. */
	size_t unit; /* X-NABC-Cache-Id; 0: none */
	bool has_unit_length;
	uint64_t unit_offset; /* X-NABC-Offset */
	uint64_t unit_length; /* X-NABC-Length */
	/* For a cache of responses. */
	uint32_t max_age; /* X-NABC-Max-Age: seconds, or CACHECONTROL_UNSAID */
	struct slice tag; /* X-NABC-Tag, length 0: none */
	struct cachecontrol control;
	struct cachecontrol_vary vary;
	struct field_options hop; /* fields that are not for the client */
};

/*
 * Looks for the end of a head in data[0, length); the first `seen` bytes were
 * looked at before without success.  Returns the bytes of the head with its
 * empty line, or 0 when it is not there yet.  Lines end with CRLF or LF.
 */
size_t cgihead_length(const char *data, size_t length, size_t seen);

/*
 * Parses a whole head as cgihead_length() measured it, or a worker's lines,
 * which have no empty line behind them.  NULL, or what is wrong with it, in
 * words for the log; head then holds nothing of use.
 */
const char *cgihead_parse(struct cgihead *head, struct slice text);

#endif
