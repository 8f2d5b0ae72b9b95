/* SPDX-License-Identifier: MIT */
/*
 * gw-call.c - see gw-call.h.  All on the server's thread.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <glib.h>

#include <nabc-worker.h>

#include "backend/gw-call.h"
#include "backend/gw-keep.h"
#include "backend/gw-pace.h"
#include "backend/gw-upload.h"
#include "backend/gw-variables.h"
#include "base/date.h"
#include "base/decimal.h"

#define BODY_VARIABLES 128 /* bytes of CONTENT_LENGTH and NABC_BODY_ID */

/*
 * A body up to this size is gathered, so that a client that takes its time
 * holds back no program; a larger one comes in pieces.
 */
#define WHOLE_MAX (1024 * 1024)
#define PIECE (256 * 1024) /* bytes, of one that is known not to come as a whole */

/*
 * A call that is in the way of programs' ends again and again fails in the end:
 * it may be meant to be there, by who knows how to end them.
 */
#define TAKEN_BACK_MAX 2

static_assert(sizeof(struct gw_call) <= TRANSACTION_SCRATCH, "fits the scratch");

static struct gw_queue *queue_of(const struct gw_call *call)
{
	return &call->pool->queues[call->transaction->server->number];
}

/* Where the answer's head will be is room enough for most: nothing is there before that. */
static void keep_block(struct gw_call *call, const char *block, size_t length)
{
	struct transaction *transaction = call->transaction;
	bool fits = length <= sizeof(transaction->head_buffer);

	/* That of a request with a body, or that waited, is a copy already. */
	if (block != call->block)
		call->block =
			memcpy(fits ? transaction->head_buffer : g_malloc(length), block, length);
	call->block_length = length;
}

static void drop_block(struct gw_call *call)
{
	if (call->block != call->transaction->head_buffer)
		g_free(call->block);
	call->block = NULL;
}

static void finish(struct transaction *transaction)
{
	struct gw_call *call = gw_call_of(transaction);

	timer_stop(&call->timer);
	gw_pace_end(call);
	gw_upload_end(call);
	gw_keep_drop(transaction, RESPCACHE_ABANDONED);
	drop_block(call);
	g_clear_pointer(&call->head, g_free);
	call->pool->protocol->finish(call);
}

/* The answer when nobody gave one. */
static enum respond refuse(struct transaction *transaction, int status, const char *detail)
{
	server_count(&transaction->server->counters.worker_failures, 1);
	gw_keep_drop(transaction, RESPCACHE_LOST);
	transaction->gone = NULL;
	transaction->date = 0;
	if (status == 503) {
		transaction->head = "Retry-After: 1\r\n";
		transaction->head_length = strlen(transaction->head);
	}
	transaction_fail(transaction, status, detail);
	if (!detail)
		transaction->reason = "no answer of the program's that can be sent";
	return RESPOND_NOW;
}

void gw_fail(struct gw_call *call, int status, const char *detail)
{
	struct transaction *transaction = call->transaction;

	timer_stop(&call->timer);
	if (call->state == GW_ANSWERED) {
		/* The head may have left: only a cut connection tells. */
		server_count(&transaction->server->counters.worker_failures, 1);
		gw_keep_drop(transaction, RESPCACHE_LOST);
		transaction->status = 0;
	} else {
		refuse(transaction, status, detail);
	}
	transaction->done(transaction);
}

/* --- the queue ------------------------------------------------------------------------ */

static void queue_remove(struct gw_queue *queue, struct gw_call *call)
{
	struct gw_call **link = &queue->first;

	while (*link != call)
		link = &(*link)->next;
	*link = call->next;
	if (queue->last == &call->next)
		queue->last = link;
	server_count(&queue->count, (uint64_t)-1);
	timer_stop(&call->timer);
}

static void none_came(struct timer *timer)
{
	struct gw_call *call = (struct gw_call *)timer;

	queue_remove(queue_of(call), call);
	gw_fail(call, 503, "No worker is free.");
}

/* Who waits for it has gone: so has the need for it. */
static void gone(struct transaction *transaction)
{
	struct gw_call *call = gw_call_of(transaction);

	if (call->spooling) {
		transaction->done(transaction);
	} else if (call->state == GW_WAITS && call->block) {
		queue_remove(queue_of(call), call);
		transaction->done(transaction);
	} else if (call->state != GW_WAITS && call->pool->protocol->gone) {
		/* It fails for this one alone. */
		gw_keep_drop(transaction, RESPCACHE_ABANDONED);
		call->pool->protocol->gone(call);
	}
}

