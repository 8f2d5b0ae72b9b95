/* SPDX-License-Identifier: MIT */
/*
 * theirs.h - a request as the parser of Node.js sees it (libhttp-parser): the other
 * parser of the differential targets.
 */
#ifndef FUZZ_THEIRS_H
#define FUZZ_THEIRS_H

#include <http_parser.h>
#include <stdbool.h>
#include <string.h>

#include "base/slice.h"

#include "fuzz.h"

#define THEIRS_HEADERS_MAX 1024u

struct theirs {
	bool complete; /* the head is, and was accepted */
	size_t end;    /* bytes up to the head's end, or the body's */
	bool over;     /* the message is complete */
	http_parser parser;
	struct slice url;
	unsigned header_count;
	struct {
		struct slice name, value; /* including trailing blanks */
	} headers[THEIRS_HEADERS_MAX];
	bool in_value;
	char *body;
	size_t body_length;
};

/* In one run over one buffer the pieces of a part are adjacent, except for folded lines. */
static inline void theirs_add(struct slice *part, const char *at, size_t length)
{
	if (!part->at)
		part->at = at;
	part->length = (size_t)(at + length - part->at);
}

static inline int theirs_url(http_parser *parser, const char *at, size_t length)
{
	theirs_add(&((struct theirs *)parser->data)->url, at, length);
	return 0;
}

static inline int theirs_field(http_parser *parser, const char *at, size_t length)
{
	struct theirs *theirs = parser->data;

	if (theirs->complete) /* a trailer */
		return 0;
	if (theirs->in_value || theirs->header_count == 0) {
		if (theirs->header_count == THEIRS_HEADERS_MAX)
			return 1;
		theirs->headers[theirs->header_count++].name = (struct slice){at, 0};
		theirs->headers[theirs->header_count - 1].value = (struct slice){NULL, 0};
	}
	theirs->in_value = false;
	theirs_add(&theirs->headers[theirs->header_count - 1].name, at, length);
	return 0;
}

static inline int theirs_value(http_parser *parser, const char *at, size_t length)
{
	struct theirs *theirs = parser->data;

	if (theirs->complete)
		return 0;
	theirs->in_value = true;
	theirs_add(&theirs->headers[theirs->header_count - 1].value, at, length);
	return 0;
}

static inline int theirs_headers(http_parser *parser)
{
	struct theirs *theirs = parser->data;

	theirs->complete = true;
	if (!theirs->body)
		http_parser_pause(parser, 1);
	return 0;
}

static inline int theirs_content(http_parser *parser, const char *at, size_t length)
{
	struct theirs *theirs = parser->data;

	memcpy(theirs->body + theirs->body_length, at, length);
	theirs->body_length += length;
	return 0;
}

static inline int theirs_over(http_parser *parser)
{
	struct theirs *theirs = parser->data;

	theirs->over = true;
	http_parser_pause(parser, 1);
	return 0;
}

/* Parses to the end of the head; with memory for it (body) to the end of the body. */
static inline void theirs_parse(struct theirs *theirs, const char *data, size_t length, char *body)
{
	static const http_parser_settings settings = {
		.on_url = theirs_url,
		.on_header_field = theirs_field,
		.on_header_value = theirs_value,
		.on_headers_complete = theirs_headers,
		.on_body = theirs_content,
		.on_message_complete = theirs_over,
	};

	theirs->complete = theirs->over = theirs->in_value = false;
	theirs->header_count = 0;
	theirs->url = (struct slice){NULL, 0};
	theirs->body = body;
	theirs->body_length = 0;
	http_parser_init(&theirs->parser, HTTP_REQUEST);
	theirs->parser.data = theirs;
	theirs->end = http_parser_execute(&theirs->parser, &settings, data, length);
	/* Paused at the end of a head, it stops before the last byte. */
	if (!body)
		theirs->end++;
}

static inline bool theirs_refused(const struct theirs *theirs)
{
	enum http_errno error = HTTP_PARSER_ERRNO(&theirs->parser);

	return error != HPE_OK && error != HPE_PAUSED;
}

#endif
