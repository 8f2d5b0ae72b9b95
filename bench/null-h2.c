/* SPDX-License-Identifier: MIT */
/*
 * null-h2.c - the limit of "bench tls" with HTTP/2: no server, just what any that speaks HTTP/2 by
 * libnghttp2 and TLS by OpenSSL has to do.
 *
 * The library parses and frames, and each request gets the same four fields and a body from memory;
 * see null-cipher.h for the rest.  The frames of all streams fill records together.  The memory of
 * a body is divided into blocks of a record each, with room for the head of a frame before the
 * content, so that a whole block is encrypted where it is.
 *
 * Usage: null-h2 PORT SIZE COUNT PEM, as of null-tls
 */
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "null-cipher.h"

#define FRAME_HEAD 9
#define RECORD ((size_t)SSL3_RT_MAX_PLAIN_LENGTH)
#define CONTENT (RECORD - FRAME_HEAD)
#define COPIED_MAX ((size_t)2 << 10) /* bytes of content that are cheaper to copy */
#define STREAMS 128
/* clang-format off */
#define FIELD(name, value)                                                                         \
	{(uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), strlen(name), strlen(value), \
	 NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE}
/* clang-format on */

struct connection {
	struct null_connection null; /* must be first */
	nghttp2_session *session;
	unsigned turn; /* the next body */
};

static struct {
	char *bodies;
	size_t length; /* of one of them, with the heads of its frames */
	unsigned count;
	char size[24];
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
} prepared;

/* Frames of the connection that is served, before they are encrypted; empty between two of them. */
static char plain[RECORD];
static size_t plain_length;

/* --- what is sent --------------------------------------------------------------------------- */

static bool encrypt(struct connection *connection, const char *data, size_t length)
{
	size_t done;

	return SSL_write_ex(connection->null.ssl, data, length, &done) == 1;
}

static bool encrypt_plain(struct connection *connection)
{
	size_t length = plain_length;

	plain_length = 0;
	return length == 0 || encrypt(connection, plain, length);
}

static bool copy(struct connection *connection, const void *data, size_t length)
{
	const char *from = data;

	while (length) {
		size_t room = sizeof(plain) - plain_length;
		size_t now = length < room ? length : room;

		memcpy(plain + plain_length, from, now);
		plain_length += now;
		from += now;
		length -= now;
		if (plain_length == sizeof(plain) && !encrypt_plain(connection))
			return false;
	}
	return true;
}

/* Returns where content is in the memory of its body. */
static size_t offset_of(const char *content)
{
	return (size_t)(content - prepared.bodies) % prepared.length;
}

/* The source of a stream is its next content. */
static ssize_t read_content(nghttp2_session *session, int32_t id, uint8_t *room, size_t most,
			    uint32_t *flags, nghttp2_data_source *source, void *context)
{
	size_t offset = offset_of(source->ptr), left = prepared.length - offset;
	size_t block = RECORD - offset % RECORD;

	(void)session;
	(void)id;
	(void)room;
	(void)context;
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	most = most < block ? most : block;
	if (left > most)
		return (ssize_t)most;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)left;
}

static int add_content(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
		       size_t length, nghttp2_data_source *source, void *context)
{
	struct connection *connection = context;
	char *content = source->ptr;
	size_t offset = offset_of(content);
	bool whole = offset % RECORD == FRAME_HEAD && length > COPIED_MAX;

	(void)session;
	(void)frame;
	if (whole) {
		memcpy(content - FRAME_HEAD, head, FRAME_HEAD);
		if (!encrypt_plain(connection) ||
		    !encrypt(connection, content - FRAME_HEAD, length + FRAME_HEAD))
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	} else if (!copy(connection, head, FRAME_HEAD) || !copy(connection, content, length)) {
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	content += length;
	/* The next block. */
	if ((offset + length) % RECORD == 0)
		content += FRAME_HEAD;
	source->ptr = content;
	if (null_unsent() < NULL_BURST)
		return 0;
	switch (null_flush(&connection->null)) {
	case 1:
		return 0;
	case 0:
		return NGHTTP2_ERR_PAUSE;
	default:
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
}

static int answer(struct null_connection *null)
{
	struct connection *connection = (struct connection *)null;
	const uint8_t *data;
	ssize_t length;

	while ((length = nghttp2_session_mem_send(connection->session, &data)) > 0)
		if (!copy(connection, data, (size_t)length))
			return -1;
	if (length < 0 || !encrypt_plain(connection))
		return -1;
	if (null->rest)
		return null_keep(null) ? 0 : -1;
	return null_flush(null);
}

/* --- what is received ----------------------------------------------------------------------- */

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	const nghttp2_nv fields[] = {FIELD(":status", "200"), FIELD("server", "null"),
				     FIELD("content-type", "application/octet-stream"),
				     FIELD("content-length", prepared.size)};
	struct connection *connection = context;
	nghttp2_data_provider content = {.read_callback = read_content};

	if (frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	content.source.ptr = prepared.bodies + connection->turn * prepared.length + FRAME_HEAD;
	connection->turn = (connection->turn + 1) % prepared.count;
	return nghttp2_submit_response(session, frame->hd.stream_id, fields,
				       sizeof(fields) / sizeof(fields[0]), &content);
}

static bool take(struct null_connection *null, const char *data, size_t length)
{
	struct connection *connection = (struct connection *)null;

	return nghttp2_session_mem_recv(connection->session, (const uint8_t *)data, length) ==
	       (ssize_t)length;
}

/* --- its life ------------------------------------------------------------------------------- */

static bool open_connection(struct null_connection *null)
{
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS},
		{NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}};
	static unsigned turn;
	struct connection *connection = (struct connection *)null;

	/* Each starts at a different body, as clients do. */
	connection->turn = turn++ % prepared.count;
	return !nghttp2_session_server_new2(&connection->session, prepared.callbacks, connection,
					    prepared.option) &&
	       !nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings,
					sizeof(settings) / sizeof(settings[0]));
}

static void close_connection(struct null_connection *null)
{
	nghttp2_session_del(((struct connection *)null)->session);
	plain_length = 0;
}

static bool fill(size_t size, unsigned count)
{
	size_t blocks = (size + CONTENT - 1) / CONTENT;

	if (nghttp2_session_callbacks_new(&prepared.callbacks) ||
	    nghttp2_option_new(&prepared.option))
		return false;
	nghttp2_session_callbacks_set_on_frame_recv_callback(prepared.callbacks, on_frame);
	nghttp2_session_callbacks_set_send_data_callback(prepared.callbacks, add_content);
	/* The client's requests are well-formed. */
	nghttp2_option_set_no_http_messaging(prepared.option, 1);
	snprintf(prepared.size, sizeof(prepared.size), "%zu", size);
	prepared.count = count;
	prepared.length = size + blocks * FRAME_HEAD;
	/* A body that fills its last block leaves its source behind the gap of a next one. */
	prepared.bodies = malloc(prepared.length * count + FRAME_HEAD);
	if (!prepared.bodies)
		return false;
	for (unsigned i = 0; i < count; i++)
		memset(prepared.bodies + i * prepared.length, 'a' + (int)(i % 26), prepared.length);
	return true;
}

int main(int argc, char **argv)
{
	static const struct null_program program = {.name = "null-h2",
						    .protocol = "h2",
						    .connection = sizeof(struct connection),
						    .fill = fill,
						    .open = open_connection,
						    .close = close_connection,
						    .take = take,
						    .answer = answer};

	return null_main(&program, argc, argv);
}
