/* SPDX-License-Identifier: MIT */
/*
 * request.c - parses the head of a request in its receive buffer.
 *
 * The caller owns the buffer and the struct request, whose slices point into the
 * buffer.  No state, no allocation, one pass: any thread may call it.
 *
 * Two servers that read one head differently permit request smuggling.  Therefore
 * the parser refuses what RFC 9112 permits a server to tolerate: bare LF, bare CR,
 * folded lines, blanks before a colon, and any ambiguity about the length of a
 * body.
 */
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/scan.h"
#include "base/syntax.h"
#include "http/field.h"
#include "http/request-internal.h"
#include "http/request.h"

size_t request_head_length(const char *data, size_t length, size_t seen)
{
	size_t at = 0;
	size_t bytes;
	int lines;

	for (lines = 0; (bytes = field_line_end(data + at, length - at)); lines++) {
		at += bytes;
		if (lines == REQUEST_LEADING_LINES)
			return at; /* only empty lines: the parser refuses them */
	}
	/* The bytes seen may end with "\n\r", whose newline was missing. */
	if (seen >= 2 && seen - 2 > at)
		at = seen - 2;
	return field_section_end(data, length, at);
}

static int note_host(struct request *request, struct request_framing *framing, struct slice value)
{
	if (framing->host || (value.length > 0 && !request_is_host(value)))
		return request_refuse(request, -400, "a malformed Host field, or two of them");
	framing->host = true;
	if (!framing->absolute)
		request->host = value;
	return 0;
}

static int note_length(struct request *request, struct request_framing *framing, struct slice value)
{
	uint64_t length;

	/* No file is longer than this, and sums with other sizes must not overflow. */
	if (framing->length || !field_number(value, &length) || length > INT64_MAX)
		return request_refuse(request, -400,
				      "a malformed Content-Length field, or two of them");
	framing->length = true;
	request->content_length = length;
	return 0;
}

/* Splits at any non-token byte: a "close" in a malformed list still closes, which is safe. */
static void note_connection(struct request_framing *framing, struct slice value)
{
	const char *at = value.at;
	const char *end = value.at + value.length;
	const char *start;

	for (; at < end; at++) {
		for (start = at; at < end && syntax_is(*at, SYNTAX_TOKEN); at++)
			;
		if (at - start == 5 && request_same(start, "close", 5))
			framing->close = true;
		else if (at - start == 10 && request_same(start, "keep-alive", 10))
			framing->keep_alive = true;
	}
}

/*
 * Parses a list of codings, each a token.  Correct clients send no parameters,
 * empty members or the like, and servers have interpreted them differently.
 */
static void note_coding(struct request_framing *framing, struct slice value)
{
	const char *at = value.at;
	const char *end = value.at + value.length;

	framing->coding = true;
	for (;;) {
		const char *start = at;

		while (at < end && syntax_is(*at, SYNTAX_TOKEN))
			at++;
		framing->coding_broken |= at == start;
		/* No other coding may follow chunked. */
		framing->coding_broken |= framing->chunked;
		framing->chunked = at - start == 7 && request_same(start, "chunked", 7);
		framing->other |= !framing->chunked;
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		if (at == end)
			return;
		if (*at++ != ',') {
			framing->coding_broken = true;
			return;
		}
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
	}
}

static void note_expect(struct request *request, struct slice value)
{
	if (value.length == 0)
		return;
	if (value.length != 12 || !request_same(value.at, "100-continue", 12))
		request->expect = EXPECT_OTHER;
	else if (request->expect == EXPECT_NOTHING)
		request->expect = EXPECT_CONTINUE;
}

static void note_te(struct request *request, struct slice value)
{
	struct slice part;

	while (field_part(&value, ',', &part))
		request->trailers |= part.length == 8 && request_same(part.at, "trailers", 8);
}

/*
 * Evaluates the fields that concern the message or the connection.  Inline, as most fields do not:
 * calls would cost more than that.
 */
static inline __attribute__((always_inline)) int note_field(struct request *request,
							    struct request_framing *framing,
							    const struct request_header *header)
{
	const char *name = header->name.at;

	switch (header->name.length) {
	case 2:
		if (request_same(name, "te", 2))
			note_te(request, header->value);
		return 0;
	case 4:
		if (request_same(name, "host", 4))
			return note_host(request, framing, header->value);
		return 0;
	case 6:
		if (request_same(name, "expect", 6))
			note_expect(request, header->value);
		return 0;
	case 5: /* Range */
		request->conditional |= request_same(name, "range", 5);
		return 0;
	case 8:	 /* If-Match, If-Range */
	case 13: /* If-None-Match */
	case 19: /* If-Unmodified-Since */
		request->conditional |= request_same(name, "if-", 3);
		return 0;
	case 10:
		if (request_same(name, "connection", 10))
			note_connection(framing, header->value);
		return 0;
	case 14:
		if (request_same(name, "content-length", 14))
			return note_length(request, framing, header->value);
		return 0;
	case 17: /* and If-Modified-Since */
		if (request_same(name, "transfer-encoding", 17))
			note_coding(framing, header->value);
		request->conditional |= request_same(name, "if-", 3);
		return 0;
	default:
		return 0;
	}
}

