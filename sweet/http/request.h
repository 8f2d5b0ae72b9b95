/* SPDX-License-Identifier: MIT */
/*
 * request.h - the head of an HTTP/1.x request, parsed in place (RFC 9112); request-list.h makes
 * the same of one of HTTP/2.
 *
 * Everything in a struct request points into the caller's buffer; nothing is
 * allocated and nothing is decoded.
 */
#ifndef SWEET_REQUEST_H
#define SWEET_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/slice.h"

#define REQUEST_HEADERS_MAX 256 /* maximum of the key max-fields */
#define REQUEST_TOO_MANY "more header fields than max-fields"
#define REQUEST_HEAD_MAX 16384	/* bytes of request line and headers */
#define REQUEST_TARGET_MAX 8192 /* bytes */

enum request_method {
	METHOD_GET,
	METHOD_HEAD,
	METHOD_POST,
	METHOD_PUT,
	METHOD_DELETE,
	METHOD_OPTIONS,
	METHOD_PATCH,
	METHOD_TRACE, /* known, but never permitted */
	METHOD_OTHER, /* unknown: 501 */
};

enum request_expect {
	EXPECT_NOTHING,
	EXPECT_CONTINUE, /* the client waits for 100 before it sends the body */
	EXPECT_OTHER,	 /* unknown expectation: 417 */
};

struct request_header {
	struct slice name;
	struct slice value; /* without surrounding blanks */
};

struct request {
	enum request_method method;
	struct slice head; /* the whole head: memory of all slices */
	bool listed;	   /* that is a list (request-list.h), not text */
	struct slice method_name;
	struct slice target; /* as sent */
	struct slice path;   /* path of the target, still escaped, without the query; or "*" */
	struct slice query;  /* after the '?'; may be empty */
	struct slice host;   /* of an absolute target or the Host field, with any port */
	unsigned minor;	     /* HTTP/1.minor: 0 or 1 */
	bool keep_alive;
	bool chunked;		 /* a chunked body of unknown length follows */
	bool conditional;	 /* there may be fields for conditional.h */
	bool trailers;		 /* the client takes trailer fields (RFC 9110, section 10.1.4) */
	uint64_t content_length; /* bytes of the body; 0 without one */
	enum request_expect expect;
	const char *wrong; /* why a head was refused; static text */
	unsigned header_count;
	struct request_header headers[REQUEST_HEADERS_MAX];
};

/*
 * Searches for the end of a head in data[0, length); an earlier call has searched the
 * first seen bytes.  Returns the bytes of the head with its empty line, or 0 if it
 * is incomplete.  Up to four empty lines before the request line belong to the head
 * (RFC 9112 section 2.2).  Lines may end with LF alone here, so that
 * request_parse() sees and refuses them.
 */
size_t request_head_length(const char *data, size_t length, size_t seen);

/*
 * Parses a complete head as measured by request_head_length().  Returns 0 or a
 * negated HTTP status: -400 malformed, -414 target too long, -431 too many headers,
 * -501 CONNECT or a transfer coding other than chunked, -505 not HTTP/1.x.  After
 * an error the connection must be closed, and only request->wrong is valid.  An
 * accepted content_length never exceeds INT64_MAX.
 */
int request_parse(struct request *request, const char *head, size_t length);

/*
 * Checks an incomplete head; an earlier call has checked the first seen bytes.
 * Returns 0 if it can still become valid, as far as the first line shows, else as
 * request_parse(): then it is of no use to wait for the rest.
 */
int request_check_begin(struct request *request, const char *data, size_t length, size_t seen);

/* Returns true if the bytes begin as a HEAD request, even if the request is invalid. */
bool request_is_head(const char *head, size_t length);

/* Returns true if the method is GET or HEAD. */
static inline bool request_is_reading(const struct request *request)
{
	return request->method == METHOD_GET || request->method == METHOD_HEAD;
}

/* Returns the bytes of a request up to its last header. */
static inline size_t request_size(const struct request *request)
{
	return offsetof(struct request, headers) +
	       request->header_count * sizeof(request->headers[0]);
}

/* Copies a request; `to` has room for request_size() bytes at least. */
static inline void request_copy(struct request *to, const struct request *request)
{
	memcpy(to, request, request_size(request));
}

/* Returns the first header of that name (ASCII case ignored), or NULL. */
const struct slice *request_find(const struct request *request, const char *name);

#endif
