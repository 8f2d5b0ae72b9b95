/* SPDX-License-Identifier: MIT */
/*
 * client-hello.c - see client-hello.h.  Any thread may call it.
 *
 * The message may be spread over several records, and a record over several segments.  A library
 * reads a record as a whole before it looks at its content; so does this.
 */
#include <stdbool.h>
#include <stddef.h>

#include "tls/client-hello.h"

#define RECORD_HEAD 5u		  /* bytes: type, version, length */
#define RECORD_CONTENT_MAX 16384u /* bytes of a record that is not encrypted */
#define MESSAGE_HEAD 4u		  /* bytes: type, length */
#define HANDSHAKE 22u		  /* type of a record */
#define HELLO 1u		  /* type of a message */
#define OLD_LENGTH 2u		  /* bytes of it that the length does not count */

/* The message, as far as it was found. */
struct message {
	unsigned char head[MESSAGE_HEAD];
	size_t have; /* bytes */
};

static size_t number(const unsigned char *at, unsigned bytes)
{
	size_t value = 0;

	while (bytes--)
		value = value << 8 | *at++;
	return value;
}

/* A hello in the format of SSL 2 may want a newer version (RFC 5246, appendix E.2). */
static bool is_old(const unsigned char *data)
{
	return data[0] & 0x80 && data[2] == HELLO;
}

static enum client_hello look_at_old(const unsigned char *data, size_t length)
{
	size_t need = OLD_LENGTH + (number(data, 2) & 0x7fff);

	if (need > RECORD_CONTENT_MAX)
		return CLIENT_HELLO_WHOLE;
	return length < need ? CLIENT_HELLO_PART : CLIENT_HELLO_WHOLE;
}

static void add(struct message *message, const unsigned char *content, size_t length)
{
	for (size_t i = 0; i < length && message->have + i < MESSAGE_HEAD; i++)
		message->head[message->have + i] = content[i];
	message->have += length;
}

static enum client_hello judge(const struct message *message)
{
	size_t length;

	if (message->have < MESSAGE_HEAD)
		return CLIENT_HELLO_PART;
	if (message->head[0] != HELLO)
		return CLIENT_HELLO_WHOLE;
	length = number(message->head + 1, 3);
	if (length > CLIENT_HELLO_MAX)
		return CLIENT_HELLO_LONG;
	return message->have < MESSAGE_HEAD + length ? CLIENT_HELLO_PART : CLIENT_HELLO_WHOLE;
}

enum client_hello client_hello_look(const char *bytes, size_t length)
{
	const unsigned char *data = (const unsigned char *)bytes;
	enum client_hello result = CLIENT_HELLO_PART;
	struct message message = {.have = 0};
	size_t at = 0;

	if (length >= RECORD_HEAD && is_old(data))
		return look_at_old(data, length);
	while (result == CLIENT_HELLO_PART && length - at >= RECORD_HEAD) {
		size_t content = number(data + at + 3, 2);

		/* Not TLS, or too long for a record: no more of it is read. */
		if (data[at + 1] != 3 || content > RECORD_CONTENT_MAX)
			return CLIENT_HELLO_WHOLE;
		if (length - at - RECORD_HEAD < content)
			break;
		if (data[at] != HANDSHAKE)
			return CLIENT_HELLO_WHOLE;
		add(&message, data + at + RECORD_HEAD, content);
		result = judge(&message);
		at += RECORD_HEAD + content;
	}
	if (result == CLIENT_HELLO_PART && length > CLIENT_HELLO_BYTES)
		return CLIENT_HELLO_LONG;
	return result;
}
