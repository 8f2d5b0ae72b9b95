/* SPDX-License-Identifier: MIT */
/*
 * coded-response.c - see coded-response.h.  It runs on the transaction's thread.
 *
 * The responder and the connection see different pieces in the fields of the transaction.  Each gets
 * its own before it is called: those of the responder are in `source` meanwhile.
 *
 *   `pending`   the responder was asked for its next piece and will call done()
 *   `waiting`   the connection waits for it
 *   `unsent`    the encoder has bytes that a client could decode after a flush
 *
 * While a piece is pending, what the encoder has is flushed and sent: a program that pauses wants its
 * client to see what it wrote.  Each step takes a limited number of bytes, so that other connections
 * have their turn.  A responder is never asked from within its own done().
 */
#include <glib.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "coding/coded-fields.h"
#include "coding/compress-rule.h"
#include "coding/encoder.h"
#include "config/configuration.h"
#include "event/piece.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "handler/coded-response.h"
#include "http/accept.h"
#include "http/fields.h"

#define STEP_MAX ((size_t)64 << 10)    /* bytes that are encoded before something is sent */
#define OUTPUT_MAX ((size_t)1 << 20)   /* bytes of one piece; the encoders' buffers are smaller */
#define OUTPUT_KEPT ((size_t)64 << 10) /* bytes that an idle stream keeps */

struct coded_response {
	const struct transaction_responder *responder; /* of the call that gives the body */
	struct piece source;			       /* that the responder has made */
	size_t at;				       /* the byte of it that is encoded next */
	uint64_t left; /* bytes of its body, or TRANSACTION_UNKNOWN */
	int status;
	const struct encoder *encoder;
	void *state;
	struct encoder_output output;
	bool pending, waiting, unsent, ended, failed;
};

/* --- pieces ----------------------------------------------------------------------------- */

/* Returns the next bytes of the piece that lie together; none at its end, NULL if they are lost. */
static const char *piece_run(const struct coded_response *coded, size_t *run)
{
	const struct piece *piece = &coded->source;
	const struct NC_range *range = piece->kind == PIECE_RANGE ? &piece->range : piece->ranges;
	const struct NC_hold *hold = piece->kind == PIECE_RANGE ? &piece->hold : piece->holds;
	size_t at = coded->at;
	const char *bytes;

	*run = (size_t)piece->length - at;
	if (!*run)
		return "";
	if (piece->kind == PIECE_BYTES)
		return (const char *)piece->data + at;
	for (; at >= range->length; range++) {
		at -= range->length;
		hold += piece->hold_count > 1;
	}
	bytes = NC_data(hold, run, range->offset + at);
	*run = MIN(*run, range->length - at);
	return bytes;
}

/* --- the encoder -------------------------------------------------------------------------- */

static void encode(struct coded_response *coded, const void *bytes, size_t length,
		   enum encoder_then then)
{
	coded->failed |= coded->encoder->write(coded->state, bytes, length, then, &coded->output) !=
			 ENCODER_GOOD;
	coded->unsent = then == ENCODER_MORE;
}

/* Encodes what there is of the piece, and counts it in *step.  Returns false at its end. */
static bool encode_run(struct coded_response *coded, size_t *step)
{
	size_t run;
	const char *bytes = piece_run(coded, &run);

	coded->failed |= !bytes;
	if (!bytes || !run)
		return false;
	run = MIN(run, STEP_MAX - *step);
	encode(coded, bytes, run, ENCODER_MORE);
	coded->at += run;
	*step += run;
	if (coded->left != TRANSACTION_UNKNOWN)
		coded->left -= MIN(run, coded->left);
	return !coded->failed;
}

/* --- the responder -------------------------------------------------------------------------- */

static void source_take(struct coded_response *coded, struct transaction *transaction)
{
	const struct piece none = {0};

	/* A responder that fails leaves what is being sent as it is. */
	coded->source = transaction->piece.owner == coded ? none : transaction->piece;
	transaction->piece = none;
}

static void source_came(struct coded_response *coded, struct transaction *transaction)
{
	source_take(coded, transaction);
	coded->at = 0;
	/* It cuts the response off, which the connection learns when it asks for more. */
	coded->failed |= transaction->response.status == 0;
	transaction->response.status = coded->status;
	/* Only a body of unknown length ends with an empty piece. */
	if (coded->source.kind == PIECE_NONE)
		coded->left = 0;
}

/* Whether the responder has more to give than its present piece. */
static bool source_has_more(const struct coded_response *coded)
{
	return coded->left && coded->responder && coded->responder->next;
}

/* The piece is used up: asks for the next. */
static void source_ask(struct coded_response *coded, struct transaction *transaction)
{
	piece_release(&coded->source);
	coded->pending = coded->responder->next(transaction) == RESPOND_LATER;
	if (!coded->pending)
		source_came(coded, transaction);
}

