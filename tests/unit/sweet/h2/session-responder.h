/* SPDX-License-Identifier: MIT */
/*
 * session-responder.h - what answers the requests of the tests of sessions, on the loop's thread;
 * and the objects that it shares with the client, session-fixture.h.
 */
#ifndef SESSION_RESPONDER_H
#define SESSION_RESPONDER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <nabc.h>

#include "base/slice.h"
#include "config/configuration.h"
#include "core/server.h"
#include "core/site.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/piece.h"
#include "h2/session-internal.h"
#include "handler/route.h"
#include "http/request.h"

#include "loop-fixture.h"
#include "route-seam.h"
#include "suite.h"

#define LARGE ((size_t)1 << 20) /* bytes of a response: more than sockets and windows have */
#define PIECE ((size_t)30000)
#define PIECES 5u
#define WINDOW ((size_t)64 << 10) /* of a request's body */
#ifndef STREAMS_MAX
#define STREAMS_MAX 64
#endif
#define FRAME_MOST 16384u
#define UNCUT UINT32_MAX
#define INPUT_PAUSE 32768u /* of connection-body.c */

/* What the responder has of a stream, and what happened to it. */
static struct exchange {
	struct transaction *transaction;
	char kind;
	char *memory; /* of the response, or of its piece */
	unsigned pieces;
	size_t taken; /* of the request's body */
	bool over;    /* all of it */
	bool has;     /* a piece that was not answered yet */
	bool waits;   /* to end: all its pieces have been sent */
	bool started, finished, gone, wrong;
	uint64_t turn, gone_turn; /* of the loop, in which it was started, and lost its client */
	uint64_t open;		  /* connections that were counted then */
} exchanges[STREAMS_MAX];

/* What the client has heard of a stream. */
static struct {
	unsigned heads;
	size_t content;
	bool ended;
	bool refused;	 /* its content is not the pattern */
	uint32_t reset;	 /* the code, or UNCUT */
	uint64_t credit; /* given by the server */
} heard[STREAMS_MAX];

static bool goes_away, ponged;
static struct runner runner;
static struct thread thread;
static struct server server;
static struct config config;
static struct site site;
static struct config_ref generation;
static NC_cache *cache;
static size_t unit;
static int client;
static GByteArray *gathered; /* what the client says at once, later; or NULL */

/* --- the responder: everything on the loop's thread --------------------------------------- */

static inline struct exchange *exchange_of(const struct transaction *transaction)
{
	struct exchange *const *kept = (struct exchange *const *)(const void *)transaction->scratch;

	return *kept;
}

/* Its memory is of no use afterwards. */
static inline void forget_memory(struct exchange *exchange)
{
	if (exchange->memory)
		memset(exchange->memory, 0, exchange->kind == 'l' ? LARGE : PIECE);
	free(exchange->memory);
	exchange->memory = NULL;
}

static inline void on_finish(struct transaction *transaction)
{
	struct exchange *exchange = exchange_of(transaction);

	forget_memory(exchange);
	EVENT(exchange->wrong |= exchange->finished; exchange->finished = true);
}

static inline void on_gone(struct transaction *transaction)
{
	struct exchange *exchange = exchange_of(transaction);

	EVENT(exchange->gone = true; exchange->gone_turn = loop_counts(thread.loop)->waits;
	      exchange->open = thread.counters->open);
}

static inline void set_memory(struct transaction *transaction, size_t at, size_t length)
{
	struct exchange *exchange = exchange_of(transaction);

	forget_memory(exchange);
	exchange->memory = must_alloc(length);
	pattern_fill(exchange->memory, 1, at, length);
	transaction->piece = piece_bytes(exchange->memory, length);
}

static inline enum respond next_piece(struct transaction *transaction)
{
	struct exchange *exchange = exchange_of(transaction);
	bool waits = exchange->kind == 'e' && exchange->pieces == 1;

	if (strchr("cr", exchange->kind) && exchange->pieces == 2) {
		transaction->response.status = 0;
		transaction->response.reset = exchange->kind == 'r';
	} else if (exchange->pieces < PIECES && !waits) {
		set_memory(transaction, PIECE * exchange->pieces, PIECE);
	} else {
		forget_memory(exchange);
		transaction->piece = piece_bytes(NULL, 0);
	}
	exchange->pieces++;
	EVENT(exchange->waits = waits);
	return waits ? RESPOND_LATER : RESPOND_NOW;
}

