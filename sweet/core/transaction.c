/* SPDX-License-Identifier: MIT */
/*
 * transaction.c - see transaction.h: the beginning and end of a transaction, memory for heads that
 * are larger than head_buffer, and heads that have lines of two responders.
 */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "auth/htpasswd.h"
#include "base/slice.h"
#include "coding/compress-rule.h"
#include "config/configuration.h"
#include "core/client-calls.h"
#include "core/site.h"
#include "core/transaction.h"
#include "http/fields.h"
#include "http/response.h"
#include "http/traceparent.h"
#include "rules/header-rule.h"

static_assert(TRANSACTION_USER_MAX == HTPASSWD_USER_MAX, "it has any user");
static_assert(TRANSACTION_TRACEPARENT == TRACEPARENT_LENGTH &&
		      TRANSACTION_TRACE_PARENT == TRACEPARENT_PARENT_LENGTH,
	      "it has any trace");
static_assert(TRANSACTION_RULES_MAX == HEADER_RULES_MAX, "the lines of rules have room");

void transaction_init(struct transaction *transaction, struct thread *thread,
		      struct config_ref *config_ref)
{
	memset(transaction, 0, offsetof(struct transaction, scratch));
	transaction->path[0] = '\0';
	transaction->thread = thread;
	transaction->config_ref = config_ref_hold(config_ref);
	transaction->response.coding = TRANSACTION_AS_IT_IS;
}

bool transaction_make_room(struct transaction *transaction, size_t bytes)
{
	transaction_drop_room(transaction);
	transaction->response.long_head = malloc(bytes);
	if (!transaction->response.long_head)
		return false;
	transaction->response.long_room = bytes;
	return true;
}

void transaction_drop_room(struct transaction *transaction)
{
	free(transaction->response.long_head);
	transaction->response.long_head = NULL;
	transaction->response.long_room = 0;
}

void transaction_release(struct transaction *transaction)
{
	transaction_drop_room(transaction);
	g_free(transaction->route.query);
	g_free(transaction->response.header_lines);
	g_free(transaction->response.accel_lines);
	g_free(transaction->response.phrase);
	free(transaction->response.trailers);
	config_ref_release(transaction->config_ref);
	client_calls_release(transaction->peer.calls);
}

void transaction_set_phrase(struct transaction *transaction, int status, struct slice phrase)
{
	const char *usual = response_reason(status);

	g_clear_pointer(&transaction->response.phrase, g_free);
	transaction->response.phrase_status = status;
	if (phrase.length && phrase.length <= RESPONSE_PHRASE_MAX &&
	    (phrase.length != strlen(usual) || memcmp(phrase.at, usual, phrase.length) != 0))
		transaction->response.phrase = g_strndup(phrase.at, phrase.length);
}

bool transaction_set_head(struct transaction *transaction, const struct fields *fields)
{
	size_t length = fields_size(fields);
	char *lines = fields->failed ? NULL : malloc(length + 1);

	if (!lines)
		return false;
	(void)fields_write(fields, lines);
	/* The fields refer to what was there. */
	transaction_drop_room(transaction);
	transaction->response.long_head = lines;
	transaction->response.long_room = transaction->response.head_length = length;
	transaction->response.head = lines;
	return true;
}

void transaction_merge_lines(struct transaction *transaction)
{
	const char *added = transaction->response.accel_lines;
	struct fields fields;

	if (transaction->response.status >= 400)
		return;
	fields_init(&fields);
	fields_read(&fields,
		    (struct slice){transaction->response.head, transaction->response.head_length});
	fields_merge(&fields, (struct slice){added, strlen(added)});
	(void)transaction_set_head(transaction, &fields);
	fields_free(&fields);
}

unsigned transaction_codings(const struct transaction *transaction, const struct request *request,
			     enum coding order[CODINGS])
{
	if (!transaction->response.codings_known)
		return accept_codings_by(request, transaction->scope->compress.order, order);
	memcpy(order, transaction->response.codings, CODINGS * sizeof(order[0]));
	return transaction->response.coding_count;
}