int request_take_field(struct request *request, struct request_framing *framing)
{
	return note_field(request, framing, &request->headers[request->header_count++]);
}

/* Parses one field line; moves *from after it. */
static bool parse_field(struct request_header *header, const char **from, const char *end)
{
	const char *at = *from;
	const char *start = at;
	const char *stop;

	at = scan_token(at, end);
	if (at == start || *at != ':')
		return false;
	header->name = (struct slice){start, (size_t)(at - start)};

	for (at++; *at == ' ' || *at == '\t'; at++)
		;
	start = at;
	at = scan_value(at, end);
	if (at[0] != '\r' || at[1] != '\n')
		return false;
	for (stop = at; stop > start && (stop[-1] == ' ' || stop[-1] == '\t'); stop--)
		;
	header->value = (struct slice){start, (size_t)(stop - start)};
	*from = at + 2;
	return true;
}

int request_end(struct request *request, const struct request_framing *framing)
{
	if (request->minor >= 1 && !framing->host)
		return request_refuse(request, -400, "no Host field");
	if (framing->coding) {
		/* Unless chunked is the last coding, the end of the body is unknown. */
		if (framing->length || request->minor == 0 || framing->coding_broken ||
		    !framing->chunked)
			return request_refuse(
				request, -400,
				"a Transfer-Encoding that does not define the end of the body");
		if (framing->other)
			return request_refuse(request, -501,
					      "a transfer coding other than chunked");
		request->chunked = true;
	}
	/* Clients of HTTP/1.0 do not wait for 100 (RFC 9110, section 10.1.1). */
	if (request->minor == 0)
		request->expect = EXPECT_NOTHING;
	request->trailers &= request->minor >= 1;
	request->keep_alive = !framing->close && (request->minor >= 1 || framing->keep_alive);
	return 0;
}

void request_begin(struct request *request, struct slice head, bool listed)
{
	request->head = head;
	request->listed = listed;
	request->header_count = 0;
	request->content_length = 0;
	request->keep_alive = false;
	request->chunked = false;
	request->expect = EXPECT_NOTHING;
	request->conditional = false;
	request->trailers = false;
	request->host = (struct slice){head.at, 0};
}

int request_parse(struct request *request, const char *head, size_t length)
{
	struct request_framing framing = {.absolute = false};
	const char *at = head;
	const char *end = head + length;
	struct request_header *header;
	int lines, status;

	request_begin(request, (struct slice){head, length}, false);
	/* The final newline stops every loop below, so none needs to test for the end. */
	if (length == 0 || end[-1] != '\n')
		return request_refuse(request, -400, "no end of the head");
	for (lines = 0; lines < REQUEST_LEADING_LINES && at < end && at[0] == '\r' && at[1] == '\n';
	     lines++)
		at += 2;
	if (at == end)
		return request_refuse(request, -400, "nothing but empty lines");
	status = request_parse_line(request, &framing, &at, end);
	if (status)
		return status;

	while (at < end && *at != '\r') {
		if (request->header_count == REQUEST_HEADERS_MAX)
			return request_refuse(request, -431, REQUEST_TOO_MANY);
		header = &request->headers[request->header_count];
		if (!parse_field(header, &at, end))
			return request_refuse(request, -400, REQUEST_FIELD_WRONG);
		status = note_field(request, &framing, header);
		if (status)
			return status;
		request->header_count++;
	}
	/* The empty line, and nothing after it. */
	if (end - at != 2)
		return request_refuse(request, -400, "a malformed end of the head");
	return request_end(request, &framing);
}

bool request_is_head(const char *head, size_t length)
{
	while (length && (*head == '\r' || *head == '\n')) {
		head++;
		length--;
	}
	return length >= 5 && memcmp(head, "HEAD ", 5) == 0;
}

const struct slice *request_find(const struct request *request, const char *name)
{
	size_t length = strlen(name);
	const struct request_header *header = request->headers;
	const struct request_header *end = header + request->header_count;

	for (; header < end; header++) {
		if (header->name.length == length &&
		    strncasecmp(header->name.at, name, length) == 0)
			return &header->value;
	}
	return NULL;
}
