/* SPDX-License-Identifier: MIT */
/*
 * session-head.c - the head of a response as HTTP/2 has it (RFC 9113, section 8.3.2): the fields
 * that output_head() has listed.
 */
#include <glib.h>
#include <nabc.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "conn/connection-base.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "exchange/output.h"
#include "h2/session-internal.h"
#include "http/fields.h"
#include "http/response.h"

/* Fields of HTTP/1.1's framing; others that concern one hop were filtered before. */
static const field_set framing = FIELD_BIT(FIELD_CONNECTION) | FIELD_BIT(FIELD_KEEP_ALIVE) |
				 FIELD_BIT(FIELD_TRANSFER_ENCODING);

#define LINES_MAX 64u /* of an interim response, or trailers; more are not sent */

static nghttp2_nv make(struct slice name, uint8_t flags, struct slice value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name.at, (uint8_t *)(uintptr_t)value.at,
			    name.length, value.length, flags};
}

/* Returns the number of fields; names that are not known are in lower case only in the copy. */
static size_t convert(const struct fields *fields, const char *status, nghttp2_nv *at)
{
	size_t count = 0;

	at[count++] = make(SLICE(":status"), NGHTTP2_NV_FLAG_NO_COPY_NAME,
			   (struct slice){status, RESPONSE_STATUS_DIGITS});
	for (size_t i = 0; i < fields->count; i++) {
		const struct field *field = &fields->at[i];

		if (field_is_in(field, framing))
			continue;
		at[count++] = field->id == FIELD_OTHER
				      ? make(field->name, NGHTTP2_NV_FLAG_NONE, field->value)
				      : make(field_lower_name(field->id),
					     NGHTTP2_NV_FLAG_NO_COPY_NAME, field->value);
	}
	return count;
}

void stream_submit_head(struct stream *stream, nghttp2_data_source_read_callback read)
{
	struct loop_send *op = &stream->connection.send;
	struct output *output = stream->connection.output;
	struct fields *fields = &output->fields;
	nghttp2_session *http2 = stream->session->http2;
	nghttp2_data_provider content = {.read_callback = read};
	nghttp2_nv few[FIELDS_USUAL + 1], *more = NULL, *all = few;
	bool empty = stream_is_last(stream) && loop_send_length(op) == output->values_length;
	char status[RESPONSE_STATUS_DIGITS];

	stream->answered = true;
	op->message.skip = output->values_length;
	if (fields->count >= G_N_ELEMENTS(few))
		all = more = g_try_new(nghttp2_nv, fields->count + 1);
	response_status_digits(output->transaction.response.status, status);
	if (!all || nghttp2_submit_response(http2, stream->id, all, convert(fields, status, all),
					    empty ? NULL : &content))
		(void)nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, stream->id,
						NGHTTP2_INTERNAL_ERROR);
	g_free(more);
	fields_free(fields);
}

/* Adds the fields of the lines after the first count ones; returns how many there are then. */
static size_t add_lines(struct slice lines, nghttp2_nv *all, size_t count)
{
	struct field field;

	while (count <= LINES_MAX && field_next(&lines, &field))
		all[count++] = make(field.name, NGHTTP2_NV_FLAG_NONE, field.value);
	return count;
}

void stream_submit_interim(struct stream *stream, int status, struct slice lines)
{
	nghttp2_nv all[LINES_MAX + 1];
	char digits[RESPONSE_STATUS_DIGITS];

	response_status_digits(status, digits);
	all[0] = make(SLICE(":status"), NGHTTP2_NV_FLAG_NO_COPY_NAME,
		      (struct slice){digits, RESPONSE_STATUS_DIGITS});
	(void)nghttp2_submit_headers(stream->session->http2, NGHTTP2_FLAG_NONE, stream->id, NULL,
				     all, add_lines(lines, all, 1), NULL);
}

uint32_t stream_submit_trailers(struct stream *stream)
{
	struct slice lines = output_trailers(stream->connection.output);
	nghttp2_nv all[LINES_MAX + 1];
	size_t count = lines.length ? add_lines(lines, all, 0) : 0;

	if (count == 0 || nghttp2_submit_trailer(stream->session->http2, stream->id, all, count))
		return 0;
	return NGHTTP2_DATA_FLAG_NO_END_STREAM;
}
