/* SPDX-License-Identifier: MIT */
/*
 * text-response.c - see text-response.h.  Runs on the transaction's thread: to make a unit of a
 * text is a copy, which does not block.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <nabc.h>

#include "event/piece.h"
#include "core/server.h"
#include "core/text-response.h"
#include "core/transaction.h"

#define PIECE ((size_t)1 << 20) /* bytes of text in a unit at most */

/* Lies in the transaction's scratch memory. */
struct text_response {
	GBytes *bytes;
	const char *text; /* theirs */
	size_t length;
	size_t taken; /* bytes of it that were copied to units */
};

static_assert(sizeof(struct text_response) <= TRANSACTION_SCRATCH, "fits the scratch");

static struct text_response *text_response_of(struct transaction *transaction)
{
	return (struct text_response *)(void *)transaction->scratch;
}

static void text_finish(struct transaction *transaction)
{
	g_bytes_unref(text_response_of(transaction)->bytes);
}

/* Makes a piece of the bytes, in a unit whose id no other code knows. */
static int make_unit(const char *data, size_t length, struct piece *piece)
{
	NC_handle handle;
	int error = 0;

	if (NC_unit_alloc(NULL, &handle, length, 0, NC_KIND_RECYCLED, NC_UNIT_UNSUMMED) < 0)
		return -errno;
	if (NC_write(&handle, data, length, 0) != (ssize_t)length ||
	    piece_insert(piece, &handle, length) < 0)
		error = -errno;
	else
		(void)NC_destroy(NULL, NC_cache_id(&handle));
	(void)NC_free(&handle);
	return error;
}

static int next_piece(struct transaction *transaction)
{
	struct text_response *body = text_response_of(transaction);
	size_t most = transaction->thread->server->max_unit < PIECE
			      ? transaction->thread->server->max_unit
			      : PIECE;
	size_t length = body->length - body->taken < most ? body->length - body->taken : most;
	int error = make_unit(body->text + body->taken, length, &transaction->piece);

	if (error)
		return error;
	body->taken += length;
	return 0;
}

static enum respond text_next(struct transaction *transaction)
{
	/* The head has announced more than memory permits: status 0 cuts the response off. */
	if (next_piece(transaction))
		transaction->response.status = 0;
	return RESPOND_NOW;
}

static const struct transaction_responder whole = {.finish = text_finish};
static const struct transaction_responder pieces = {.next = text_next, .finish = text_finish};

/* Returns 0 or -EMSGSIZE; keeps the caller's lines. */
static int write_head(struct transaction *transaction, const char *type, size_t length)
{
	size_t room = sizeof(transaction->head_buffer) - transaction->response.head_length;
	int more = g_snprintf(transaction->head_buffer + transaction->response.head_length, room,
			      "Content-Type: %s\r\nContent-Length: %zu\r\n", type, length);

	if ((size_t)more >= room)
		return -EMSGSIZE;
	transaction->response.head = transaction->head_buffer;
	transaction->response.head_length += (size_t)more;
	return 0;
}

int text_response_share(struct transaction *transaction, const char *type, GBytes *text)
{
	struct text_response *body = text_response_of(transaction);
	size_t before = transaction->response.head_length, length;
	const char *data = g_bytes_get_data(text, &length);
	int error = write_head(transaction, type, length);

	*body = (struct text_response){.bytes = text, .text = data, .length = length};
	if (!error && length > TRANSACTION_TEXT_MAX && !transaction->head_only)
		error = next_piece(transaction);
	if (error) {
		transaction->response.head_length = before;
		g_bytes_unref(text);
		return error;
	}
	if (length && length <= TRANSACTION_TEXT_MAX)
		transaction->piece = piece_text(data);
	transaction->response.bodiless = length == 0;
	transaction->response.length = length;
	transaction->responder = body->taken && body->taken < length ? &pieces : &whole;
	if (!transaction->response.status)
		transaction->response.status = 200;
	return 0;
}

int text_response_set(struct transaction *transaction, const char *type, GString *text)
{
	return text_response_share(transaction, type, g_string_free_to_bytes(text));
}
