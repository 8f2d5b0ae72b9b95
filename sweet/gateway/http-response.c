/* SPDX-License-Identifier: MIT */
/*
 * http-response.c - the HTTP protocol of upstream pools: makes requests, and reads responses.
 */
#include <assert.h>
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/read-buffer.h"
#include "backend/response-stream.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/transaction.h"
#include "gateway/upstream-internal.h"
#include "log/log.h"
#include "program/upstream-head.h"
#include "program/upstream-reply.h"
#include "program/upstream-request.h"
#include "upstream/http-message.h"
#include "upstream/upstream-link.h"

static_assert(HTTP_MESSAGE_UNKNOWN == TRANSACTION_UNKNOWN, "one value for an unknown length");

/* --- requests --------------------------------------------------------------------------------- */

long http_describe(const struct gateway_pool *pool, const struct transaction *transaction,
		   size_t skip, char *out, size_t out_size)
{
	const struct upstream_request_context context = {
		.path = transaction->path,
		.query = transaction_query(transaction),
		.remote_addr = transaction->peer.remote_addr,
		.server_addr = transaction->peer.server_addr,
		.https = transaction->peer.https,
		.rules = {transaction->scope->request_rules,
			  transaction->scope->request_rule_count},
		.authorization = pool->settings->pass_authorization,
		.request_id = transaction->trace.id,
		.traceparent = transaction->trace.traceparent,
		.trace_begins = transaction->trace.begins,
		.upgrade = upstream_request_upgrade(
			transaction->request,
			transaction->peer.http2 ? NULL : pool->settings->upgrade),
	};

	(void)skip; /* the application gets the whole path */
	return upstream_request_write(transaction->request, &context, out, out_size);
}

/* Safe methods (RFC 9110, section 9.2.1). */
static bool is_safe(struct slice head)
{
	static const struct slice methods[] = {SLICE_OF("GET "), SLICE_OF("HEAD "),
					       SLICE_OF("OPTIONS ")};

	for (size_t i = 0; i < G_N_ELEMENTS(methods); i++)
		if (head.length > methods[i].length &&
		    memcmp(head.at, methods[i].at, methods[i].length) == 0)
			return true;
	return false;
}

/* Returns the protocol that the head asks for, or NULL. */
static const char *find_upgrade(struct slice head, char **protocols)
{
	static const char line[] = "\r\n" UPSTREAM_REQUEST_UPGRADE "Upgrade: ";
	const char *at = memmem(head.at, head.length, line, sizeof(line) - 1);
	struct slice token;

	if (!at)
		return NULL;
	at += sizeof(line) - 1;
	/* It is the last line. */
	token = (struct slice){at, (size_t)(head.at + head.length - at) - strlen("\r\n")};
	for (; protocols && *protocols; protocols++)
		if (slice_is(token, *protocols))
			return *protocols;
	return NULL;
}

static int http_make(struct backend_call *call, struct slice block)
{
	struct upstream_call *own = upstream_call_of(call);
	const struct transaction *transaction = call->transaction;
	const struct http_message_body body = {
		.any = transaction->upload.has,
		.length = call->length,
		.first = backend_call_piece(call),
		.more = transaction->upload.more,
	};

	own->repeatable = is_safe(block) && !body.more;
	own->upgrade = own->stream.upgrade = find_upgrade(block, call->pool->settings->upgrade);
	return http_message_make(&own->message, block, &body);
}

/* --- responses -------------------------------------------------------------------------------- */

static void http_begin(struct upstream_link *link, struct backend_call *call)
{
	upstream_reply_init(&link->reply, call->transaction->head_only,
			    call->pool->settings->max_response_header);
	link->reply.upgrade = upstream_call_of(call)->upgrade;
}

static bool feed(struct upstream_link *link, struct read_buffer *buffer,
		 const struct upstream_found *found)
{
	struct upstream_call *own = upstream_call_of(link->user);

	if (found->event == UPSTREAM_HEAD && found->head.status == 101)
		upstream_switched(link);
	else if (found->event == UPSTREAM_HEAD)
		upstream_tunnel_leave(link->user);
	if (found->event == UPSTREAM_BODY && own->switched)
		upstream_switched(link);
	if (found->event == UPSTREAM_HEAD)
		return response_stream_http_head(&own->stream, &found->head.fields);
	if (found->event == UPSTREAM_BODY)
		return response_stream_feed(&own->stream, buffer, found->run);
	return true;
}

static bool http_take(struct upstream_link *link, struct read_buffer *buffer)
{
	struct upstream_call *own = upstream_call_of(link->user);
	char who[256];
	size_t at = 0;

	upstream_came(link);
	for (;;) {
		struct upstream_found found;
		ssize_t used = upstream_reply_read(&link->reply, buffer->data + at,
						   buffer->length - at, &found);

		if (used < 0)
			return upstream_refuse(link, buffer, found.fault);
		at += (size_t)used;
		if (found.event == UPSTREAM_END)
			break;
		if (!feed(link, buffer, &found))
			return upstream_refuse(link, buffer, NULL);
		if (at == buffer->length && !upstream_reply_is_over(&link->reply)) {
			response_stream_add(&own->stream, buffer);
			return link->user != NULL;
		}
	}
	if (at < buffer->length)
		log_info("%s: %zu bytes after the end of the response: closing the connection",
			 upstream_name(link->user, who, sizeof(who)), buffer->length - at);
	upstream_complete(link, buffer, at == buffer->length && link->reply.keep_alive);
	return false;
}

static const char *http_ended(const struct upstream_link *link)
{
	return upstream_reply_ended(&link->reply);
}

static void http_clear(struct upstream_link *link)
{
	upstream_reply_clear(&link->reply);
}

const struct upstream_wire http_wire = {
	.owner = {UPSTREAM_LINK_OWNER},
	.make = http_make,
	.begin = http_begin,
	.take = http_take,
	.ended = http_ended,
	.clear = http_clear,
	.careful = true,
	.announces = true,
};
