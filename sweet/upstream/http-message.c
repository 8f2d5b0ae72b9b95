/* SPDX-License-Identifier: MIT */
/*
 * http-message.c - see http-message.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "upstream/http-message.h"
#include "upstream/upstream-link.h"

#define FRAMING_MOST 128 /* bytes of the lines that http_message_make() adds */

/* The line end before it belongs to the previous chunk. */
static size_t http_write_chunk(const struct upstream_message *message, char out[UPSTREAM_FRAME_MAX],
			       size_t length)
{
	int bytes = sprintf(out, length ? "\r\n%zx\r\n" : "\r\n%zx\r\n\r\n", length);

	(void)message;
	return (size_t)bytes;
}

static const struct upstream_framing known, chunks = {.header = http_write_chunk};

/* Methods that usually have a body: without one, they say so (RFC 9110, section 8.6). */
static bool expects_body(struct slice head)
{
	static const struct slice methods[] = {SLICE_OF("POST "), SLICE_OF("PUT "),
					       SLICE_OF("PATCH ")};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (head.length > methods[i].length &&
		    memcmp(head.at, methods[i].at, methods[i].length) == 0)
			return true;
	return false;
}

int http_message_make(struct upstream_message *message, struct slice head,
		      const struct http_message_body *body)
{
	bool in_chunks = body->any && body->length == HTTP_MESSAGE_UNKNOWN;
	size_t part =
		body->first.length < UPSTREAM_PART_MAX ? body->first.length : UPSTREAM_PART_MAX;
	char *at;

	/* With one framing, nothing else may be sent. */
	if (body->any && ((in_chunks || body->more) && part == 0))
		return -EINVAL;
	if (body->any && !in_chunks &&
	    (body->first.length > body->length ||
	     (!body->more && body->first.length != body->length)))
		return -EINVAL;
	message->length = 0;
	message->framing = in_chunks ? &chunks : &known;
	message->body = body->any ? body->first : (struct NC_range){0};
	message->more = body->any && body->more;
	if (!upstream_message_reserve(message, head.length + FRAMING_MOST))
		return -ENOMEM;
	memcpy(message->bytes, head.at, head.length);
	at = message->bytes + head.length;
	if (in_chunks)
		at += sprintf(at, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", part);
	else if (body->any)
		at += sprintf(at, "Content-Length: %" PRIu64 "\r\n\r\n", body->length);
	else
		at += sprintf(at, "%s\r\n", expects_body(head) ? "Content-Length: 0\r\n" : "");
	message->length = (size_t)(at - message->bytes);
	return 0;
}