/* Before the one that link leads to. */
static void queue_insert(struct gw_queue *queue, struct gw_call **link, struct gw_call *call)
{
	call->next = *link;
	*link = call;
	if (!call->next)
		queue->last = &call->next;
	server_count(&queue->count, 1);
	loop_timer_start(call->transaction->server->loop, &call->timer,
			 call->pool->settings->queue_ms, none_came);
}

static bool enqueue(struct gw_call *call, const char *block, size_t length)
{
	struct gw_queue *queue = queue_of(call);

	if (atomic_load_explicit(&queue->count, memory_order_relaxed) >=
	    call->pool->settings->queue)
		return false;
	keep_block(call, block, length);
	queue_insert(queue, queue->last, call);
	return true;
}

static bool is_hopeless(struct gateway_pool *pool)
{
	return pool->protocol->is_hopeless && pool->protocol->is_hopeless(pool);
}

/* To the head of the queue, from a program that has not begun with it. */
static void requeue(struct gw_call *call)
{
	struct gw_queue *queue = queue_of(call);

	assert(call->state == GW_UNDER_WAY && call->block);
	call->state = GW_WAITS;
	memset(call->own, 0, sizeof(call->own));
	/* It was let in before: the queue's length is no matter now. */
	queue_insert(queue, &queue->first, call);
}

bool gw_take_back(struct gw_call *call)
{
	if (call->taken_back == TAKEN_BACK_MAX || is_hopeless(call->pool))
		return false;
	call->taken_back++;
	requeue(call);
	return true;
}

void gw_move(struct gw_call *call)
{
	call->moves = true;
	requeue(call);
}

static void too_late(struct timer *timer)
{
	struct gw_call *call = (struct gw_call *)timer;

	call->pool->protocol->too_late(call);
}

static bool submit(struct gw_call *call, const char *block, size_t length)
{
	struct server *server = call->transaction->server;

	/* Before the protocol has it, which may answer at once. */
	call->state = GW_UNDER_WAY;
	if (!call->pool->protocol->submit(call, block, length)) {
		call->state = GW_WAITS;
		return false;
	}
	server_count(&server->counters.worker_requests, call->taken_back == 0 && !call->moves);
	server_count(&server->counters.worker_messages, length);
	return true;
}

/* The protocol has it now. */
static void handed_on(struct gw_call *call, const char *block, size_t length)
{
	if (call->pool->protocol->takes_back)
		keep_block(call, block, length);
	else
		drop_block(call);
	call->moves = false;
	gw_start_timer(call);
}

void gw_start_timer(struct gw_call *call)
{
	loop_timer_start(call->transaction->server->loop, &call->timer,
			 call->pool->settings->answer_ms, too_late);
}

void gw_room(struct gateway_pool *pool, struct server *server)
{
	struct gw_queue *queue = &pool->queues[server->number];

	for (;;) {
		struct gw_call *call;

		/* They came first.  One that finds no room after all is not followed by others. */
		if (queue->behind && !(queue->first && queue->first->moves))
			pool->protocol->relieve(pool, server);
		call = queue->first;
		if (!call || !submit(call, call->block, call->block_length))
			return;
		queue_remove(queue, call);
		handed_on(call, call->block, call->block_length);
	}
}

void gw_room_task(struct loop_task *task)
{
	struct gw_queue *queue =
		(struct gw_queue *)((char *)task - offsetof(struct gw_queue, room.task));

	loop_notice_begin(&queue->room);
	gw_room(queue->pool, queue->server);
}

void gw_room_everywhere(struct gateway_pool *pool)
{
	/* At the end of the server no loop runs. */
	if (!pool->gateway || pool->gateway->closing)
		return;
	for (unsigned i = 0; i < pool->gateway->site->threads; i++) {
		struct gw_queue *queue = &pool->queues[i];

		loop_notify(queue->server->loop, &queue->room);
	}
}

void gw_queue_abandon(struct gw_queue *queue)
{
	while (queue->first) {
		struct gw_call *call = queue->first;

		queue_remove(queue, call);
		gw_fail(call, 503, "No worker is free.");
	}
}

/* --- the request ------------------------------------------------------------------------ */

/* To the protocol, or to the queue for it. */
static enum respond hand_on(struct gw_call *call, const char *block, size_t length)
{
	/* Who waits already goes first. */
	if (!queue_of(call)->first && submit(call, block, length)) {
		handed_on(call, block, length);
		return RESPOND_LATER;
	}
	if (!is_hopeless(call->pool) && enqueue(call, block, length))
		return RESPOND_LATER;
	return refuse(call->transaction, 503, "No worker is free.");
}