static const struct transaction_responder in_pieces = {
	.next = next_piece, .gone = on_gone, .finish = on_finish};

static inline enum respond answer(struct transaction *transaction)
{
	struct exchange *exchange = exchange_of(transaction);
	struct NC_range whole = {.id = unit, .length = LARGE};
	char *head = transaction->head_buffer;

	transaction->response.status = 200;
	transaction->response.head = head;
	transaction->response.length = LARGE;
	if (exchange->kind == 'l') {
		set_memory(transaction, 0, LARGE);
	} else if (exchange->kind == 'u') {
		exchange->wrong |= piece_hold_range(&transaction->piece, whole) != 0;
	} else if (strchr("pcre", exchange->kind)) {
		transaction->response.length = TRANSACTION_UNKNOWN;
		transaction->responder = &in_pieces;
		return next_piece(transaction);
	} else {
		set_memory(transaction, 0, PIECE);
		transaction->response.length = PIECE;
	}
	transaction->response.head_length = (size_t)sprintf(head, "Content-Length: %zu\r\n",
							    (size_t)transaction->response.length);
	return RESPOND_NOW;
}

static inline void take_piece(struct transaction *transaction)
{
	static char bytes[2 * WINDOW];
	struct exchange *exchange = exchange_of(transaction);
	size_t length = (size_t)transaction->upload.length - exchange->taken;

	exchange->has = true;
	exchange->over = !transaction->upload.more;
	exchange->wrong |= length > WINDOW ||
			   (length && NC_pread(NULL, transaction->upload.unit, bytes, WINDOW, 0) !=
					      (ssize_t)length) ||
			   pattern_match(bytes, 1, exchange->taken, length) != length;
	exchange->taken += length;
}

static inline enum respond on_received(struct transaction *transaction)
{
	EVENT(take_piece(transaction));
	return transaction->upload.more ? RESPOND_LATER : answer(transaction);
}

static inline enum respond ask(struct transaction *transaction, void *context)
{
	(void)context;
	transaction->owner->receive_piece(transaction, UINT64_MAX, WINDOW);
	return RESPOND_LATER;
}

static const struct transaction_responder responder = {
	.received = on_received, .gone = on_gone, .finish = on_finish};

enum respond route(struct transaction *transaction)
{
	const struct stream *stream = transaction->connection;
	struct exchange *exchange = &exchanges[stream->id];

	EVENT(exchange->wrong |= exchange->started; exchange->started = true;
	      exchange->turn = loop_counts(thread.loop)->waits; exchange->transaction = transaction;
	      exchange->kind = transaction->request->path.at[1]);
	*(struct exchange **)(void *)transaction->scratch = exchange;
	transaction->responder = &responder;
	if (exchange->kind == 'b')
		return ask(transaction, NULL);
	return exchange->kind == 'w' ? RESPOND_LATER : answer(transaction);
}

static inline void ask_again(void *argument)
{
	struct exchange *exchange = argument;

	exchange->has = false;
	ask(exchange->transaction, NULL);
}

static inline void end_now(void *argument)
{
	const struct exchange *exchange = argument;

	transaction_done(exchange->transaction);
}

static inline void be_done(void *argument)
{
	(void)answer(((const struct exchange *)argument)->transaction);
	end_now(argument);
}

static inline enum respond answer_now(struct transaction *transaction, void *context)
{
	EVENT(*(bool *)context = true);
	return answer(transaction);
}

static bool resumed;

static inline void resume_with_answer(void *argument)
{
	struct transaction *transaction = ((struct exchange *)argument)->transaction;

	transaction->owner->resume(transaction, answer_now, &resumed);
}

static inline void resume_with_body(void *argument)
{
	struct transaction *transaction = ((struct exchange *)argument)->transaction;

	transaction->owner->resume(transaction, ask, NULL);
}

#endif
