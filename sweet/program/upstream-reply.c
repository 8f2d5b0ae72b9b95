/* SPDX-License-Identifier: MIT */
/*
 * upstream-reply.c - see upstream-reply.h.  Any thread may call it.
 *
 * A head is parsed in place if it is complete, which is the usual case; else its parts are
 * gathered.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/field.h"
#include "program/cgihead.h"
#include "program/upstream-reply.h"

enum state {
	HEAD,
	LENGTH, /* a body of known length */
	CHUNKS,
	TO_CLOSE, /* a body that ends with the connection */
	OVER,
};

void upstream_reply_clear(struct upstream_reply *reply)
{
	free(reply->part);
	reply->part = NULL;
	reply->length = 0;
	reply->taken = false;
}

void upstream_reply_init(struct upstream_reply *reply, bool head_only, size_t most)
{
	upstream_reply_clear(reply);
	*reply = (struct upstream_reply){.no_body = head_only, .most = most};
}

static ssize_t fail(struct upstream_found *found, const char *fault)
{
	found->fault = fault;
	return -1;
}

/* RFC 9112, section 6.3. */
static void begin_body(struct upstream_reply *reply, const struct upstream_head *head)
{
	reply->keep_alive = head->keep_alive;
	reply->left = head->fields.length;
	chunked_init(&reply->chunked);
	if (head->status == 101)
		reply->state = TO_CLOSE;
	else if (reply->no_body || head->status == 204 || head->status == 304)
		reply->state = OVER;
	else if (head->chunked)
		reply->state = CHUNKS;
	else if (head->fields.has_length)
		reply->state = reply->left ? LENGTH : OVER;
	else
		reply->state = TO_CLOSE;
	/* What follows a 204 that announces a body could be that. */
	if (reply->state == TO_CLOSE || (head->status == 204 && (reply->left || head->chunked)))
		reply->keep_alive = false;
}

static const char *take_head(struct upstream_reply *reply, struct slice text,
			     struct upstream_found *found)
{
	const char *wrong = upstream_head_parse(&found->head, text);

	if (wrong)
		return wrong;
	if (found->head.status == 101 && !reply->upgrade)
		return "switched protocols, which the request did not ask for";
	if (found->head.status == 101 && !slice_is(found->head.upgrade, reply->upgrade))
		return "switched to another protocol than it was asked for";
	/* However many: the time for the response runs on. */
	if (found->head.status < 200 && found->head.status != 101)
		return NULL;
	found->event = UPSTREAM_HEAD;
	begin_body(reply, &found->head);
	return NULL;
}

/* Appends the bytes to the incomplete head; returns NULL, or a fault. */
static const char *gather(struct upstream_reply *reply, const char *data, size_t length)
{
	char *part = realloc(reply->part, reply->length + length);

	if (!part)
		return "out of memory for its response head";
	memcpy(part + reply->length, data, length);
	reply->part = part;
	reply->length += length;
	return NULL;
}

static ssize_t read_head(struct upstream_reply *reply, const char *data, size_t length,
			 struct upstream_found *found)
{
	static const char too_long[] = "its response head is too long: more than "
				       "max-response-header of its pool";
	size_t seen = reply->length, room = reply->most - seen, end;
	size_t more = length < room ? length : room;
	const char *wrong = NULL;
	struct slice text;

	if (!seen) {
		end = field_section_end(data, more, 0);
		text = (struct slice){data, end ? end : more};
	} else {
		wrong = gather(reply, data, more);
		if (wrong)
			return fail(found, wrong);
		end = field_section_end(reply->part, reply->length, seen > 2 ? seen - 2 : 0);
		text = (struct slice){reply->part, end ? end : reply->length};
	}
	/* Something else than HTTP may have no end of a head. */
	wrong = upstream_head_check(text);
	if (!wrong && end)
		wrong = take_head(reply, text, found);
	else if (!wrong && (more < length || text.length == reply->most))
		wrong = too_long;
	else if (!wrong && !seen)
		wrong = gather(reply, data, more);
	if (wrong)
		return fail(found, wrong);
	if (!end)
		return (ssize_t)more;
	/* The head may point to the part. */
	reply->taken = seen > 0;
	return (ssize_t)(end - seen);
}

static ssize_t read_length(struct upstream_reply *reply, const char *data, size_t length,
			   struct upstream_found *found)
{
	found->event = UPSTREAM_BODY;
	found->run = (struct slice){data, reply->left < length ? (size_t)reply->left : length};
	reply->left -= found->run.length;
	if (!reply->left)
		reply->state = OVER;
	return (ssize_t)found->run.length;
}

static ssize_t read_chunks(struct upstream_reply *reply, const char *data, size_t length,
			   struct upstream_found *found)
{
	ssize_t used = chunked_decode(&reply->chunked, data, length, &found->run);

	if (used < 0)
		return fail(found, used == -431 ? "chunk extensions or trailers that are too long"
						: "a malformed chunk");
	if (found->run.length)
		found->event = UPSTREAM_BODY;
	if (chunked_is_over(&reply->chunked))
		reply->state = OVER;
	return used;
}

ssize_t upstream_reply_read(struct upstream_reply *reply, const char *data, size_t length,
			    struct upstream_found *found)
{
	found->event = UPSTREAM_NOTHING;
	found->run = (struct slice){data, 0};
	if (reply->taken)
		upstream_reply_clear(reply);
	if (reply->state == OVER) {
		found->event = UPSTREAM_END;
		return 0;
	}
	if (!length)
		return 0;
	switch (reply->state) {
	case HEAD:
		return read_head(reply, data, length, found);
	case LENGTH:
		return read_length(reply, data, length, found);
	case CHUNKS:
		return read_chunks(reply, data, length, found);
	default: /* TO_CLOSE */
		found->event = UPSTREAM_BODY;
		found->run.length = length;
		return (ssize_t)length;
	}
}

bool upstream_reply_is_over(const struct upstream_reply *reply)
{
	return reply->state == OVER;
}

const char *upstream_reply_ended(const struct upstream_reply *reply)
{
	switch (reply->state) {
	case HEAD:
		return reply->length && !reply->taken
			       ? "ended in the middle of its response head"
			       : "the connection ended before the answer did";
	case LENGTH:
		return "ended before it had sent the announced length";
	case CHUNKS:
		return "ended in the middle of a chunked body";
	default:
		return NULL;
	}
}
