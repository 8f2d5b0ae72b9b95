/* SPDX-License-Identifier: MIT */
/*
 * output.c - see output.h.  An output belongs to one thread.
 */
#include <assert.h>
#include <glib.h>
#include <inttypes.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/date.h"
#include "config/configuration.h"
#include "core/server.h"
#include "core/site.h"
#include "event/loop.h"
#include "event/piece.h"
#include "exchange/exchange-thread.h"
#include "exchange/output.h"
#include "exchange/ready.h"
#include "http/fields.h"

#ifdef __SANITIZE_ADDRESS__
#define SPARE_MAX 0 /* not kept, so that the sanitizer detects a use after free */
#else
#define SPARE_MAX 1024 /* the streams of a few sessions */
#endif
#define CRLF "\r\n"
/* Bytes from began_ns; the fields behind are large. */
#define OUTPUT_ZEROED (offsetof(struct output, fields) - offsetof(struct output, began_ns))

static_assert(sizeof(struct output) % OUTPUT_ALIGN == 0, "as aligned_alloc() wants it");

/* Unused outputs are linked through the scratch memory, which is free then. */
static struct output **spare_link(struct output *output)
{
	return (struct output **)(void *)output->transaction.scratch;
}

static struct output *take_spare(struct exchange_thread *exchange)
{
	struct output *output = exchange->spare;

	if (output) {
		exchange->spare = *spare_link(output);
		exchange->spare_count--;
		exchange->spare_least = MIN(exchange->spare_least, exchange->spare_count);
	}
	return output;
}

struct output *output_open(struct thread *thread)
{
	struct output *output = take_spare(thread->exchange);

	if (!output)
		output = aligned_alloc(OUTPUT_ALIGN, sizeof(*output));
	if (!output)
		return NULL;
	transaction_init(&output->transaction, thread, thread->config_ref);
	memset(&output->began_ns, 0, OUTPUT_ZEROED);
	memset(output->log_fields, 0,
	       thread->config_ref->config->log_field_count * sizeof(*output->log_fields));
	fields_init(&output->fields);
	output->began_ns = loop_now_ns(thread->loop);
	return output;
}

void output_return_upload(struct output *output)
{
	size_t upload = output->transaction.upload.unit;

	output->transaction.upload.unit = 0;
	if (upload) {
		(void)NC_release(&output->transaction.upload.hold);
		(void)NC_destroy(NULL, upload);
	}
}

void output_close(struct output *output)
{
	struct exchange_thread *exchange = output->transaction.thread->exchange;

	if (output->ready)
		ready_put(output->ready);
	transaction_finish(&output->transaction);
	output_return_upload(output);
	fields_free(&output->fields);
	free(output->long_head);
	transaction_release(&output->transaction);
	if (exchange->spare_count == SPARE_MAX) {
		free(output);
		return;
	}
	*spare_link(output) = exchange->spare;
	exchange->spare = output;
	exchange->spare_count++;
}

/* Once per second: frees half of those that were not used for that time. */
static void trim_spare(struct exchange_thread *exchange)
{
	unsigned idle = exchange->spare_least / 2;
	struct output *output;

	while (idle-- && (output = take_spare(exchange)))
		free(output);
	exchange->spare_least = exchange->spare_count;
}

void output_free_spare(struct thread *thread)
{
	struct output *output;

	while ((output = take_spare(thread->exchange)))
		free(output);
}

void output_refresh_date(struct thread *thread)
{
	struct exchange_thread *exchange = thread->exchange;
	const struct config *config = thread->config_ref->config;
	uint64_t now = loop_now_ms(thread->loop);
	struct timespec wall;

	if (now < exchange->date_until_ms && exchange->date_config == config)
		return;
	trim_spare(exchange);
	clock_gettime(CLOCK_REALTIME, &wall);
	/* Until the end of the second of the wall clock, so that all threads agree. */
	exchange->date_until_ms = now + 1000 - (uint64_t)wall.tv_nsec / 1000000u;
	exchange->date_config = config;
	exchange->dated = wall.tv_sec;
	date_format(wall.tv_sec, exchange->date);
	exchange->lead_length =
		(size_t)snprintf(exchange->lead, sizeof(exchange->lead), "%s%s%sDate: %.*s\r\n",
				 config->server_header ? "Server: " : "",
				 config->server_header ? config->server_header : "",
				 config->server_header ? "\r\n" : "", DATE_LENGTH, exchange->date);
	exchange->lead_pad = config->server_header
				     ? strlen("Server: ") + strlen(config->server_header)
				     : exchange->lead_length - strlen("\r\n");
}

void output_forget_date(struct thread *thread)
{
	thread->exchange->date_until_ms = 0;
	/* A new one may have the same address. */
	thread->exchange->date_config = NULL;
}

static char *append(char *at, const void *data, size_t length)
{
	memcpy(at, data, length);
	return at + length;
}

struct slice output_trailers(const struct output *output)
{
	const struct transaction *transaction = &output->transaction;

	/* With a head before them there may be no room; no response is so short. */
	if (!transaction->response.trailers_length || !transaction->peer.trailers ||
	    !output->head_sent || transaction_has_tunnel(transaction))
		return (struct slice){"", 0};
	return (struct slice){transaction->response.trailers,
			      transaction->response.trailers_length};
}

/* Ends the previous chunk and starts one of length bytes; 0: the last chunk. */
static char *frame(struct output *output, char *at, uint64_t length)
{
	struct slice trailers;

	at = append(at, &CRLF[2 - output->chunk_end], output->chunk_end);
	output->chunk_end = length ? 2 : 0;
	if (length)
		return at + sprintf(at, "%" PRIx64 "\r\n", length);
	at = append(at, "0\r\n", 3);
	trailers = output_trailers(output);
	at = append(at, trailers.at, trailers.length);
	return append(at, CRLF, 2);
}

size_t output_lead(struct output *output, size_t length)
{
	struct transaction *transaction = &output->transaction;
	uint64_t piece = transaction->piece.lead_length + transaction->piece.length;
	char *at = output_bytes(output) + length;

	if (transaction->response.length == TRANSACTION_UNKNOWN) {
		/* A head may be sent before there is any body. */
		output->ended =
			piece == 0 && (output->head_sent || !transaction_has_next(transaction));
		if (output->chunked && (piece || output->ended))
			at = frame(output, at, piece);
	}
	if (transaction->piece.lead_length) {
		assert(transaction->piece.lead_length <= TRANSACTION_TEXT_MAX);
		output->sent += transaction->piece.lead_length;
		at = append(at, transaction->piece.lead, transaction->piece.lead_length);
		transaction->piece.lead_length = 0;
	}
	return (size_t)(at - output_bytes(output));
}

const char *output_chunk_end(const struct output *output, size_t *length)
{
	*length = output->chunk_end;
	return &CRLF[2 - output->chunk_end];
}
