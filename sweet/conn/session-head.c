/* SPDX-License-Identifier: MIT */
/*
 * session-head.c - the head of a response, which comes in the syntax of HTTP/1.1, as fields of
 * HTTP/2 (RFC 9113, section 8.3.2).
 */
#include <glib.h>
#include <nabc.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"
#include "conn/connection-internal.h"
#include "conn/session-internal.h"
#include "event/loop.h"
#include "http/field.h"

#define FIELDS_USUAL 24u /* of a head; more need memory */

/* Fields of HTTP/1.1's framing; others that concern one hop were filtered before. */
static bool is_framing(struct slice name)
{
	switch (name.at[0]) {
	case 'C':
		return slice_is(name, "Connection");
	case 'T':
		return slice_is(name, "Transfer-Encoding");
	case 'K':
		return slice_is(name, "Keep-Alive");
	default:
		return false;
	}
}

/*
 * Finds a usual name, which the server writes in that case, at the start of a line.  Returns it as
 * HTTP/2 has it: that one is not copied.  Other names: no bytes.
 */
static struct slice find_usual(const char *line, size_t left)
{
#define TRY(written, lower)                                                                        \
	if (left > sizeof(written) && memcmp(line, written ":", sizeof(written)) == 0)             \
	return SLICE(lower)
	/* The compiler compares texts of a known length as numbers. */
	switch (line[0]) {
	case 'A':
		TRY("Accept-Ranges", "accept-ranges");
		break;
	case 'C':
		TRY("Content-Length", "content-length");
		TRY("Content-Type", "content-type");
		TRY("Cache-Control", "cache-control");
		TRY("Content-Encoding", "content-encoding");
		TRY("Content-Range", "content-range");
		break;
	case 'D':
		TRY("Date", "date");
		break;
	case 'E':
		TRY("ETag", "etag");
		break;
	case 'L':
		TRY("Last-Modified", "last-modified");
		break;
	case 'S':
		TRY("Server", "server");
		break;
	case 'V':
		TRY("Vary", "vary");
		break;
	}
#undef TRY
	return (struct slice){0};
}

/* The fields of a head; all zeros but for `at` and `room`. */
struct fields {
	nghttp2_nv *at, *allocated;
	size_t count, room;
};

static bool grow(struct fields *fields)
{
	size_t room = 2 * fields->room;
	nghttp2_nv *at = g_try_renew(nghttp2_nv, fields->allocated, room);

	if (!at)
		return false;
	if (!fields->allocated)
		memcpy(at, fields->at, fields->count * sizeof(*at));
	fields->at = fields->allocated = at;
	fields->room = room;
	return true;
}

static inline bool add_field(struct fields *fields, struct slice name, uint8_t flags,
			     struct slice value)
{
	if (fields->count == fields->room && !grow(fields))
		return false;
	fields->at[fields->count++] =
		(nghttp2_nv){(uint8_t *)(uintptr_t)name.at, (uint8_t *)(uintptr_t)value.at,
			     name.length, value.length, flags};
	return true;
}

/*
 * Splits a head, which output.c has written: its lines are valid, but values may have spaces around
 * them.  Returns its bytes; 0 without memory.
 */
static size_t list_fields(const char *head, size_t length, struct fields *fields)
{
	const char *end = head + length, *at = memchr(head, '\n', length);
	bool added = add_field(fields, SLICE(":status"), NGHTTP2_NV_FLAG_NO_COPY_NAME,
			       (struct slice){head + strlen("HTTP/1.1 "), 3});

	for (at++; *at != '\r' && added;) {
		struct slice name = find_usual(at, (size_t)(end - at)), value;
		uint8_t flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
		const char *line_end;

		if (!name.length) {
			name.at = at;
			while (at[name.length] != ':')
				name.length++;
			flags = NGHTTP2_NV_FLAG_NONE;
		}
		value.at = at + name.length + 1;
		line_end = memchr(value.at, '\r', (size_t)(end - value.at));
		value.length = (size_t)(line_end - value.at);
		if (name.at != at || !is_framing(name))
			added = add_field(fields, name, flags, field_trim(value));
		at = line_end + strlen("\r\n");
	}
	return added ? (size_t)(at + strlen("\r\n") - head) : 0;
}

void stream_submit_head(struct stream *stream)
{
	struct loop_send *op = &stream->connection.send;
	nghttp2_session *http2 = stream->session->http2;
	nghttp2_data_provider content = {.read_callback = stream_read};
	nghttp2_nv few[FIELDS_USUAL];
	struct fields fields = {.at = few, .room = FIELDS_USUAL};
	size_t head = list_fields(op->message.header, op->message.header_length, &fields);
	bool empty = stream_is_last(stream) && loop_send_length(op) == head;

	stream->answered = true;
	op->message.skip = head;
	if (head == 0 || nghttp2_submit_response(http2, stream->id, fields.at, fields.count,
						 empty ? NULL : &content))
		(void)nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, stream->id,
						NGHTTP2_INTERNAL_ERROR);
	g_free(fields.allocated);
}
