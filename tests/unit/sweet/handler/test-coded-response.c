/* SPDX-License-Identifier: MIT */
/*
 * test-coded-response.c - unit tests of coded-response.c, between a responder and a connection of the
 * test: the order of their calls, and what happens when either fails.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

#include "coding/compress-rule.h"
#include "config/configuration.h"
#include "event/piece.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction.h"
#include "handler/coded-response.h"
#include "coding/encoder.h"
#include "http/accept.h"

#include "suite.h"

#ifdef HAVE_ZLIB

static struct server server;
static struct thread thread;
static struct config config;
static struct config_ref ref;
static struct scope scope;
static struct transaction *transaction;

/* The responder's: what its next calls return, and how often it was called. */
static const char *pieces[8];
static unsigned given, finished;
static int owned; /* pieces that are not released yet */
/* The connection's: what came, and how often it was called. */
static char body[400000];
static size_t received;
static unsigned told;
static z_stream decoder;

static void release(struct piece *piece)
{
	ck_assert_ptr_eq(piece->owner, &owned);
	owned--;
}

static void give(const char *piece)
{
	transaction->piece = piece_bytes(piece, piece ? strlen(piece) : 0);
	if (!piece)
		return;
	transaction->piece.release = release;
	transaction->piece.owner = &owned;
	owned++;
}

/* "later": the piece comes by done(). */
static enum respond next(struct transaction *of)
{
	const char *piece = pieces[given++];

	ck_assert_ptr_eq(of, transaction);
	ck_assert_int_eq(transaction->piece.kind, PIECE_NONE);
	ck_assert_int_eq(owned, 0);
	if (piece && strcmp(piece, "later") == 0)
		return RESPOND_LATER;
	if (piece && strcmp(piece, "cut") == 0)
		transaction->response.status = 0;
	else
		give(piece);
	return RESPOND_NOW;
}

static void finish(struct transaction *of)
{
	ck_assert_ptr_eq(of, transaction);
	ck_assert_int_eq(owned, 0);
	finished++;
}

/* The connection takes the piece that is there. */
static size_t take(void)
{
	decoder.next_in = (Bytef *)(uintptr_t)transaction->piece.data;
	decoder.avail_in = (uInt)transaction->piece.length;
	decoder.next_out = (Bytef *)body + received;
	decoder.avail_out = (uInt)(sizeof(body) - received);
	if (decoder.avail_in)
		(void)inflate(&decoder, Z_SYNC_FLUSH);
	received = decoder.total_out;
	ck_assert_uint_eq(decoder.avail_in, 0);
	return transaction->piece.length;
}

static void done(struct transaction *of)
{
	ck_assert_ptr_eq(of, transaction);
	told++;
}

static const struct transaction_responder responder = {.next = next, .finish = finish};

static void set_up(void)
{
	static const struct transaction_owner owner = {.done = done};
	static char *types[] = {(char *)"text/*", NULL};

	memset(&server, 0, sizeof(server));
	memset(pieces, 0, sizeof(pieces));
	config.limits.compress_streams = 2;
	ref.config = &config;
	thread.server = &server;
	scope.compress = (struct compress_rule){
		.codings = 1u << CODING_GZIP, .types = types, .min = 1, .max = 1 << 20};
	transaction = calloc(1, sizeof(*transaction));
	transaction->thread = &thread;
	transaction->config_ref = &ref;
	transaction->scope = &scope;
	transaction->response.coding = CODING_GZIP;
	transaction->response.status = 200;
	transaction->response.head = "Content-Type: text/plain\r\n";
	transaction->response.head_length = strlen(transaction->response.head);
	transaction->response.length = TRANSACTION_UNKNOWN;
	transaction->responder = &responder;
	transaction->owner = &owner;
	transaction->connection = transaction;
	given = finished = told = 0;
	received = 0;
	memset(&decoder, 0, sizeof(decoder));
	ck_assert_int_eq(inflateInit2(&decoder, 15 + 16), Z_OK);
}