/* --- the connection ------------------------------------------------------------------------- */

/* The connection has sent what was encoded. */
static void coded_release(struct piece *piece)
{
	struct coded_response *coded = piece->owner;

	coded->output.length = 0;
	if (coded->output.room <= OUTPUT_KEPT)
		return;
	free(coded->output.bytes);
	coded->output.bytes = NULL;
	coded->output.room = 0;
}

/* Passes what is encoded to the connection. */
static void give(struct coded_response *coded, struct transaction *transaction)
{
	transaction->piece = piece_bytes(coded->output.bytes, coded->output.length);
	transaction->piece.release = coded_release;
	transaction->piece.owner = coded;
}

/*
 * Nothing more is encoded in this step.  At the end of the body ends the stream; else flushes it if the
 * responder pauses, or may, or if there would be nothing to send.
 */
static void finish_step(struct coded_response *coded, size_t step)
{
	bool more = step == STEP_MAX;

	if (!more && !coded->pending && !source_has_more(coded)) {
		encode(coded, "", 0, ENCODER_END);
		coded->ended = true;
	} else if (coded->unsent && !(more && coded->output.length)) {
		encode(coded, "", 0, ENCODER_FLUSH);
	}
}

/*
 * Makes the next piece for the connection; may_ask: of what the responder has not given yet, too.
 * Returns false if there is none now.
 */
static bool produce(struct coded_response *coded, struct transaction *transaction, bool may_ask)
{
	size_t step = 0;

	while (!coded->failed && !coded->ended) {
		bool more = !coded->pending && step < STEP_MAX && encode_run(coded, &step);

		if (more || coded->failed)
			continue;
		if (may_ask && !coded->pending && step < STEP_MAX && source_has_more(coded)) {
			source_ask(coded, transaction);
			continue;
		}
		break;
	}
	if (!coded->failed && !coded->ended)
		finish_step(coded, step);
	if (coded->failed)
		coded->output.length = 0;
	give(coded, transaction);
	return coded->failed || coded->ended || coded->output.length;
}

static enum respond coded_next(struct transaction *transaction)
{
	struct coded_response *coded = transaction->response.coded;

	coded->waiting = !produce(coded, transaction, true);
	if (coded->failed)
		transaction->response.status = 0;
	return coded->waiting ? RESPOND_LATER : RESPOND_NOW;
}

/* The responder has its next piece, while the connection waits for it or sends what came before. */
static enum respond coded_source_done(struct transaction *transaction)
{
	struct coded_response *coded = transaction->response.coded;

	coded->pending = false;
	source_came(coded, transaction);
	if (!transaction->connection)
		return RESPOND_NOW;
	if (coded->waiting) {
		coded->waiting = !produce(coded, transaction, false);
		if (coded->failed)
			transaction->response.status = 0;
		return coded->waiting ? RESPOND_LATER : RESPOND_NOW;
	}
	give(coded, transaction);
	return RESPOND_LATER;
}

/* What is coded are responses of programs, whose calls have no half_closed(). */
static void coded_gone(struct transaction *transaction)
{
	const struct transaction_responder *source = transaction->response.coded->responder;

	if (source && source->gone)
		source->gone(transaction);
}

static void coded_free(struct coded_response *coded, const struct transaction *transaction)
{
	coded->encoder->close(coded->state);
	atomic_fetch_sub(&transaction->thread->server->encoders, 1);
	free(coded->output.bytes);
	free(coded);
}

static void coded_finish(struct transaction *transaction)
{
	struct coded_response *coded = transaction->response.coded;

	transaction->response.coded = NULL;
	transaction->response.coding = TRANSACTION_AS_IT_IS;
	transaction->responder = coded->responder;
	transaction->piece = coded->source;
	coded_free(coded, transaction);
	transaction_finish(transaction);
}

static const struct transaction_responder responder = {.source_done = coded_source_done,
						       .next = coded_next,
						       .gone = coded_gone,
						       .finish = coded_finish};

/* --- the beginning ---------------------------------------------------------------------------- */

static void *open_encoder(const struct transaction *transaction, const struct encoder *encoder)
{
	struct server *server = transaction->thread->server;
	unsigned most = transaction->config_ref->config->limits.compress_streams;
	void *state = NULL;

	if (atomic_fetch_add(&server->encoders, 1) < most)
		state = encoder->open_fast();
	if (state) {
		atomic_fetch_add_explicit(&server->encoded, 1, memory_order_relaxed);
		return state;
	}
	atomic_fetch_sub(&server->encoders, 1);
	atomic_fetch_add_explicit(&server->encoders_refused, 1, memory_order_relaxed);
	return NULL;
}

