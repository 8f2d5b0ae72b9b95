/* SPDX-License-Identifier: MIT */
/*
 * output-head.c - the head of a response; see output.h.
 *
 * For HTTP/1.1, the responder's lines are copied as they are: only if something of them changes, they
 * are read as fields first.  For HTTP/2, all that is sent are fields.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/date.h"
#include "base/decimal.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/piece.h"
#include "exchange/exchange-thread.h"
#include "exchange/output.h"
#include "http/field.h"
#include "http/fields.h"
#include "http/response.h"
#include "rules/header-rule.h"

#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define TYPE_OF_PAGE "text/html; charset=utf-8"

static_assert(RESPONSE_PAGE_MAX <= TRANSACTION_TEXT_MAX, "a page fits behind the head");

static char *append(char *at, const void *data, size_t length)
{
	memcpy(at, data, length);
	return at + length;
}

#define APPEND(at, literal) append(at, literal, sizeof(literal) - 1)

/*
 * Returns the text of the response's date.  Stored responses, and those of one second from another
 * server, have the same date.
 */
static const char *date_of(const struct transaction *transaction)
{
	struct exchange_thread *exchange = transaction->thread->exchange;

	if (!transaction->response.date)
		return exchange->date;
	if (transaction->response.date != exchange->other_date) {
		exchange->other_date = transaction->response.date;
		date_format(transaction->response.date, exchange->other_date_text);
	}
	return exchange->other_date_text;
}

/* --- what changes in the responder's lines ---------------------------------------------------- */

/*
 * A file is not newer than its response (RFC 9110, section 8.8.2.1): its lines may be from a moment
 * after the date, as the clock was set back, or as the date is not renewed at each response.
 */
static bool is_newer(const struct transaction *transaction)
{
	return transaction->response.modified > (transaction->response.date
							 ? transaction->response.date
							 : transaction->thread->exchange->dated);
}

static void cap_modified(const struct transaction *transaction, struct fields *fields)
{
	const struct slice date = {date_of(transaction), DATE_LENGTH};
	char modified[DATE_LENGTH];

	date_format(transaction->response.modified, modified);
	for (size_t i = 0; i < fields->count; i++)
		if (fields->at[i].id == FIELD_LAST_MODIFIED &&
		    slice_equals(fields->at[i].value, (struct slice){modified, DATE_LENGTH}))
			fields->at[i] = field_of(FIELD_LAST_MODIFIED, date);
}

static bool has_rules(const struct transaction *transaction)
{
	return transaction->scope && transaction->scope->header_rule_count;
}

static bool changes(const struct transaction *transaction)
{
	return has_rules(transaction) || is_newer(transaction) || *transaction->trace.id;
}

/* Appends the responder's fields, as the rules and the server change them. */
static void list_lines(const struct transaction *transaction, struct fields *fields)
{
	const struct scope *scope = transaction->scope;

	fields_read(fields,
		    (struct slice){transaction->response.head, transaction->response.head_length});
	if (has_rules(transaction))
		header_rules_apply(scope->header_rules, scope->header_rule_count,
				   transaction->response.header_lines, transaction->response.status,
				   fields);
	if (is_newer(transaction))
		cap_modified(transaction, fields);
	if (!*transaction->trace.id)
		return;
	/* The server's id, and none of a program or of a stored response. */
	fields_remove(fields, FIELD_BIT(FIELD_X_REQUEST_ID));
	fields_add(fields,
		   field_of(FIELD_X_REQUEST_ID,
			    (struct slice){transaction->trace.id, strlen(transaction->trace.id)}));
}

/* --- HTTP/1.1 --------------------------------------------------------------------------------- */

/* Returns the end of the lines, or NULL without memory. */
static char *append_lines(struct output *output, char *at)
{
	const struct transaction *transaction = &output->transaction;
	struct fields fields;
	char *end;

	if (!changes(transaction)) {
		output->lines_at = (size_t)(at - output_bytes(output));
		return transaction->response.head_length ? append(at, transaction->response.head,
								  transaction->response.head_length)
							 : at;
	}
	fields_init(&fields);
	list_lines(transaction, &fields);
	end = fields.failed ? NULL : fields_write(&fields, at);
	fields_free(&fields);
	return end;
}

