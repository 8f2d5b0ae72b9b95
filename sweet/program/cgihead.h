/* SPDX-License-Identifier: MIT */
/*
 * cgihead.h - the head of a CGI or FastCGI program's response (RFC 3875, section
 * 6), with this server's own fields X-NABC-*.
 *
 * Everything in a struct cgihead points into the caller's buffer; nothing is
 * allocated.
 */
#ifndef SWEET_CGIHEAD_H
#define SWEET_CGIHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "http/cachecontrol.h"
#include "http/field.h"

struct cgihead {
	struct slice lines;    /* all lines, for response_filter_headers() */
	int status;	       /* 200 to 599; 302 for a Location without a Status */
	struct slice phrase;   /* of the status; length 0: none */
	struct slice location; /* length 0: none */
	bool local_redirect;   /* location is a local path, whose response replaces this one */
	struct slice accel;    /* X-Accel-Redirect; length 0: none */
	struct slice sendfile; /* X-Sendfile; length 0: none */
	bool has_type;
	bool has_length;
	bool sets_cookie;
	uint64_t length; /* Content-Length, at most INT64_MAX */
	/* The body is a unit, or a part of one, instead of the bytes after the head. */
	size_t unit; /* X-NABC-Cache-Id; 0: none */
	bool has_unit_length;
	uint64_t unit_offset; /* X-NABC-Offset */
	uint64_t unit_length; /* X-NABC-Length */
	/* For a cache of responses. */
	uint32_t max_age; /* X-NABC-Max-Age: seconds, or CACHECONTROL_UNSAID */
	struct slice tag; /* X-NABC-Tag; length 0: none */
	struct cachecontrol control;
	struct cachecontrol_vary vary;
	struct field_options hop; /* fields that are not for the client */
	bool http;		  /* of an HTTP server: read by cgihead_read_http() */
};

/*
 * Searches for the end of a head in data[0, length); an earlier call has searched
 * the first seen bytes.  Returns the bytes of the head with its empty line, or 0 if
 * it is incomplete.  Lines end with CRLF or LF.
 */
size_t cgihead_length(const char *data, size_t length, size_t seen);

/*
 * Parses a complete head as measured by cgihead_length(), or a worker's lines,
 * which have no empty line at the end.  Returns NULL, or a message for the log that
 * says what is wrong; then head is invalid.
 */
const char *cgihead_parse(struct cgihead *head, struct slice text);

/*
 * Parses the header lines of an HTTP server's response, after its status line.  Status and Location
 * are ordinary fields there; of X-NABC-*, only the tags for a cache are read.  Returns as
 * cgihead_parse().
 */
const char *cgihead_read_http(struct cgihead *head, int status, struct slice lines);

#endif
