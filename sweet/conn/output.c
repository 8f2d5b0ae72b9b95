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
#include <strings.h>
#include <time.h>

#include "base/date.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "conn/conn-thread.h"
#include "conn/output.h"
#include "conn/ready.h"
#include "core/server.h"
#include "core/site.h"
#include "event/loop.h"
#include "http/fields.h"
#include "http/response.h"
#include "rules/header-rule.h"
#include "rules/path-pattern.h"

#ifdef __SANITIZE_ADDRESS__
#define SPARE_MAX 0 /* not kept, so that the sanitizer detects a use after free */
#else
#define SPARE_MAX 1024 /* the streams of a few sessions */
#endif
#define CRLF "\r\n"
#define LAST_MODIFIED "Last-Modified: "
/* Bytes from began_ns; the fields behind are large. */
#define OUTPUT_ZEROED (offsetof(struct output, log_fields) - offsetof(struct output, began_ns))

static_assert(sizeof(struct output) % OUTPUT_ALIGN == 0, "as aligned_alloc() wants it");
static_assert(RESPONSE_PAGE_MAX <= TRANSACTION_TEXT_MAX, "a page fits behind the head");

/* Unused outputs are linked through the scratch memory, which is free then. */
static struct output **spare_link(struct output *output)
{
	return (struct output **)(void *)output->transaction.scratch;
}

static struct output *take_spare(struct conn_thread *conn)
{
	struct output *output = conn->spare;

	if (output) {
		conn->spare = *spare_link(output);
		conn->spare_count--;
		conn->spare_least = MIN(conn->spare_least, conn->spare_count);
	}
	return output;
}

struct output *output_open(struct thread *thread)
{
	struct output *output = take_spare(thread->conn);

	if (!output)
		output = aligned_alloc(OUTPUT_ALIGN, sizeof(*output));
	if (!output)
		return NULL;
	transaction_init(&output->transaction, thread, thread->config_ref);
	memset(&output->began_ns, 0, OUTPUT_ZEROED);
	memset(output->log_fields, 0,
	       thread->config_ref->config->log_field_count * sizeof(*output->log_fields));
	output->began_ns = loop_now_ns(thread->loop);
	return output;
}

void output_return_upload(struct output *output)
{
	size_t upload = output->transaction.upload;

	output->transaction.upload = 0;
	if (upload) {
		(void)NC_release(&output->transaction.upload_hold);
		(void)NC_destroy(NULL, upload);
	}
}

void output_close(struct output *output)
{
	struct conn_thread *conn = output->transaction.thread->conn;

	if (output->ready)
		ready_put(output->ready);
	if (output->transaction.finish)
		output->transaction.finish(&output->transaction);
	output_return_upload(output);
	transaction_release(&output->transaction);
	if (conn->spare_count == SPARE_MAX) {
		free(output);
		return;
	}
	*spare_link(output) = conn->spare;
	conn->spare = output;
	conn->spare_count++;
}

/* Once per second: frees half of those that were not used for that time. */
static void trim_spare(struct conn_thread *conn)
{
	unsigned idle = conn->spare_least / 2;
	struct output *output;

	while (idle-- && (output = take_spare(conn)))
		free(output);
	conn->spare_least = conn->spare_count;
}

void output_free_spare(struct thread *thread)
{
	struct output *output;

	while ((output = take_spare(thread->conn)))
		free(output);
}

void output_refresh_date(struct thread *thread)
{
	struct conn_thread *conn = thread->conn;
	const struct config *config = thread->config_ref->config;
	uint64_t now = loop_now_ms(thread->loop);
	struct timespec wall;

	if (now < conn->date_until_ms && conn->date_config == config)
		return;
	trim_spare(conn);
	clock_gettime(CLOCK_REALTIME, &wall);
	/* Until the end of the second of the wall clock, so that all threads agree. */
	conn->date_until_ms = now + 1000 - (uint64_t)wall.tv_nsec / 1000000u;
	conn->date_config = config;
	conn->dated = wall.tv_sec;
	date_format(wall.tv_sec, conn->date);
	conn->lead_length =
		(size_t)snprintf(conn->lead, sizeof(conn->lead), "%s%s%sDate: %.*s\r\n",
				 config->server_header ? "Server: " : "",
				 config->server_header ? config->server_header : "",
				 config->server_header ? "\r\n" : "", DATE_LENGTH, conn->date);
	conn->lead_pad = config->server_header ? strlen("Server: ") + strlen(config->server_header)
					       : conn->lead_length - strlen("\r\n");
}