static char *append_status(const struct transaction *transaction, char *at)
{
	bool own = transaction->response.phrase &&
		   transaction->response.phrase_status == transaction->response.status;

	if (transaction->response.status == 200 && !own)
		return APPEND(at, "HTTP/1.1 200 OK\r\n");
	return at + response_status_line(transaction->response.status,
					 own ? transaction->response.phrase : NULL, at);
}

static char *append_timing(const struct output *output, char *at)
{
	at = output_write_timing(APPEND(at, "Server-Timing: "), output);
	return APPEND(at, "\r\n");
}

static char *append_hsts(char *at, const char *value)
{
	at = APPEND(at, "Strict-Transport-Security: ");
	at = append(at, value, strlen(value));
	return APPEND(at, "\r\n");
}

/* The framing of HTTP/1.1 (RFC 9112, section 6; RFC 9110, section 7.6.1). */
static char *append_framing(const struct transaction *transaction, bool keep_alive, bool http10,
			    char *at)
{
	/* A response to HEAD has the same head, but no body follows it (RFC 9112, section 6.3). */
	if (transaction->response.length == TRANSACTION_UNKNOWN && !http10 &&
	    !transaction_has_tunnel(transaction))
		at = APPEND(at, CHUNKED);
	if (transaction_has_tunnel(transaction))
		return APPEND(at, "Connection: Upgrade\r\n");
	if (!keep_alive)
		return APPEND(at, "Connection: close\r\n");
	return http10 ? APPEND(at, "Connection: keep-alive\r\n") : at;
}

/*
 * Pads a head that ends at end to a multiple of header-align, with spaces after the value of
 * Server, or of Date if there is none: they do not belong to the value (RFC 9110, section 5.5),
 * even if the operator configured it.
 */
static char *pad(struct output *output, char *lead, char *end)
{
	const struct exchange_thread *exchange = output->transaction.thread->exchange;
	size_t align = output->transaction.config_ref->config->header_align;
	char *bytes = output_bytes(output), *at = lead + exchange->lead_pad;
	size_t more = align ? -(size_t)(end - bytes) % align : 0;

	if (more) {
		memmove(at + more, at, (size_t)(end - at));
		memset(at, ' ', more);
		output->date_at += bytes + output->date_at >= at ? more : 0;
		output->lines_at += more;
	}
	return end + more;
}

/* Makes room for lines of any length; returns false without memory. */
static bool make_room(struct output *output)
{
	size_t lines = output->transaction.response.head_length;
	size_t all = lines + TRANSACTION_AROUND_MAX + OUTPUT_ALIGN - 1;

	free(output->long_head);
	output->long_head = NULL;
	if (lines <= TRANSACTION_HEAD_MAX)
		return true;
	output->long_head = aligned_alloc(OUTPUT_ALIGN, all / OUTPUT_ALIGN * OUTPUT_ALIGN);
	return output->long_head;
}

/* page: bytes of an error's page that follows; returns the end, or NULL without memory. */
static char *write_head(struct output *output, size_t page, bool keep_alive, bool http10)
{
	const struct transaction *transaction = &output->transaction;
	const struct exchange_thread *exchange = transaction->thread->exchange;
	char *at, *lead;

	if (!make_room(output))
		return NULL;
	lead = append_status(transaction, output_bytes(output));
	at = append(lead, exchange->lead, exchange->lead_length);
	output->date_at = (size_t)(at - output_bytes(output)) - strlen("\r\n") - DATE_LENGTH;
	if (transaction->response.date)
		memcpy(output_bytes(output) + output->date_at, date_of(transaction), DATE_LENGTH);
	at = append_lines(output, at);
	if (!at)
		return NULL;
	if (transaction->scope && transaction->scope->server_timing)
		at = append_timing(output, at);
	if (page)
		at += sprintf(at, "Content-Type: " TYPE_OF_PAGE "\r\nContent-Length: %zu\r\n",
			      page);
	if (transaction->peer.https && transaction->host && transaction->host->hsts)
		at = append_hsts(at, transaction->host->hsts);
	at = append_framing(transaction, keep_alive, http10, at);
	at = APPEND(at, "\r\n");
	at = pad(output, lead, at);
	output->head_length = (size_t)(at - output_bytes(output));
	return at;
}

