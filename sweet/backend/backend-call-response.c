/* SPDX-License-Identifier: MIT */
/*
 * backend-call-response.c - makes the head of the transaction from what a program responds, or
 * leaves the response to another path or a file that the program names.  See backend-call.h.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <glib.h>

#include "backend/backend-call-internal.h"
#include "backend/backend-call.h"
#include "backend/cache-store.h"
#include "backend/pool.h"
#include "backend/protocol.h"
#include "base/date.h"
#include "base/decimal.h"
#include "base/slice.h"
#include "base/timer.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "http/response.h"
#include "respcache/respcache.h"

void call_take_date(struct backend_call *call, const struct response_facts *facts)
{
	time_t now, date;

	if (facts->dates != 1)
		return;
	now = time(NULL);
	/* Clients compute the age from it: with a future date it would be too small. */
	if (date_parse(facts->date, now, &date) && date <= now)
		call->transaction->response.date = date;
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

/* Whether an empty response is sent as it is; an error can get an error page instead. */
static bool stays_empty(const struct backend_call *call, int status)
{
	return status < 400 || call->has_type || call->pool->protocol->complete;
}

void call_answer(struct backend_call *call, int status, size_t lines_length, bool has_type,
		 bool has_body, uint64_t length)
{
	struct transaction *transaction = call->transaction;
	char *at = transaction_lines(transaction) + lines_length;
	bool bodiless;

	assert(lines_length <= (transaction->response.long_head
					? transaction->response.long_room - CALL_OWN_LINES
					: CALL_LINES_MAX));
	timer_stop(&call->timer);
	backend_call_drop_block(call);
	call->state = CALL_ANSWERED;
	transaction->times.answered_ns = loop_now_ns(transaction->thread->loop);
	call->has_type = has_type;
	/* An error page has its own type and length. */
	bodiless = length == 0 && stays_empty(call, status);
	if (!has_type && !call->pool->protocol->complete && has_body && length &&
	    (status < 400 || length != TRANSACTION_UNKNOWN))
		at = stpcpy(at, "Content-Type: application/octet-stream\r\n");
	if (length != TRANSACTION_UNKNOWN && (length || bodiless) && status != 204 &&
	    status != 304) {
		at = stpcpy(at, "Content-Length: ");
		at = decimal_write(at, length);
		at = stpcpy(at, "\r\n");
	}
	transaction->response.coding = call->coding;
	transaction->response.status = status;
	transaction->response.head = transaction_lines(transaction);
	transaction->response.head_length = (size_t)(at - transaction->response.head);
	transaction->response.length = length;
	transaction->response.bodiless = bodiless;
}

void call_measured(struct backend_call *call, uint64_t length)
{
	struct transaction *transaction = call->transaction;
	char *at = transaction_lines(transaction) + transaction->response.head_length;

	transaction->response.length = length;
	transaction->response.bodiless =
		length == 0 && stays_empty(call, transaction->response.status);
	/* An error page has another length. */
	if (length || transaction->response.bodiless)
		transaction->response.head_length +=
			(size_t)sprintf(at, "Content-Length: %" PRIu64 "\r\n", length);
}

/* Ends the call, but not the transaction; returns its request, for free(). */
static struct kept_request *leave(struct backend_call *call)
{
	struct transaction *transaction = call->transaction;
	struct kept_request *kept = g_steal_pointer(&call->kept);

	/* The cache stores the response of the other path. */
	cache_store_drop(transaction, RESPCACHE_NOT_KEPT);
	/* The other path does not read the rest of the body. */
	if (transaction->upload.has)
		transaction->owner->drop_upload(transaction);
	transaction_dismiss(transaction);
	return kept;
}

void call_redirect(struct backend_call *call, struct slice target)
{
	struct transaction *transaction = call->transaction;
	char *path = g_strndup(target.at, target.length);
	struct kept_request *kept = leave(call);

	transaction->router->again(transaction, kept, (struct slice){path, target.length});
	free(kept);
	g_free(path);
}

void call_send_file(struct backend_call *call, const struct scope *folder, const char *path)
{
	struct transaction *transaction = call->transaction;
	struct kept_request *kept = leave(call);

	transaction->router->send_file(transaction, kept, folder, path);
	free(kept);
}
