/* SPDX-License-Identifier: MIT */
/*
 * request.h - the head of an HTTP/1.x request, parsed in place (RFC 9112).
 *
 * Everything in a struct request points into the caller's buffer; nothing is
 * allocated and nothing is decoded.
 */
#ifndef SWEET_REQUEST_H
#define SWEET_REQUEST_H

#include <stdint.h>
#include <sys/types.h>

#include "base/slice.h"

#define REQUEST_HEADERS_MAX 256 /* max-fields is this at most */
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
	METHOD_TRACE, /* known, and allowed nowhere */
	METHOD_OTHER, /* not known here: 501 */
};

enum request_expect {
	EXPECT_NOTHING,
	EXPECT_CONTINUE, /* the client waits for 100 before it sends the body */
	EXPECT_OTHER,	 /* what nobody knows: 417 */
};

struct request_header {
	struct slice name;
	struct slice value; /* without surrounding blanks */
};

struct request {
	enum request_method method;
	struct slice head; /* all of it */
	struct slice method_name;
	struct slice target; /* as sent */
	struct slice path;   /* of the target, still escaped, without the query; or "*" */
	struct slice query;  /* behind the '?', may be empty */
	struct slice host;   /* of an absolute target or the Host field, with any port */
	unsigned minor;	     /* HTTP/1.minor: 0 or 1 */
	bool keep_alive;
	bool chunked;		 /* a body in that coding follows, of unknown length */
	bool conditional;	 /* there may be fields for conditional.h */
	uint64_t content_length; /* bytes of body that follow; 0 without one */
	enum request_expect expect;
	const char *wrong; /* with a head that is refused: why, static text */
	unsigned header_count;
	struct request_header headers[REQUEST_HEADERS_MAX];
};

/*
 * Looks for the end of a head in data[0, length); the first `seen` bytes were
 * looked at before without success.  Returns the bytes of the head with its
 * empty line, or 0 when it is not there yet.  Up to four empty lines before
 * the request line count as part of the head (RFC 9112 section 2.2).  Lines
 * may end with LF alone here, so that request_parse() sees and refuses them.
 */
size_t request_head_length(const char *data, size_t length, size_t seen);

/*
 * Parses a whole head as request_head_length() measured it.  Returns 0 or the
 * negated HTTP status of the answer: -400 malformed, -414 target too long,
 * -431 too many headers, -501 CONNECT or another transfer coding than chunked,
 * -505 not HTTP/1.x.  After any of these the connection must be closed and request holds nothing of use
 * but `wrong`.
 * A content_length that is accepted never exceeds INT64_MAX.
 */
int request_parse(struct request *request, const char *head, size_t length);

/*
 * Looks at a head that has not come to its end; the first `seen` bytes were
 * looked at before.  Returns 0 if it may become a good one, as far as its first
 * line tells, else as request_parse(): it is of no use to wait for the rest.
 */
int request_check_begin(struct request *request, const char *data, size_t length, size_t seen);

/* Whether what was meant as a request is one for a head alone, though it be refused. */
bool request_is_head(const char *head, size_t length);

/* Whether it is GET or HEAD. */
static inline bool request_is_reading(const struct request *request)
{
	return request->method == METHOD_GET || request->method == METHOD_HEAD;
}

/* The first header of that name (ASCII case ignored), or NULL. */
const struct slice *request_find(const struct request *request, const char *name);

#endif
