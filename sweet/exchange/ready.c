/* SPDX-License-Identifier: MIT */
/*
 * ready.c - see ready.h.
 *
 * Each thread has a table with READY_UNITS entries.  The id of a unit is hashed to one of them; a
 * unit whose entry another one has replaces it.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/date.h"
#include "config/configuration.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/piece.h"
#include "exchange/exchange-thread.h"
#include "exchange/output.h"
#include "exchange/ready.h"
#include "handler/file-response.h"

struct sent_unit {
	size_t id;	     /* the unit that was sent last */
	unsigned times;	     /* how often, up to READY_AFTER */
	struct ready *ready; /* NULL: none, or of another unit */
};

struct ready_memory {
	struct sent_unit units[READY_UNITS];
};

/* Ids of one member differ in their slots first. */
static struct sent_unit *unit_of(struct ready_memory *memory, size_t id)
{
	return &memory->units[(id * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (READY_UNITS - 1)];
}

/*
 * Whether the response is 200 with a file, which is one unit, and with no line of its request, nor of
 * its date but Date.
 */
static bool is_plain(const struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;

	return transaction->piece.kind == PIECE_RANGE && file_response_unit(transaction) &&
	       transaction->response.status == 200 && !transaction->head_only &&
	       !transaction_has_next(transaction) && transaction->response.length <= READY_MAX &&
	       !transaction->response.accel_lines &&
	       transaction->response.modified <= transaction->thread->exchange->dated &&
	       !transaction->peer.https && !transaction->peer.http2 && !*transaction->trace.id &&
	       !transaction->response.date && scope && !scope->header_rule_count &&
	       !scope->server_timing &&
	       transaction->config_ref->config->sockets.send_method == SEND_AUTO;
}

/* Renews the date, unless the old one is being sent. */
static bool renew(struct ready *ready, const struct exchange_thread *exchange)
{
	if (ready->dated == exchange->dated)
		return true;
	if (ready->users)
		return false;
	memcpy(ready->bytes + ready->date_at, exchange->date, DATE_LENGTH);
	ready->dated = exchange->dated;
	return true;
}

static bool has_lines(const struct ready *ready, const struct transaction *transaction)
{
	return ready->lines_length == transaction->response.head_length &&
	       memcmp(ready->bytes + ready->lines_at, transaction->response.head,
		      transaction->response.head_length) == 0;
}

struct ready *ready_find(struct output *output)
{
	const struct transaction *transaction = &output->transaction;
	const struct config *config = transaction->config_ref->config;
	struct thread *thread = transaction->thread;
	struct ready *ready;

	output_refresh_date(thread);
	if (!is_plain(transaction))
		return NULL;
	if (!thread->exchange->ready)
		thread->exchange->ready = calloc(1, sizeof(struct ready_memory));
	if (!thread->exchange->ready)
		return NULL;
	ready = unit_of(thread->exchange->ready, transaction->piece.range.id)->ready;
	if (!ready || ready->id != transaction->piece.range.id || ready->config != config ||
	    ready->config_number != transaction->config_ref->site->number ||
	    !has_lines(ready, transaction))
		return NULL;
	if (!renew(ready, thread->exchange))
		return NULL;
	ready->users++;
	output->responded_ns = loop_now_ns(thread->loop);
	output->head_length = ready->head_length;
	output->chunked = false;
	return ready;
}

static struct ready *make(struct output *output)
{
	const struct transaction *transaction = &output->transaction;
	const struct thread *thread = transaction->thread;
	const struct config *config = transaction->config_ref->config;
	const char *body;
	struct NC_stat unit;
	const size_t length = output->head_length;
	struct ready *ready;
	size_t run;

	/* The module sends its units itself: they have no other memory. */
	if (NC_stat(NULL, transaction->piece.range.id, &unit, sizeof(unit)) ||
	    unit.kind == NC_KIND_KERNEL)
		return NULL;
	body = NC_data(&transaction->piece.hold, &run, 0);
	if (!body || run < transaction->response.length ||
	    length + transaction->response.length > READY_MAX)
		return NULL;
	ready = malloc(sizeof(*ready) + length + transaction->response.length);
	if (!ready)
		return NULL;
	*ready = (struct ready){.id = transaction->piece.range.id,
				.config = config,
				.config_number = transaction->config_ref->site->number,
				.dated = thread->exchange->dated,
				.date_at = output->date_at,
				.lines_at = output->lines_at,
				.lines_length = transaction->response.head_length,
				.head_length = length,
				.body_length = transaction->response.length};
	memcpy(ready->bytes, output_bytes(output), length);
	memcpy(ready->bytes + length, body, transaction->response.length);
	return ready;
}

void ready_keep(struct output *output)
{
	const struct transaction *transaction = &output->transaction;
	struct ready *made;
	struct sent_unit *unit;

	if (!transaction->thread->exchange->ready || !is_plain(transaction))
		return;
	unit = unit_of(transaction->thread->exchange->ready, transaction->piece.range.id);
	if (unit->id != transaction->piece.range.id) {
		unit->id = transaction->piece.range.id;
		unit->times = 0;
	}
	if (unit->times < READY_AFTER) {
		unit->times++;
		return;
	}
	if (unit->ready && unit->ready->users)
		return;
	made = make(output);
	if (!made)
		return;
	free(unit->ready);
	unit->ready = made;
}

void ready_free(struct thread *thread)
{
	struct exchange_thread *exchange = thread->exchange;

	for (unsigned i = 0; exchange->ready && i < READY_UNITS; i++)
		free(exchange->ready->units[i].ready);
	free(exchange->ready);
	exchange->ready = NULL;
}
