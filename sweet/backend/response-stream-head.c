/* SPDX-License-Identifier: MIT */
/*
 * response-stream-head.c - the head of a response: collects it from one or several buffers, parses
 * it, and fills the transaction.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "backend/accel.h"
#include "backend/backend-call.h"
#include "backend/cache-store.h"
#include "backend/cache-validate.h"
#include "backend/pool.h"
#include "backend/response-stream-internal.h"
#include "backend/response-stream.h"
#include "base/counter.h"
#include "base/slice.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "event/piece.h"
#include "http/response.h"
#include "program/cgihead.h"
#include "respcache/respcache.h"

/* The program responds with a unit as the body: checks and holds it. */
static bool take_unit(struct response_stream *stream, const struct cgihead *head)
{
	struct transaction *transaction = stream->call->transaction;
	const char *why = stream->source->refusal(stream->call, head->unit);
	struct NC_range range = {.id = head->unit, .offset = head->unit_offset};
	struct NC_stat stat;
	char fault[320];

	if (!why && piece_hold_range(&transaction->piece, range) < 0)
		why = "the unit does not exist any more";
	if (why) {
		g_snprintf(fault, sizeof(fault),
			   "sent the id of a unit that it may not use: %zu: %s", head->unit, why);
		return response_stream_fail(stream, fault);
	}
	if (NC_stat(NULL, head->unit, &stat, sizeof(stat)) < 0 || head->unit_offset > stat.size ||
	    (head->has_unit_length && head->unit_length > stat.size - head->unit_offset))
		return response_stream_fail(stream, "sent a range that is outside its unit");
	range.length = head->has_unit_length ? head->unit_length : stat.size - head->unit_offset;
	transaction->piece.range = range;
	transaction->piece.length = range.length;
	counter_add(&transaction->thread->counters->worker_bodies, range.length);
	return true;
}

/*
 * Nothing has changed: the outdated response is sent with the lines of head.  The cache judges the
 * head `judged`: it stores the response again, unless that is the head of the 304.
 */
static bool use_stored(struct response_stream *stream, const struct cgihead *head,
		       const struct cgihead *judged, struct NC_range body)
{
	struct transaction *transaction = stream->call->transaction;
	struct response_facts facts;
	long length = call_take_lines(stream->call, head->lines, &facts);

	if (length < 0)
		return response_stream_fail(stream,
					    "malformed header lines, or no memory for them");
	if (body.length && piece_hold_range(&transaction->piece, body) < 0)
		return response_stream_fail(stream, "the cached response does not exist any more");
	stream->has_head = stream->ended = true;
	call_take_date(stream->call, &facts);
	call_answer(stream->call, head->status, (size_t)length, facts.has_type, true, body.length);
	transaction_set_phrase(transaction, head->status, head->phrase);
	cache_store_head(transaction, judged);
	if (body.length)
		cache_store_body(transaction, &transaction->piece.range, &transaction->piece.hold,
				 1, 0);
	else
		cache_store_end(transaction);
	return true;
}

static bool use_head(struct response_stream *stream, const struct cgihead *head);

/* A 304 to the request that validates an outdated response. */
static bool validated(struct response_stream *stream, const struct cgihead *head,
		      const struct respcache_view *view, bool client_has_it)
{
	struct NC_range body = view->range_count ? view->ranges[0] : (struct NC_range){0};
	/* The tag of another response: these lines must not update this one (section 4.3.4). */
	bool matches = cache_validate_matches(view, head->lines);
	struct slice lines = {0}, none = {0};
	char *merged =
		cache_validate_merge(view->head, matches ? head->lines : none, &lines.length);
	struct cgihead whole;
	const char *fault;
	bool good;

	lines.at = merged;
	fault = merged ? cgihead_read_http(&whole, view->status, lines) : "no memory for its head";
	whole.phrase = view->phrase;
	good = fault ? response_stream_fail(stream, fault)
		     : use_stored(stream, &whole, matches ? &whole : head, body);
	g_free(merged);
	if (!good || !client_has_it)
		return good;
	/* A response that cannot be stored has put the entry back; one that was stored, too. */
	cache_store_drop(stream->call->transaction, RESPCACHE_LOST);
	/* The client knows the response, too: it gets the 304, for which the lines are taken again. */
	piece_release(&stream->call->transaction->piece);
	stream->ended = false;
	return use_head(stream, head);
}

static void stream_tunnel(struct transaction *transaction, const char *data, size_t length)
{
	backend_call_of(transaction)->stream->source->from_client(transaction, data, length);
}

static const struct transaction_responder pieces = {
	.next = response_stream_next, .gone = backend_call_gone, .finish = backend_call_finish};

/* 101: a body of any length follows, in both directions. */
static const struct transaction_responder tunnel = {.next = response_stream_next,
						    .tunnel = stream_tunnel,
						    .gone = backend_call_gone,
						    .finish = backend_call_finish};

