/* SPDX-License-Identifier: MIT */
/*
 * response.h - response heads and the small HTML bodies of errors (RFC 9110).
 */
#ifndef SWEET_RESPONSE_H
#define SWEET_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* The reason phrase of a status (RFC 9110 section 15, RFC 6585); "Unknown" for others. */
const char *response_reason(int status);

/* Writes the three digits of a status; one that does not have three is sent as 500. */
#define RESPONSE_STATUS_DIGITS 3
void response_status_digits(int status, char digits[RESPONSE_STATUS_DIGITS]);

/*
 * Writes the status line: "HTTP/1.1 200 OK\r\n", or with that phrase, which has at most
 * RESPONSE_PHRASE_MAX bytes, unless it is NULL.  Returns its bytes; out needs RESPONSE_STATUS_MAX.
 * Not NUL-terminated.
 */
#define RESPONSE_PHRASE_MAX 256
#define RESPONSE_STATUS_MAX (RESPONSE_PHRASE_MAX + 64)
size_t response_status_line(int status, const char *phrase, char *out);

/*
 * Writes a small HTML page with status and reason, NUL-terminated; returns its
 * length. detail (may be NULL) is one line of text, escaped for HTML, and cut if
 * out_size requires it; RESPONSE_PAGE_MAX is enough for any page without detail.
 */
#define RESPONSE_PAGE_MAX 1024
size_t response_error_page(int status, const char *detail, char *out, size_t out_size);

/* What a gateway's lines contain, beside what is copied. */
struct response_facts {
	bool has_type; /* there is a Content-Type */
	bool has_length;
	uint64_t length; /* Content-Length, at most INT64_MAX */
	unsigned dates;
	struct slice date; /* of the last Date */
};

/*
 * Copies a gateway's header lines ("Name: value\r\n"...) to out if they are safe to send: every
 * line is a token, a colon and a value without control characters other than HTAB, ended by CRLF or
 * LF (written as CRLF).  Omits X-NABC-*, X-Accel-*, X-Sendfile and fields that the server sets
 * itself or that concern one hop (Connection and the fields that it names, Keep-Alive, Proxy-*, TE,
 * Trailer, Transfer-Encoding, Upgrade, Content-Length, Date, Server, Status).  Returns the bytes
 * written, or -1 if a line is malformed, Connection has too many names, Content-Length is no number
 * or is there twice, or out is too small.  NC_response_headers_check() has the same rules, for
 * workers.
 */
long response_filter_headers(struct slice headers, char *out, size_t out_size,
			     struct response_facts *facts);

#endif
