/* SPDX-License-Identifier: MIT */
/*
 * gw-lane-answer.c - what a worker answers to a call, on its way to the
 * connection.
 *
 * An answer in pieces is told to the connection with the first record.  Then
 * pieces wait in a line, which the connection takes one after the other by
 * next(); or it waits for one: `wanted`.
 */
#include <assert.h>

#include "backend/gw-keep.h"
#include "backend/gw-lane-inside.h"
#include "backend/gw-pace.h"
#include "core/page-memory.h"
#include "http/cgihead.h"
#include "http/response.h"

/* The library tells a worker of several at a time: with so many kept it may have to wait. */
#define KEPT_MOST (NC_WORKER_WINDOW / 2)

/*
 * Gives the worker its window back for what has left, and for what may wait
 * here while it goes on.  If it still has to wait, that is for the client.
 *
 * What is more than was announced gets nothing back: no client takes it, so
 * nothing else would slow a worker down that sends it without end.
 */
static void pace(struct gw_call *call)
{
	struct lane_call *own = gw_lane_call(call);

	gw_pace_ahead(call, own->shared, own->parts.bytes);
	if (!own->lane) {
		gw_pace_go_on(call);
		return;
	}
	while (own->kept > own->excess && (own->kept - own->excess > own->parts.count ||
					   gw_pace_has_room(call, own->shared))) {
		(void)NC_exchange_sent(own->lane->exchange, own->lane->server->number,
				       gw_lane_tag(own->lane, own->slot));
		own->lane->dirty = true;
		own->kept--;
		gw_pace_go_on(call);
	}
	if (own->kept - own->excess > KEPT_MOST)
		gw_pace_wait(call);
}

static void advance(struct gw_call *call)
{
	struct lane_call *own = gw_lane_call(call);

	/* An empty piece is the end, which must not be mistaken for a good one. */
	if (own->failed && !gw_parts_wait(&own->parts))
		call->transaction->status = 0;
	gw_parts_hand_on(&own->parts, call->transaction);
	pace(call);
}

/* The present piece has left. */
static enum respond next(struct transaction *transaction)
{
	struct gw_call *call = gw_call_of(transaction);
	struct lane_call *own = gw_lane_call(call);

	if (own->lane && !gw_parts_wait(&own->parts)) {
		gw_parts_hand_on(&own->parts, transaction);
		pace(call);
		own->wanted = true;
		gw_start_timer(call);
		return RESPOND_LATER;
	}
	advance(call);
	return RESPOND_NOW;
}

/* There is a piece, or the end, for who waits for it. */
static void satisfy(struct gw_call *call)
{
	struct lane_call *own = gw_lane_call(call);

	if (!own->wanted || (own->lane && !gw_parts_wait(&own->parts)))
		return;
	own->wanted = false;
	timer_stop(&call->timer);
	advance(call);
	call->transaction->done(call->transaction);
}

/* No more of an answer comes, or it is of no use. */
void gw_lane_break_off(struct gw_call *call, int status, const char *detail)
{
	gw_lane_desert(call);
	if (call->state != GW_ANSWERED) {
		gw_fail(call, status, detail);
		return;
	}
	gw_lane_call(call)->failed = true;
	gw_pace_go_on(call);
	gw_keep_drop(call->transaction, RESPCACHE_LOST);
	server_count(&call->transaction->server->counters.worker_failures, 1);
	satisfy(call);
}

static struct slice bytes_of(const struct NC_response *response)
{
	return (struct slice){response->data, response->data_length};
}

static void add_part(struct gw_call *call, const struct NC_response *response)
{
	struct server *server = call->transaction->server;
	struct lane_call *own = gw_lane_call(call);
	uint64_t before = own->left;
	bool good;

	if (response->data)
		good = gw_parts_add_bytes(&own->parts, bytes_of(response), &own->left,
					  &server->site->answers);
	else
		good = gw_parts_add(&own->parts, response->ranges, response->range_count,
				    &own->left);
	own->failed |= !good;
	server_count(response->data ? &server->counters.worker_messages
				    : &server->counters.worker_bodies,
		     before - own->left);
}

static uint64_t length_of(const struct NC_response *response)
{
	uint64_t bytes = response->data_length;

	for (unsigned i = 0; i < response->range_count; i++)
		bytes += response->ranges[i].length;
	return bytes;
}

/* A part of which so much is sent: what is more than was announced is nobody's. */
static void keep_part(struct gw_call *call, const struct NC_response *response, uint64_t sent)
{
	if (length_of(response) > sent)
		gw_keep_drop(call->transaction, RESPCACHE_LOST);
	else if (response->data)
		gw_keep_bytes(call->transaction, bytes_of(response));
	else
		gw_keep_part(call->transaction, response->ranges, response->range_count);
}