static void tear_down(void)
{
	transaction_finish(transaction);
	ck_assert_uint_eq(finished, 1);
	ck_assert_uint_eq(server.encoders, 0);
	ck_assert_ptr_null(transaction->response.coded);
	transaction_drop_room(transaction);
	free(transaction);
	(void)inflateEnd(&decoder);
}

static void has(const char *text)
{
	ck_assert_uint_eq(received, strlen(text));
	ck_assert_mem_eq(body, text, received);
}

static bool head_has(const char *text)
{
	return memmem(transaction->response.head, transaction->response.head_length, text,
		      strlen(text));
}

static enum respond ask(void)
{
	return transaction_next(transaction);
}

/* The first piece goes with the head; what comes while the program pauses is sent at once. */
START_TEST(test_pauses)
{
	pieces[0] = "two, ";
	pieces[1] = "later";
	pieces[2] = "later";
	give("one, ");
	coded_response_begin(transaction);
	ck_assert(head_has("Content-Encoding: gzip\r\n"));
	take();
	has("one, ");
	ck_assert_uint_eq(given, 0);
	ck_assert_int_eq(ask(), RESPOND_NOW);
	take();
	has("one, two, ");
	ck_assert_uint_eq(given, 2);
	ck_assert_int_eq(ask(), RESPOND_LATER);
	give("three, ");
	transaction_done(transaction);
	ck_assert_uint_eq(told, 1);
	take();
	has("one, two, three, ");
	/* The program ends. */
	ck_assert_int_eq(ask(), RESPOND_LATER);
	give(NULL);
	transaction_done(transaction);
	ck_assert_uint_eq(told, 2);
	ck_assert_uint_gt(take(), 0);
	has("one, two, three, ");
	ck_assert_int_eq(ask(), RESPOND_NOW);
	ck_assert_uint_eq(take(), 0);
}
END_TEST

/* The next piece comes while the one before is being sent: both stay as they are. */
START_TEST(test_meanwhile)
{
	const void *sending;

	pieces[0] = "later";
	give("one, ");
	coded_response_begin(transaction);
	take();
	ck_assert_int_eq(ask(), RESPOND_LATER);
	give("two, ");
	transaction_done(transaction);
	pieces[1] = "more, ";
	pieces[2] = "later";
	take();
	ck_assert_int_eq(ask(), RESPOND_NOW);
	sending = transaction->piece.data;
	give("three");
	transaction_done(transaction);
	ck_assert_ptr_eq(transaction->piece.data, sending);
	ck_assert_uint_eq(told, 1);
	take();
	has("one, two, more, ");
	ck_assert_int_eq(ask(), RESPOND_NOW);
	take();
	has("one, two, more, three");
}
END_TEST

START_TEST(test_known_length)
{
	pieces[0] = "def";
	transaction->response.length = 6;
	give("abc");
	coded_response_begin(transaction);
	ck_assert_uint_eq(transaction->response.length, TRANSACTION_UNKNOWN);
	take();
	ck_assert_int_eq(ask(), RESPOND_NOW);
	take();
	has("abcdef");
	ck_assert_int_eq(ask(), RESPOND_NOW);
	ck_assert_uint_eq(take(), 0);
	ck_assert_uint_eq(given, 1);
}
END_TEST

/* A whole body, without a next piece. */
START_TEST(test_whole)
{
	static const struct transaction_responder whole = {.finish = finish};

	transaction->response.length = 3;
	transaction->responder = &whole;
	give("abc");
	coded_response_begin(transaction);
	take();
	has("abc");
	ck_assert_int_eq(ask(), RESPOND_NOW);
	ck_assert_uint_eq(take(), 0);
}
END_TEST