/* Whether it could be, whatever its fields are. */
static bool may_be_coded(const struct transaction *transaction)
{
	int status = transaction->response.status;

	return status >= 200 && status != 204 && status != 205 && status != 206 &&
	       !transaction_has_tunnel(transaction) && !transaction->response.error_page &&
	       transaction->piece.kind != PIECE_TEXT && transaction->piece.kind != PIECE_FILE &&
	       !transaction->piece.lead_length &&
	       transaction->response.head_length <= TRANSACTION_HEAD_MAX - CODED_FIELDS_MORE;
}

/* Whether other clients get other bytes, or none that have changed. */
static bool is_coded(const struct transaction *transaction, const struct fields *fields)
{
	const struct compress_rule *rule = &transaction->scope->compress;
	const struct field *type = fields_find(fields, FIELD_CONTENT_TYPE);
	bool unknown = transaction->response.length == TRANSACTION_UNKNOWN;

	if (coded_fields_are_fixed(fields))
		return false;
	if (transaction->response.status == 304)
		return true;
	return (unknown || transaction->response.length) && type &&
	       !slice_is(type->value, "text/event-stream") &&
	       compress_rule_takes(rule, type->value,
				   unknown ? rule->min : transaction->response.length);
}

/* Returns NULL if no stream may be opened now. */
static struct coded_response *coded_new(const struct transaction *transaction,
					const struct encoder *encoder)
{
	struct coded_response *coded = calloc(1, sizeof(*coded));

	if (!coded)
		return NULL;
	coded->encoder = encoder;
	coded->output.most = OUTPUT_MAX;
	coded->left = transaction->response.length;
	coded->status = transaction->response.status;
	coded->state = open_encoder(transaction, encoder);
	if (coded->state)
		return coded;
	free(coded);
	return NULL;
}

/* Puts itself between the responder and the connection. */
static void take_body(struct coded_response *coded, struct transaction *transaction)
{
	transaction->response.coded = coded;
	coded->responder = transaction->responder;
	source_take(coded, transaction);
	transaction->response.live = true;
	transaction->responder = &responder;
	/* With the head, if the responder has given something. */
	(void)produce(coded, transaction, false);
	if (!coded->failed)
		return;
	transaction_dismiss(transaction);
	transaction->response.head_length = 0;
	transaction->response.length = 0;
	(void)transaction_refuse(transaction, 502, "its response could not be compressed");
}

void coded_response_begin(struct transaction *transaction)
{
	coded_response_begin_with(transaction,
				  transaction->response.coding < 0
					  ? NULL
					  : encoder_of((enum coding)transaction->response.coding));
}

/*
 * token: of the body's coding, or NULL; weak: of other bytes than the program's, or of no more.
 * Returns false without memory.
 */
static bool set_head(struct transaction *transaction, struct fields *fields, bool weak,
		     const char *token)
{
	const struct field *tag = weak ? fields_find(fields, FIELD_ETAG) : NULL;
	char text[TRANSACTION_HEAD_MAX]; /* may_be_coded() */

	if (tag)
		coded_fields_set_tag(fields, coded_fields_weaken(tag->value, text));
	if (token)
		fields_remove(fields,
			      FIELD_BIT(FIELD_CONTENT_LENGTH) | FIELD_BIT(FIELD_ACCEPT_RANGES));
	coded_fields_set_coding(fields, token);
	return transaction_set_head(transaction, fields);
}

static void begin(struct transaction *transaction, const struct encoder *encoder,
		  struct fields *fields)
{
	bool accepted = transaction->response.coding >= 0,
	     unchanged = transaction->response.status == 304;
	enum coding coding = accepted ? (enum coding)transaction->response.coding : CODING_GZIP;
	struct coded_response *coded = NULL;
	bool has_body;

	if (accepted && !unchanged && !transaction->head_only)
		coded = coded_new(transaction, encoder);
	/* Without an encoder, the body is the program's. */
	has_body = coded || (accepted && !unchanged && transaction->head_only);
	if (!set_head(transaction, fields, has_body || (accepted && unchanged),
		      has_body ? coding_token(coding) : NULL)) {
		if (coded)
			coded_free(coded, transaction);
		return;
	}
	if (has_body) {
		transaction->response.length = TRANSACTION_UNKNOWN;
		transaction->response.bodiless = false;
	}
	if (coded)
		take_body(coded, transaction);
}

void coded_response_begin_with(struct transaction *transaction, const struct encoder *encoder)
{
	struct fields fields;

	if (!may_be_coded(transaction))
		return;
	fields_init(&fields);
	fields_read(&fields,
		    (struct slice){transaction->response.head, transaction->response.head_length});
	if (fields_reserve(&fields, CODED_FIELDS) && is_coded(transaction, &fields))
		begin(transaction, encoder, &fields);
	fields_free(&fields);
}
