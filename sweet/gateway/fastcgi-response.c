/* SPDX-License-Identifier: MIT */
/*
 * fastcgi-response.c - the FastCGI protocol of upstream pools: makes requests, and reads the records
 * of responses.
 */
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#include "backend/backend-call.h"
#include "backend/read-buffer.h"
#include "backend/response-stream.h"
#include "base/balancer.h"
#include "base/escape.h"
#include "base/slice.h"
#include "core/transaction.h"
#include "gateway/upstream-internal.h"
#include "log/log.h"
#include "program/fcgi.h"
#include "program/meta.h"
#include "upstream/fcgi-message.h"
#include "upstream/upstream-link.h"

#define ERRORS_MAX 16384u   /* bytes of error output that are logged for one request */
#define ERROR_LINE_MAX 1000 /* bytes in one line of it */

static bool is_repeatable(struct slice block)
{
	static const char *const methods[] = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};
	const char *method = meta_find(block, "REQUEST_METHOD").at;

	for (size_t i = 0; i < G_N_ELEMENTS(methods); i++)
		if (strcmp(method, methods[i]) == 0)
			return true;
	return false;
}

static int fastcgi_make(struct backend_call *call, struct slice block)
{
	struct upstream_call *own = upstream_call_of(call);

	own->repeatable = is_repeatable(block);
	return fcgi_message_make(&own->message, block, backend_call_piece(call),
				 call->transaction->upload.more);
}

static void fastcgi_begin(struct upstream_link *link, struct backend_call *call)
{
	fcgi_message_begin(&upstream_call_of(call)->message, link);
}

/* Logs each line of the application's error output. */
static void log_errors(struct backend_call *call, struct slice text)
{
	struct upstream_call *own = upstream_call_of(call);
	char who[256], line[ERROR_LINE_MAX * ESCAPE_MOST + 1];

	while (text.length && own->errors < ERRORS_MAX) {
		const char *newline = memchr(text.at, '\n', text.length);
		size_t length = newline ? (size_t)(newline - text.at) : text.length;
		size_t used = length + (newline ? 1 : 0);

		if (length > ERROR_LINE_MAX)
			length = used = ERROR_LINE_MAX;
		*escape_message(line, (struct slice){text.at, length}) = '\0';
		if (length)
			log_warning("%s: says: %s", upstream_name(call, who, sizeof(who)), line);
		text = (struct slice){text.at + used, text.length - used};
		own->errors += (unsigned)used;
		if (own->errors >= ERRORS_MAX)
			log_warning("%s: says more, which is left out",
				    upstream_name(call, who, sizeof(who)));
	}
}

/* The end of a request has come; left bytes follow it. */
static void complete(struct upstream_link *link, struct read_buffer *buffer,
		     const struct fcgi_found *found, size_t left)
{
	struct upstream_call *own = upstream_call_of(link->user);

	if (found->status == FCGI_COMPLETE || own->came) {
		upstream_complete(link, buffer, left == 0 && !own->message.last);
		return;
	}
	read_buffer_free(buffer);
	own->tried |= balancer_bit(link->upstream);
	own->repeatable = true; /* the application did not process it */
	upstream_go_elsewhere(link, false, "the application did not take the request");
}

/* Processes the records in the buffer.  Returns false if the link has no call any more. */
static bool fastcgi_take(struct upstream_link *link, struct read_buffer *buffer)
{
	struct backend_call *call = link->user;
	struct upstream_call *own = upstream_call_of(call);
	const char *data = buffer->data;
	size_t at = 0, length = buffer->length, said = 0;

	while (at < length) {
		struct fcgi_found found;
		ssize_t used = fcgi_read(&link->fcgi, data + at, length - at, &found);

		if (used < 0)
			return upstream_refuse(link, buffer, fcgi_fault(used));
		at += (size_t)used;
		if (found.event == FCGI_OUT) {
			upstream_came(link);
			if (!response_stream_feed(&own->stream, buffer, found.run))
				return upstream_refuse(link, buffer, NULL);
		} else if (found.event == FCGI_ERR) {
			log_errors(call, found.run);
			said += found.run.length;
		} else if (found.event == FCGI_END) {
			complete(link, buffer, &found, length - at);
			return false;
		}
	}
	/* A buffer of nothing else is counted by the stream. */
	if (said && buffer->range_count)
		response_stream_ignored(&own->stream, said);
	response_stream_add(&own->stream, buffer);
	return link->user != NULL;
}

static const char *fastcgi_ended(const struct upstream_link *link)
{
	(void)link;
	return "the connection ended before the answer did";
}

const struct upstream_wire fastcgi_wire = {
	.owner = {UPSTREAM_LINK_OWNER, .abandon = fcgi_message_abandon},
	.make = fastcgi_make,
	.begin = fastcgi_begin,
	.take = fastcgi_take,
	.ended = fastcgi_ended,
};