void gw_lane_piece(struct gw_call *call, const struct NC_response *response)
{
	struct lane_call *own = gw_lane_call(call);
	bool excess = own->left == 0;

	if (response->flags & NC_RESPONSE_ABORTED) {
		gw_lane_break_off(call, 502, "The worker gave up.");
		return;
	}
	keep_part(call, response, own->left);
	add_part(call, response);
	if (own->lane) {
		own->kept++;
		own->excess += excess;
	}
	pace(call);
	/* What was announced must come. */
	if (own->failed ||
	    (!own->lane && own->left && call->transaction->length != TRANSACTION_UNKNOWN)) {
		gw_lane_break_off(call, 502, NULL);
		return;
	}
	/* With the last byte that was announced the connection asks for no more. */
	if (!own->lane || own->left == 0)
		gw_keep_end(call->transaction);
	satisfy(call);
}

/* Bytes of a body in pieces, or TRANSACTION_UNKNOWN; false: malformed lines. */
static bool announced(struct slice lines, uint64_t *length)
{
	struct cgihead head;

	*length = TRANSACTION_UNKNOWN;
	if (lines.length == 0)
		return true;
	if (cgihead_parse(&head, lines))
		return false;
	if (head.has_length)
		*length = head.length;
	return true;
}

/* What the response cache is to know of it. */
static void keep(struct gw_call *call, const struct NC_response *response, struct slice lines,
		 size_t filtered, bool has_body)
{
	struct transaction *transaction = call->transaction;
	/* A bit of each range whose unit is to be had again. */
	uint64_t stay = response->flags & NC_RESPONSE_KEEP
				? ~(uint64_t)(response->flags / NC_RESPONSE_DROP(0))
				: 0;

	/* Fields that were left out may be for the cache. */
	if (transaction->keep || filtered != lines.length)
		gw_keep_lines(transaction, response->status, lines);
	if (has_body && (gw_lane_call(call)->lane || transaction->data)) {
		/* It was taken, and its bytes are there as far as they are sent. */
		keep_part(call, response, transaction_piece(transaction));
		if (!gw_lane_call(call)->lane)
			gw_keep_end(transaction);
	} else {
		gw_keep_body(transaction, response->ranges, has_body ? response->range_count : 0,
			     stay);
	}
}

void gw_lane_answer(struct gw_lane *lane, struct gw_call *call, const struct NC_response *response)
{
	struct transaction *transaction = call->transaction;
	struct lane_call *own = gw_lane_call(call);
	struct slice lines = {.at = response->headers, .length = response->headers_length};
	struct response_facts facts = {0};
	const char *fault = "malformed header lines, or no memory for them";
	bool good;
	bool has_body = (own->lane || response->range_count || response->data) &&
			response->status != 204 && response->status != 304;
	uint64_t length = 0;
	long filtered = 0;

	server_count(&lane->server->counters.worker_messages, response->headers_length);
	good = lines.length <= call->pool->settings->max_response_header;
	if (!good)
		fault = "header lines that are longer than max-response-header of its pool";
	else if (lines.length)
		filtered = gw_take_lines(call, lines, &facts);
	if (good && own->lane)
		good = announced(lines, &length);
	if (filtered < 0 || !good) {
		gw_lane_complain(lane, fault);
		server_count(&lane->failures, 1);
		gw_response_release(response);
		gw_lane_break_off(call, 502, NULL);
		return;
	}
	own->left = own->lane ? length : UINT64_MAX;
	if (!has_body)
		own->left = 0;
	own->owed = false;
	own->pages = &call->pool->pages[lane->process->number];
	if (response->range_count == 1 && !own->lane && has_body) {
		/* Nearly all are so. */
		own->held = response->body.id;
		own->left -= response->body.length;
		transaction->body = response->body;
		own->page = response->body.length;
		transaction->pages = own->pages;
		server_count(&lane->server->counters.worker_bodies, response->body.length);
	} else if (response->range_count || response->data) {
		add_part(call, response);
		gw_parts_hand_on(&own->parts, transaction);
	}
	page_memory_hold(own->pages, own->page);
	if (!own->lane)
		length = has_body ? UINT64_MAX - own->left : 0;
	if (own->failed) {
		gw_lane_break_off(call, 503, NULL);
		return;
	}
	if (own->lane && has_body && length) {
		transaction->next = next;
		transaction->live = true;
	}
	gw_take_date(call, &facts);
	gw_answer(call, response->status, (size_t)filtered, facts.has_type, has_body,
		  has_body ? length : 0);
	if (own->lane) {
		own->kept = 1;
		pace(call);
	}
	keep(call, response, lines, (size_t)filtered, has_body);
	transaction->done(transaction);
}