/* With what is known of a body that is there: its length; its unit, or 0. */
static enum respond hand_on_whole(struct gw_call *call, uint64_t length, size_t unit)
{
	char *at = call->block + call->block_length;

	if (call->counted_length)
		at += sprintf(at, "CONTENT_LENGTH=%" PRIu64, length) + 1;
	if (unit)
		at += sprintf(at, "NABC_BODY_ID=%zu", unit) + 1;
	return hand_on(call, call->block, (size_t)(at - call->block));
}

/*
 * The body is there: the program is told how long it is and where to find it.
 * Or the first piece of one: it is with the call, and its length is told if
 * the request did.  Or a further piece.
 */
static enum respond received(struct transaction *transaction)
{
	struct gw_call *call = gw_call_of(transaction);

	call->asked = false;
	if (call->buffered && (transaction->upload_more || call->spooling)) {
		int status = gw_upload_take(call);

		return status ? refuse(transaction, status, NULL) : RESPOND_LATER;
	}
	if (call->state != GW_WAITS) {
		gw_start_timer(call);
		if (!call->pool->protocol->body(call)) {
			timer_stop(&call->timer);
			return refuse(transaction, 502, "The worker ended while it was at work.");
		}
		if (call->rest && transaction->upload_more && !call->asked)
			gw_next_body(call);
		return RESPOND_LATER;
	}
	if (transaction->upload_more)
		return hand_on(call, call->block, call->block_length);
	return hand_on_whole(call, transaction->upload_length, transaction->upload);
}

void gw_upload_ready(struct gw_call *call)
{
	struct transaction *transaction = call->transaction;

	if (call->spooling) {
		call->spooling = false;
		/* Its id is that of a part: the program is not to take it for the body. */
		if (hand_on_whole(call, gw_upload_length(call), 0) == RESPOND_NOW)
			transaction->done(transaction);
		return;
	}
	if (call->state == GW_UNDER_WAY)
		gw_start_timer(call);
	/* One that answers already may leave the rest of its request alone. */
	if (!call->pool->protocol->body(call) && call->state == GW_UNDER_WAY)
		gw_fail(call, 502, "The worker ended while it was at work.");
}

void gw_upload_lost(struct gw_call *call)
{
	if (call->state == GW_WAITS)
		gw_fail(call, 503, NULL);
	else
		call->pool->protocol->body_lost(call);
}

void gw_ask_piece(struct gw_call *call)
{
	struct transaction *transaction = call->transaction;
	uint64_t limit = transaction->scope->max_body;

	if (!limit)
		limit = UINT64_MAX;
	if (call->buffered)
		limit = MIN(limit, gw_upload_most(call->pool));
	if (call->spooling)
		call->window = MIN(call->window, PIECE);
	call->asked = true;
	transaction->receive_piece(transaction, limit, call->window);
}

/* Waits for the body with the variables that are known. */
static void ask_body(struct gw_call *call, const char *block, size_t length)
{
	const struct gw_protocol *protocol = call->pool->protocol;
	struct transaction *transaction = call->transaction;
	size_t most = transaction->server->site->max_unit;
	/* One more than comes as a whole: then it is seen that there is no more. */
	size_t whole = MIN(most, WHOLE_MAX + 1);
	uint64_t limit = transaction->scope->max_body;
	bool is_small = transaction->request->content_length <= whole;
	bool is_chunked = transaction->request->chunked;

	call->counted_length = is_chunked;
	call->length = is_chunked ? TRANSACTION_UNKNOWN : transaction->request->content_length;
	call->block = g_malloc(length + BODY_VARIABLES);
	memcpy(call->block, block, length);
	call->block_length = length;
	transaction->received = received;
	call->buffered = gw_upload_is_wanted(call->pool);
	if (protocol->body && (call->buffered || !(is_chunked && protocol->wants_length))) {
		call->window = is_small ? whole : MIN(whole, PIECE);
		gw_ask_piece(call);
	} else {
		/* It must fit a unit, whatever is allowed. */
		transaction->receive(transaction, limit && limit < most ? limit : most);
	}
}

void gw_next_body(struct gw_call *call)
{
	if (call->upload) {
		gw_upload_next(call);
		return;
	}
	/* The time is the client's now. */
	timer_stop(&call->timer);
	gw_pace_wait(call);
	if (call->asked)
		return;
	call->before = call->transaction->upload_length;
	gw_ask_piece(call);
}