/* The status tells the connection, once it asks; the log keeps the real one until then. */
START_TEST(test_cut_off)
{
	pieces[0] = _i ? "later" : "cut";
	give("one");
	coded_response_begin(transaction);
	take();
	if (_i) {
		ck_assert_int_eq(ask(), RESPOND_LATER);
		give(NULL);
		transaction->response.status = 0;
		transaction_done(transaction);
		ck_assert_uint_eq(told, 1);
	} else {
		ck_assert_int_eq(ask(), RESPOND_NOW);
	}
	ck_assert_int_eq(transaction->response.status, 0);
	ck_assert_int_eq(transaction->piece.kind, PIECE_NONE);
}
END_TEST

START_TEST(test_cut_off_meanwhile)
{
	pieces[0] = "two";
	pieces[1] = "later";
	give("one");
	coded_response_begin(transaction);
	take();
	ck_assert_int_eq(ask(), RESPOND_NOW);
	give(NULL);
	transaction->response.status = 0;
	transaction_done(transaction);
	ck_assert_int_eq(transaction->response.status, 200);
	take();
	ck_assert_int_eq(ask(), RESPOND_NOW);
	ck_assert_int_eq(transaction->response.status, 0);
}
END_TEST

/* While its responder works, the client goes. */
START_TEST(test_client_goes)
{
	pieces[0] = "later";
	give("one");
	coded_response_begin(transaction);
	take();
	ck_assert_int_eq(ask(), RESPOND_LATER);
	transaction->connection = NULL;
	give("two");
	transaction_done(transaction);
	ck_assert_uint_eq(told, 1);
	ck_assert_int_eq(owned, 1);
	transaction_finish(transaction);
	ck_assert_int_eq(owned, 0);
}
END_TEST

/* An encoder that fails at its first, or at a later piece. */
static unsigned writes_left;

static void *open_failing(void)
{
	return &writes_left;
}

static enum encoder_result write_failing(void *state, const void *piece, size_t bytes,
					 enum encoder_then then, struct encoder_output *output)
{
	(void)state;
	(void)piece;
	(void)bytes;
	(void)then;
	if (writes_left == 0 || encoder_make_room(output) != ENCODER_GOOD)
		return ENCODER_FAILED;
	writes_left--;
	output->bytes[output->length++] = 'x';
	return ENCODER_GOOD;
}

static void close_failing(void *state)
{
	(void)state;
}

static const struct encoder failing = {
	.open_fast = open_failing, .write = write_failing, .close = close_failing};

START_TEST(test_encoder_fails)
{
	writes_left = (unsigned)_i;
	pieces[0] = "two";
	give("one");
	coded_response_begin_with(transaction, &failing);
	if (_i < 2) {
		ck_assert_int_eq(transaction->response.status, 502);
		ck_assert_uint_eq(transaction->response.length, 0);
		ck_assert_uint_eq(finished, 1);
		return;
	}
	ck_assert_int_eq(transaction->response.status, 200);
	ck_assert_int_eq(ask(), RESPOND_NOW);
	ck_assert_int_eq(transaction->response.status, 0);
	ck_assert_int_eq(transaction->piece.kind, PIECE_NONE);
}
END_TEST

START_TEST(test_limit)
{
	config.limits.compress_streams = 0;
	give("one");
	coded_response_begin(transaction);
	ck_assert_str_eq(transaction->piece.data, "one");
	ck_assert_ptr_eq(transaction->responder, &responder);
	ck_assert(head_has("Vary: Accept-Encoding\r\n"));
	ck_assert(!head_has("gzip"));
	ck_assert_uint_eq(server.encoders_refused, 1);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_pauses);
	tcase_add_test(tcase, test_meanwhile);
	tcase_add_test(tcase, test_known_length);
	tcase_add_test(tcase, test_whole);
	tcase_add_loop_test(tcase, test_cut_off, 0, 2);
	tcase_add_test(tcase, test_cut_off_meanwhile);
	tcase_add_test(tcase, test_client_goes);
	tcase_add_loop_test(tcase, test_encoder_fails, 0, 4);
	tcase_add_test(tcase, test_limit);
}

#else

static void fill(TCase *tcase)
{
	(void)tcase;
}

#endif

RUN_SUITE("coded-response", fill)