void output_forget_date(struct thread *thread)
{
	thread->conn->date_until_ms = 0;
	/* A new one may have the same address. */
	thread->conn->date_config = NULL;
}

/* Stored responses, and those of one second from another server, have the same date. */
static void write_date(struct conn_thread *conn, time_t date, char *at)
{
	if (date != conn->other_date) {
		conn->other_date = date;
		date_format(date, conn->other_date_text);
	}
	memcpy(at, conn->other_date_text, DATE_LENGTH);
}

static char *append(char *at, const void *data, size_t length)
{
	memcpy(at, data, length);
	return at + length;
}

#define APPEND(at, literal) append(at, literal, sizeof(literal) - 1)

/*
 * Pads a head that ends at end to a multiple of header-align, with spaces after the value of
 * Server, or of Date if there is none: they do not belong to the value (RFC 9110, section 5.5),
 * even if the operator configured it.
 */
static char *pad(struct output *output, char *lead, char *end)
{
	const struct conn_thread *conn = output->transaction.thread->conn;
	size_t align = output->transaction.config_ref->config->header_align;
	size_t more = align ? -(size_t)(end - output_bytes(output)) % align : 0;
	char *at = lead + conn->lead_pad;

	if (more) {
		memmove(at + more, at, (size_t)(end - at));
		memset(at, ' ', more);
	}
	return end + more;
}

static char *append_hsts(char *at, const char *value)
{
	at = APPEND(at, "Strict-Transport-Security: ");
	at = append(at, value, strlen(value));
	return APPEND(at, "\r\n");
}

/* Removes the fields of that name from the lines that end at end; returns their end. */
static char *drop_field(char *lines, char *end, const char *name)
{
	size_t length = strlen(name);

	while (lines < end) {
		char *newline = memchr(lines, '\n', (size_t)(end - lines));
		char *next = newline ? newline + 1 : end;

		if ((size_t)(next - lines) > length && lines[length] == ':' &&
		    strncasecmp(lines, name, length) == 0) {
			memmove(lines, next, (size_t)(end - next));
			end -= next - lines;
		} else {
			lines = next;
		}
	}
	return end;
}

/* The server's id, and none of a program or of a stored response. */
static char *append_request_id(char *lines, char *at, const char *id)
{
	at = drop_field(lines, at, "X-Request-Id");
	at = APPEND(at, "X-Request-Id: ");
	at = append(at, id, strlen(id));
	return APPEND(at, "\r\n");
}

/*
 * A file is not newer than its response (RFC 9110, section 8.8.2.1): its lines may be from a moment
 * after the date, as the clock was set back, or as the date is not renewed at each response.
 */
static void cap_modified(time_t modified, const char *date, char *lines, const char *end)
{
	char line[sizeof(LAST_MODIFIED) - 1 + DATE_LENGTH] = LAST_MODIFIED;
	char *found;

	date_format(modified, line + strlen(LAST_MODIFIED));
	found = memmem(lines, (size_t)(end - lines), line, sizeof(line));
	if (found)
		memcpy(found + strlen(LAST_MODIFIED), date, DATE_LENGTH);
}

/* Writes the responder's lines as the rules change them; returns their end, or NULL without memory. */
static char *append_ruled(char *at, const struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	struct fields fields;
	char *end = NULL;

	fields_init(&fields);
	fields_read(&fields, (struct slice){transaction->head, transaction->head_length});
	header_rules_apply(scope->header_rules, scope->header_rule_count, transaction->header_lines,
			   transaction->status, &fields);
	if (!fields.failed)
		end = fields_write(&fields, at);
	fields_free(&fields);
	return end;
}

