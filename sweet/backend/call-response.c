/* SPDX-License-Identifier: MIT */
/*
 * call-response.c - makes the head of the transaction from the program's response.  Runs on the
 * transaction's thread.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <glib.h>

#include "backend/backend-call-internal.h"
#include "backend/cache-store.h"
#include "base/date.h"
#include "base/decimal.h"

void call_take_date(struct backend_call *call, const struct response_facts *facts)
{
	time_t now, date;

	if (facts->dates != 1)
		return;
	now = time(NULL);
	/* Clients compute the age from it: with a future date it would be too small. */
	if (date_parse(facts->date, now, &date) && date <= now)
		call->transaction->date = date;
}

long call_take_lines(struct backend_call *call, struct slice lines, struct response_facts *facts)
{
	struct transaction *transaction = call->transaction;
	/* Worst case: each line is "a:" and LF, 3 bytes that become 4. */
	size_t most = lines.length + lines.length / 3;
	size_t room = CALL_LINES_MAX;

	transaction_drop_room(transaction);
	if (most > room) {
		if (!transaction_make_room(transaction, most + CALL_OWN_LINES))
			return -1;
		room = most;
	}
	return response_filter_headers(lines, transaction_lines(transaction), room, facts);
}

void call_answer(struct backend_call *call, int status, size_t lines_length, bool has_type,
		 bool has_body, uint64_t length)
{
	struct transaction *transaction = call->transaction;
	char *at = transaction_lines(transaction) + lines_length;
	bool bodiless;

	assert(lines_length <=
	       (transaction->long_head ? transaction->long_room - CALL_OWN_LINES : CALL_LINES_MAX));
	timer_stop(&call->timer);
	backend_call_drop_block(call);
	call->state = CALL_ANSWERED;
	call->has_type = has_type;
	/* An error without body and type gets an error page, which has its own type. */
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

void call_measured(struct backend_call *call, uint64_t length)
{
	struct transaction *transaction = call->transaction;
	char *at = transaction_lines(transaction) + transaction->head_length;

	transaction->length = length;
	transaction->bodiless = length == 0 && (transaction->status < 400 || call->has_type);
	/* An error without a body gets an error page, which has another length. */
	if (length || transaction->bodiless)
		transaction->head_length +=
			(size_t)sprintf(at, "Content-Length: %" PRIu64 "\r\n", length);
}

void call_redirect(struct backend_call *call, struct slice target)
{
	struct transaction *transaction = call->transaction;
	char *head = g_steal_pointer(&call->head), *path = g_strndup(target.at, target.length);
	size_t head_length = call->head_length;

	/* The cache stores the response of the other path. */
	cache_store_drop(transaction, RESPCACHE_NOT_KEPT);
	/* The other path does not read the rest of the body. */
	if (transaction->has_upload)
		transaction->drop_upload(transaction);
	transaction_dismiss(transaction);
	transaction->again(transaction, (struct slice){head, head_length},
			   (struct slice){path, target.length});
	g_free(head);
	g_free(path);
}
