/* SPDX-License-Identifier: MIT */
/*
 * session-head.c - the head of a response, which comes in the syntax of HTTP/1.1, as fields of
 * HTTP/2 (RFC 9113, section 8.3.2).
 */
#include <string.h>

#include "conn/session-internal.h"
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
 * Returns a usual name, which the server writes in that case, as HTTP/2 has it: that one is not
 * copied.  Other names: no bytes.
 */
static struct slice find_usual(struct slice name)
{
#define TRY(written, lower)                                                                        \
	if (memcmp(name.at, written, sizeof(written) - 1) == 0)                                    \
	return SLICE(lower)
	/* The compiler compares texts of a known length as numbers. */
	switch (name.length) {
	case 4:
		TRY("Date", "date");
		TRY("ETag", "etag");
		TRY("Vary", "vary");
		break;
	case 6:
		TRY("Server", "server");
		break;
	case 12:
		TRY("Content-Type", "content-type");
		break;
	case 13:
		TRY("Accept-Ranges", "accept-ranges");
		TRY("Cache-Control", "cache-control");
		TRY("Last-Modified", "last-modified");
		TRY("Content-Range", "content-range");
		break;
	case 14:
		TRY("Content-Length", "content-length");
		break;
	case 16:
		TRY("Content-Encoding", "content-encoding");
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

static bool add_field(struct fields *fields, struct slice name, struct slice value)
{
	struct slice lower;

	if (fields->count == fields->room) {
		size_t room = 2 * fields->room;
		nghttp2_nv *at = g_try_renew(nghttp2_nv, fields->allocated, room);

		if (!at)
			return false;
		if (!fields->allocated)
			memcpy(at, fields->at, fields->count * sizeof(*at));
		fields->at = fields->allocated = at;
		fields->room = room;
	}
	lower = find_usual(name);
	fields->at[fields->count++] =
		(nghttp2_nv){(uint8_t *)(uintptr_t)(lower.length ? lower.at : name.at),
			     (uint8_t *)(uintptr_t)value.at, name.length, value.length,
			     lower.length ? NGHTTP2_NV_FLAG_NO_COPY_NAME : NGHTTP2_NV_FLAG_NONE};
	return true;
}

/*
 * Splits a head, which output.c has written: its lines are valid, but values may have spaces around
 * them.  Returns its bytes; 0 without memory.
 */
static size_t list_fields(const char *head, size_t length, struct fields *fields)
{
	const char *end = head + length, *at = memchr(head, '\n', length);
	bool added =
		add_field(fields, SLICE(":status"), (struct slice){head + strlen("HTTP/1.1 "), 3});

	for (at++; *at != '\r' && added;) {
		const char *colon = at, *line_end;

		while (*colon != ':')
			colon++;
		line_end = memchr(colon, '\r', (size_t)(end - colon));
		if (!is_framing((struct slice){at, (size_t)(colon - at)}))
			added = add_field(fields, (struct slice){at, (size_t)(colon - at)},
					  field_trim((struct slice){
						  colon + 1, (size_t)(line_end - colon) - 1}));
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