size_t output_head(struct output *output, bool keep_alive, bool http10)
{
	struct transaction *transaction = &output->transaction;
	struct thread *thread = transaction->thread;
	bool is_status = transaction_is_bare(transaction) && transaction->status >= 300;
	bool unknown = transaction->length == TRANSACTION_UNKNOWN;
	const void *text = transaction->text;
	size_t text_length = text ? transaction->length : 0;
	char page[RESPONSE_PAGE_MAX];
	char *at, *lead, *lines;

	assert(text_length <= TRANSACTION_TEXT_MAX);
	if (transaction->accel_lines)
		transaction_merge_lines(transaction);
	at = output_bytes(output);
	output_refresh_date(thread);
	output->responded_ns = loop_now_ns(thread->loop);
	if (transaction->phrase && transaction->phrase_status == transaction->status)
		at += response_status_line(transaction->status, transaction->phrase, at);
	else if (transaction->status == 200)
		at = APPEND(at, "HTTP/1.1 200 OK\r\n");
	else
		at += response_status_line(transaction->status, NULL, at);
	lead = at;
	at = append(at, thread->conn->lead, thread->conn->lead_length);
	if (transaction->date)
		write_date(thread->conn, transaction->date, at - strlen("\r\n") - DATE_LENGTH);
	lines = at;
	if (transaction->scope && transaction->scope->header_rule_count)
		at = append_ruled(at, transaction);
	else if (transaction->head_length)
		at = append(at, transaction->head, transaction->head_length);
	if (!at)
		return 0;
	if (transaction->modified > (transaction->date ? transaction->date : thread->conn->dated))
		cap_modified(transaction->modified, lines - strlen("\r\n") - DATE_LENGTH, lines,
			     at);
	if (transaction->scope && transaction->scope->server_timing)
		at = output_write_timing(at, output);
	if (*transaction->request_id)
		at = append_request_id(lines, at, transaction->request_id);
	if (is_status) {
		text = page;
		text_length = response_error_page(transaction->status, transaction->detail, page,
						  sizeof(page));
		at += sprintf(at,
			      "Content-Type: text/html; charset=utf-8\r\nContent-Length: %zu\r\n",
			      text_length);
	}
	if (transaction->https && transaction->host && transaction->host->hsts)
		at = append_hsts(at, transaction->host->hsts);
	/* A response to HEAD has the same head, but no body follows it (RFC 9112, section 6.3). */
	if (unknown && !http10 && !transaction->tunnel)
		at = APPEND(at, "Transfer-Encoding: chunked\r\n");
	output->chunked = unknown && !http10 && !transaction->head_only && !transaction->tunnel;
	if (transaction->tunnel)
		at = APPEND(at, "Connection: Upgrade\r\n");
	else if (transaction->http2)
		; /* these fields are HTTP/1.1's (RFC 9113, section 8.2.2), as alignment is */
	else if (!keep_alive)
		at = APPEND(at, "Connection: close\r\n");
	else if (http10)
		at = APPEND(at, "Connection: keep-alive\r\n");
	at = APPEND(at, "\r\n");
	if (!transaction->http2)
		at = pad(output, lead, at);
	output->head_length = (size_t)(at - output_bytes(output));
	if (text_length && !transaction->head_only) {
		at = append(at, text, text_length);
		output->sent = text_length;
	}
	if (transaction->head_only)
		return (size_t)(at - output_bytes(output));
	return output_lead(output, (size_t)(at - output_bytes(output)));
}

/* Ends the previous chunk and starts one of length bytes; 0: the last chunk. */
static char *frame(struct output *output, char *at, uint64_t length)
{
	at = append(at, &CRLF[2 - output->chunk_end], output->chunk_end);
	output->chunk_end = length ? 2 : 0;
	return at + sprintf(at, length ? "%" PRIx64 "\r\n" : "%" PRIx64 "\r\n\r\n", length);
}

size_t output_lead(struct output *output, size_t length)
{
	struct transaction *transaction = &output->transaction;
	uint64_t piece = transaction->lead_length + transaction_piece(transaction);
	char *at = output_bytes(output) + length;

	if (transaction->length == TRANSACTION_UNKNOWN) {
		/* A head may be sent before there is any body. */
		output->ended = piece == 0 && (output->head_sent || !transaction->next);
		if (output->chunked && (piece || output->ended))
			at = frame(output, at, piece);
	}
	if (transaction->lead_length) {
		assert(transaction->lead_length <= TRANSACTION_TEXT_MAX);
		output->sent += transaction->lead_length;
		at = append(at, transaction->lead, transaction->lead_length);
		transaction->lead_length = 0;
	}
	return (size_t)(at - output_bytes(output));
}

const char *output_chunk_end(const struct output *output, size_t *length)
{
	*length = output->chunk_end;
	return &CRLF[2 - output->chunk_end];
}