static bool use_head(struct response_stream *stream, const struct cgihead *head)
{
	struct transaction *transaction = stream->call->transaction;
	struct response_facts facts;
	const char *fault = NULL;
	enum accel accel;
	const struct respcache_view *outdated;
	bool has_body, client_has_it;
	long length;

	outdated = head->status == 304 ? cache_store_validated(transaction, &client_has_it) : NULL;
	if (outdated)
		return validated(stream, head, outdated, client_has_it);
	if (head->local_redirect) {
		stream->failed = true;
		call_redirect(stream->call, head->location);
		return false;
	}
	/* As above: if it is taken, the stream may be gone. */
	stream->failed = true;
	accel = head->status == 101 ? ACCEL_NONE : accel_take(stream->call, head, &fault);
	if (accel == ACCEL_TAKEN)
		return false;
	stream->failed = false;
	if (accel == ACCEL_REFUSED)
		return response_stream_fail(stream, fault);
	length = call_take_lines(stream->call, head->lines, &facts);
	if (length < 0)
		return response_stream_fail(stream,
					    "malformed header lines, or no memory for them");
	if (head->status == 101) {
		length += sprintf(transaction_lines(transaction) + length, "Upgrade: %s\r\n",
				  stream->upgrade);
		facts.has_type = true; /* it is no body that has one */
	}
	if (head->unit && !take_unit(stream, head))
		return false;
	stream->has_head = true;
	has_body = (head->status >= 200 || head->status == 101) && head->status != 204 &&
		   head->status != 304;
	stream->left = head->unit	  ? 0
		       : !has_body	  ? 0
		       : head->has_length ? head->length
					  : TRANSACTION_UNKNOWN;
	call_take_date(stream->call, &facts);
	call_answer(stream->call, head->status, (size_t)length, facts.has_type, has_body,
		    head->unit ? transaction->piece.range.length
		    : has_body ? stream->left
			       : 0);
	transaction_set_phrase(transaction, head->status, head->phrase);
	cache_store_head(transaction, head);
	if (head->unit)
		cache_store_body(transaction, &transaction->piece.range, &transaction->piece.hold,
				 1, 1);
	else if (!stream->left)
		cache_store_end(transaction);
	if (stream->left) {
		transaction->responder = head->status == 101 ? &tunnel : &pieces;
		transaction->response.live = true;
	} else {
		stream->ended = true;
	}
	return true;
}

static bool take_head(struct response_stream *stream, struct slice text)
{
	struct cgihead head;
	const char *fault = cgihead_parse(&head, text);

	if (fault)
		return response_stream_fail(stream, fault);
	counter_add(&stream->call->transaction->thread->counters->worker_messages, text.length);
	return use_head(stream, &head);
}

/* The pointer of an empty slice may be NULL. */
static void copy_slice(char *to, struct slice from)
{
	if (from.length)
		memcpy(to, from.at, from.length);
}

bool response_stream_http_head(struct response_stream *stream, const struct cgihead *head)
{
	if (stream->failed)
		return false;
	counter_add(&stream->call->transaction->thread->counters->worker_messages,
		    head->lines.length);
	if (!stream->held)
		return use_head(stream, head);
	/* The phrase follows the lines. */
	stream->head = malloc(head->lines.length + head->phrase.length + 1);
	if (!stream->head)
		return response_stream_fail(stream, "out of memory for its response head");
	copy_slice(stream->head, head->lines);
	copy_slice(stream->head + head->lines.length, head->phrase);
	stream->head_length = head->lines.length;
	stream->phrase_length = head->phrase.length;
	stream->http_status = (uint16_t)head->status;
	return true;
}

bool response_stream_stored_head(struct response_stream *stream)
{
	char *lines = stream->head;
	struct cgihead head;
	const char *fault;
	bool good;

	stream->head = NULL;
	fault = cgihead_read_http(&head, stream->http_status,
				  (struct slice){lines, stream->head_length});
	head.phrase = (struct slice){lines + stream->head_length, stream->phrase_length};
	good = fault ? response_stream_fail(stream, fault) : use_head(stream, &head);
	free(lines);
	return good;
}

static enum stream_head_state fail_long(struct response_stream *stream)
{
	char fault[128];

	g_snprintf(fault, sizeof(fault),
		   "its response head is too long: more than max-response-header (%zu bytes) of "
		   "its pool",
		   stream->call->pool->settings->max_response_header);
	(void)response_stream_fail(stream, fault);
	return STREAM_CALL_OVER;
}

enum stream_head_state response_stream_gather_head(struct response_stream *stream,
						   struct slice *run)
{
	size_t most = stream->call->pool->settings->max_response_header;
	size_t end, seen = stream->head_length, more;
	char *whole = stream->head;
	bool good;

	if (!whole) {
		end = cgihead_length(run->at, run->length, 0);
		if (end > most)
			return fail_long(stream);
		if (end) {
			struct slice text = {run->at, end};

			run->at += end;
			run->length -= end;
			return take_head(stream, text) ? STREAM_HEAD_WHOLE : STREAM_CALL_OVER;
		}
	}
	more = MIN(run->length, most - seen);
	whole = realloc(whole, seen + more);
	if (!whole) {
		(void)response_stream_fail(stream, "out of memory for its response head");
		return STREAM_CALL_OVER;
	}
	stream->head = whole;
	memcpy(whole + seen, run->at, more);
	stream->head_length += more;
	end = cgihead_length(whole, stream->head_length, seen);
	if (!end && stream->head_length == most)
		return fail_long(stream);
	if (!end) {
		run->length = 0;
		return STREAM_HEAD_PART;
	}
	run->at += end - seen;
	run->length -= end - seen;
	stream->head = NULL;
	good = take_head(stream, (struct slice){whole, end});
	free(whole);
	return good ? STREAM_HEAD_WHOLE : STREAM_CALL_OVER;
}