bool gw_rest_of_body(struct gw_call *call)
{
	const struct transaction *transaction = call->transaction;
	uint64_t most = transaction->server->site->max_unit;
	uint64_t coming = call->asked ? call->window : 0;

	if (call->length == TRANSACTION_UNKNOWN ||
	    call->length > transaction->upload_length + coming + most)
		return false;
	call->rest = true;
	call->window = most;
	gw_next_body(call);
	return true;
}

enum respond gw_respond(struct gateway_pool *pool, struct transaction *transaction, size_t skip)
{
	struct server *server = transaction->server;
	struct gw_call *call = gw_call_of(transaction);
	char *block = server->gateway_block;
	long length;

	length = gw_variables(pool, transaction, skip, block, NC_BLOCK_MAX - BODY_VARIABLES);
	memset(call, 0, sizeof(*call));
	call->transaction = transaction;
	call->pool = pool;
	if (length < 0)
		return transaction_refuse(transaction, 431, "variables that are too long");
	if (pool->protocol->redirects) {
		call->head =
			g_memdup2(transaction->request->head.at, transaction->request->head.length);
		call->head_length = transaction->request->head.length;
	}
	transaction->finish = finish;
	transaction->gone = gone;
	if (!transaction->has_upload)
		return hand_on(call, block, (size_t)length);
	ask_body(call, block, (size_t)length);
	return RESPOND_LATER;
}

/* --- the answer ------------------------------------------------------------------------- */

void gw_take_date(struct gw_call *call, const struct response_facts *facts)
{
	time_t now, date;

	if (facts->dates != 1)
		return;
	now = time(NULL);
	/* Clients count from it: one that is yet to come would make the answer last. */
	if (date_parse(facts->date, now, &date) && date <= now)
		call->transaction->date = date;
}

long gw_take_lines(struct gw_call *call, struct slice lines, struct response_facts *facts)
{
	struct transaction *transaction = call->transaction;
	/* Of "a:" and LF every third byte becomes two. */
	size_t most = lines.length + lines.length / 3;
	size_t room = GW_LINES_MAX;

	transaction_drop_room(transaction);
	if (most > room) {
		if (!transaction_make_room(transaction, most + GW_OWN_LINES))
			return -1;
		room = most;
	}
	return response_filter_headers(lines, transaction_lines(transaction), room, facts);
}

void gw_answer(struct gw_call *call, int status, size_t lines_length, bool has_type, bool has_body,
	       uint64_t length)
{
	struct transaction *transaction = call->transaction;
	char *at = transaction_lines(transaction) + lines_length;
	bool bodiless;

	assert(lines_length <=
	       (transaction->long_head ? transaction->long_room - GW_OWN_LINES : GW_LINES_MAX));
	timer_stop(&call->timer);
	drop_block(call);
	call->state = GW_ANSWERED;
	call->has_type = has_type;
	/* An error that says nothing at all gets a page, which brings its own type. */
	bodiless = length == 0 && (status < 400 || has_type);
	if (!has_type && has_body && length && (status < 400 || length != TRANSACTION_UNKNOWN))
		at = stpcpy(at, "Content-Type: application/octet-stream\r\n");
	if (length != TRANSACTION_UNKNOWN && (length || bodiless) && status != 204 &&
	    status != 304) {
		at = stpcpy(at, "Content-Length: ");
		at = decimal_write(at, length);
		at = stpcpy(at, "\r\n");
	}
	transaction->status = status;
	transaction->head = transaction_lines(transaction);
	transaction->head_length = (size_t)(at - transaction->head);
	transaction->length = length;
	transaction->bodiless = bodiless;
}

void gw_measured(struct gw_call *call, uint64_t length)
{
	struct transaction *transaction = call->transaction;
	char *at = transaction_lines(transaction) + transaction->head_length;

	transaction->length = length;
	transaction->bodiless = length == 0 && (transaction->status < 400 || call->has_type);
	/* An error without a body gets a page, whose length that is not. */
	if (length || transaction->bodiless)
		transaction->head_length +=
			(size_t)sprintf(at, "Content-Length: %" PRIu64 "\r\n", length);
}

void gw_redirect(struct gw_call *call, struct slice target)
{
	struct transaction *transaction = call->transaction;
	char *head = g_steal_pointer(&call->head), *path = g_strndup(target.at, target.length);
	size_t head_length = call->head_length;

	/* What is kept is the answer of that other path. */
	gw_keep_drop(transaction, RESPCACHE_NOT_KEPT);
	/* Nor is there anybody left for the rest of the body. */
	if (transaction->has_upload)
		transaction->drop_upload(transaction);
	transaction_dismiss(transaction);
	transaction->again(transaction, (struct slice){head, head_length},
			   (struct slice){path, target.length});
	g_free(head);
	g_free(path);
}