/* --- HTTP/2 ----------------------------------------------------------------------------------- */

/* The operator's text may have blanks around it, which the values of HTTP/2 must not have. */
static void add_text(struct fields *fields, struct field field, const char *text)
{
	field.value = field_trim((struct slice){text, strlen(text)});
	fields_add(fields, field);
}

/* Returns the bytes that the head would have in HTTP/1.1, which the log has for all. */
static size_t size_as_text(const struct transaction *transaction, const struct fields *fields)
{
	char status[RESPONSE_STATUS_MAX];
	size_t length = (size_t)(append_status(transaction, status) - status);

	if (transaction->response.length == TRANSACTION_UNKNOWN)
		length += strlen(CHUNKED);
	return length + fields_size(fields) + strlen("\r\n");
}

/* As write_head(); returns the end of the values that are made here. */
static char *list_head(struct output *output, size_t page)
{
	const struct transaction *transaction = &output->transaction;
	const char *server = transaction->config_ref->config->server_header;
	struct fields *fields = &output->fields;
	char *bytes = output_bytes(output), *at = bytes;

	fields_free(fields);
	if (server)
		add_text(fields, field_of(FIELD_SERVER, (struct slice){0}), server);
	fields_add(fields, field_of(FIELD_DATE, (struct slice){date_of(transaction), DATE_LENGTH}));
	list_lines(transaction, fields);
	if (transaction->scope && transaction->scope->server_timing) {
		char *value = at;

		at = output_write_timing(value, output);
		fields_add(fields, (struct field){.name = SLICE("Server-Timing"),
						  .value = {value, (size_t)(at - value)}});
	}
	if (page) {
		char *value = at;

		at = decimal_write(value, page);
		fields_add(fields, field_of(FIELD_CONTENT_TYPE, SLICE(TYPE_OF_PAGE)));
		fields_add(fields, field_of(FIELD_CONTENT_LENGTH,
					    (struct slice){value, (size_t)(at - value)}));
	}
	if (transaction->peer.https && transaction->host && transaction->host->hsts)
		add_text(fields, (struct field){.name = SLICE("Strict-Transport-Security")},
			 transaction->host->hsts);
	output->values_length = (size_t)(at - bytes);
	output->head_length = size_as_text(transaction, fields);
	return fields->failed ? NULL : at;
}

/* --- all -------------------------------------------------------------------------------------- */

bool output_head(struct output *output, bool keep_alive, bool http10, size_t *length)
{
	struct transaction *transaction = &output->transaction;
	bool is_status = transaction_is_bare(transaction) && transaction->response.status >= 300;
	bool unknown = transaction->response.length == TRANSACTION_UNKNOWN;
	const void *text = transaction->piece.kind == PIECE_TEXT ? transaction->piece.data : NULL;
	size_t text_length = text ? transaction->response.length : 0, page_length = 0;
	char page[RESPONSE_PAGE_MAX];
	char *at;

	assert(text_length <= TRANSACTION_TEXT_MAX);
	if (transaction->response.accel_lines)
		transaction_merge_lines(transaction);
	output_refresh_date(transaction->thread);
	output->responded_ns = loop_now_ns(transaction->thread->loop);
	if (is_status) {
		text = page;
		page_length = response_error_page(transaction->response.status,
						  transaction->response.detail, page, sizeof(page));
		text_length = page_length;
	}
	if (transaction->peer.http2)
		at = list_head(output, page_length);
	else
		at = write_head(output, page_length, keep_alive, http10);
	if (!at)
		return false;
	output->chunked = unknown && !http10 && !transaction->head_only &&
			  !transaction_has_tunnel(transaction);
	if (text_length && !transaction->head_only) {
		at = append(at, text, text_length);
		output->sent = text_length;
	}
	*length = (size_t)(at - output_bytes(output));
	if (!transaction->head_only)
		*length = output_lead(output, *length);
	return true;
}
