/* SPDX-License-Identifier: MIT */
/*
 * tls-stream.c - see tls-stream.h.
 *
 * After the handshake a client may send data, a key update, and an alert (RFC 8446, sections 4.6.3
 * and 6); everything else ends the connection.  So do records without data if too many of them
 * follow each other: to read them costs the server more than the client pays for them.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <sys/uio.h>

#include "tls/tls-output.h"
#include "tls/record/tls-secrets.h"
#include "tls/record/tls-stream.h"

#define IDLE_MAX 32u /* key updates, warnings and empty records, one after the other */
#define KEY_UPDATE_LENGTH 5u

static const unsigned char key_update[KEY_UPDATE_LENGTH - 1] = {SSL3_MT_KEY_UPDATE, 0, 0, 1};

/* --- sending --------------------------------------------------------------------------------- */

static bool put(struct tls_stream *stream, enum tls_content type, const struct iovec *pieces,
		unsigned count)
{
	size_t length = TLS_RECORD_MORE;
	unsigned char *record;

	for (unsigned i = 0; i < count; i++)
		length += pieces[i].iov_len;
	record = tls_output_room(stream->output, length);
	length = record ? tls_record_seal(&stream->out, type, pieces, count, record) : 0;
	stream->output->to += length;
	return length > 0;
}

static bool put_bytes(struct tls_stream *stream, enum tls_content type, const void *bytes,
		      size_t length)
{
	return put(stream, type, &(struct iovec){(void *)(uintptr_t)bytes, length}, 1);
}

static bool put_alert(struct tls_stream *stream, unsigned char level, unsigned char description)
{
	return put_bytes(stream, TLS_ALERT, (const unsigned char[]){level, description}, 2);
}

static ssize_t fail(struct tls_stream *stream, unsigned char alert)
{
	stream->failed = true;
	stream->alert = alert;
	/* Without memory, the client gets the end of the connection alone. */
	if (!stream->said_end)
		(void)put_alert(stream, SSL3_AL_FATAL, alert);
	return TLS_FAILED;
}

/* Says that records follow which are made with the next key, and wants none of the client. */
static bool change_key(struct tls_stream *stream)
{
	unsigned char message[KEY_UPDATE_LENGTH] = {0};

	memcpy(message, key_update, sizeof(key_update));
	message[KEY_UPDATE_LENGTH - 1] = SSL_KEY_UPDATE_NOT_REQUESTED;
	if (put_bytes(stream, TLS_HANDSHAKE, message, sizeof(message)) &&
	    tls_key_renew(&stream->out))
		return true;
	/* The old key must not be used again. */
	stream->said_end = true;
	(void)fail(stream, SSL_AD_INTERNAL_ERROR);
	return false;
}

bool tls_stream_write(struct tls_stream *stream, const struct iovec *pieces, unsigned count)
{
	if (stream->failed || stream->said_end)
		return false;
	if (tls_key_is_worn(&stream->out) && !change_key(stream))
		return false;
	return put(stream, TLS_DATA, pieces, count);
}

void tls_stream_end(struct tls_stream *stream)
{
	if (!stream->failed && !stream->said_end)
		(void)put_alert(stream, SSL3_AL_WARNING, SSL_AD_CLOSE_NOTIFY);
	stream->said_end = true;
}

/* --- finding records ------------------------------------------------------------------------- */

/* Adds input to the record that has come in part; returns false as long as it is shorter. */
static bool fill(struct tls_stream *stream, size_t length)
{
	size_t more = length > stream->partial_length ? length - stream->partial_length : 0;

	if (more > stream->input_length)
		more = stream->input_length;
	memcpy(stream->partial + stream->partial_length, stream->input, more);
	stream->partial_length += more;
	stream->input += more;
	stream->input_length -= more;
	return stream->partial_length >= length;
}

/* Returns the length of a record with that header, or TLS_FAILED. */
static ssize_t length_of(struct tls_stream *stream, const unsigned char *header)
{
	ssize_t length = tls_record_length(header);

	return length < 0 ? fail(stream, (unsigned char)-length) : length;
}

static ssize_t find_partial(struct tls_stream *stream, const unsigned char **record)
{
	ssize_t length;

	if (!fill(stream, TLS_RECORD_HEADER))
		return TLS_MORE;
	length = length_of(stream, stream->partial);
	if (length < 0)
		return length;
	if (!fill(stream, (size_t)length))
		return TLS_MORE;
	*record = stream->partial;
	return length;
}

/* Finds the next record, all of it; returns its length or a tls_result. */
static ssize_t find_record(struct tls_stream *stream, const unsigned char **record)
{
	ssize_t length;

	if (stream->partial)
		return find_partial(stream, record);
	if (stream->input_length == 0)
		return TLS_MORE;
	if (stream->input_length >= TLS_RECORD_HEADER) {
		length = length_of(stream, stream->input);
		if (length < 0)
			return length;
		if (stream->input_length >= (size_t)length) {
			*record = stream->input;
			stream->input += length;
			stream->input_length -= (size_t)length;
			return length;
		}
	}
	stream->partial = OPENSSL_malloc(TLS_RECORD_WIRE_MAX);
	if (!stream->partial)
		return fail(stream, SSL_AD_INTERNAL_ERROR);
	return find_partial(stream, record);
}

static void drop_partial(struct tls_stream *stream)
{
	OPENSSL_free(stream->partial);
	stream->partial = NULL;
	stream->partial_length = 0;
}

/* --- reading ----------------------------------------------------------------------------------- */

static ssize_t take_alert(struct tls_stream *stream, const unsigned char *content, size_t length)
{
	if (length != 2)
		return fail(stream, length ? SSL_AD_DECODE_ERROR : SSL_AD_UNEXPECTED_MESSAGE);
	if (content[1] == SSL_AD_CLOSE_NOTIFY) {
		stream->ended = true;
		return TLS_ENDED;
	}
	if (content[1] == SSL_AD_USER_CANCELLED)
		return 0;
	stream->failed = stream->theirs = true;
	stream->alert = content[1];
	return TLS_FAILED;
}

/* The client's next record is made with another key, so that nothing may follow in this one. */
static ssize_t take_message(struct tls_stream *stream, const unsigned char *content, size_t length)
{
	unsigned char *message = stream->message;
	size_t begun = stream->message_length, compared;

	if (length == 0 || length > KEY_UPDATE_LENGTH - begun)
		return fail(stream, SSL_AD_UNEXPECTED_MESSAGE);
	memcpy(message + begun, content, length);
	length += begun;
	compared = length < sizeof(key_update) ? length : sizeof(key_update);
	if (memcmp(message, key_update, compared) != 0)
		return fail(stream, message[0] == key_update[0] ? SSL_AD_DECODE_ERROR
								: SSL_AD_UNEXPECTED_MESSAGE);
	stream->message_length = (unsigned char)(length % KEY_UPDATE_LENGTH);
	if (length < KEY_UPDATE_LENGTH)
		return 0;
	if (message[KEY_UPDATE_LENGTH - 1] > SSL_KEY_UPDATE_REQUESTED)
		return fail(stream, SSL_AD_ILLEGAL_PARAMETER);
	if (!tls_key_renew(&stream->in))
		return fail(stream, SSL_AD_INTERNAL_ERROR);
	if (message[KEY_UPDATE_LENGTH - 1] == SSL_KEY_UPDATE_REQUESTED && !stream->said_end &&
	    !change_key(stream))
		return TLS_FAILED;
	return 0;
}

/* Returns bytes of data, a tls_result, or 0 if there are none in the record. */
static ssize_t take_content(struct tls_stream *stream, unsigned char type,
			    const unsigned char *content, size_t length)
{
	if (type == TLS_HANDSHAKE)
		return take_message(stream, content, length);
	/* A message in several records has no others between them (section 5.1). */
	if (stream->message_length > 0)
		return fail(stream, SSL_AD_UNEXPECTED_MESSAGE);
	if (type == TLS_DATA)
		return (ssize_t)length;
	if (type == TLS_ALERT)
		return take_alert(stream, content, length);
	return fail(stream, SSL_AD_UNEXPECTED_MESSAGE);
}

static ssize_t read_record(struct tls_stream *stream, unsigned char *data)
{
	const unsigned char *record;
	unsigned char type = 0;
	ssize_t length = find_record(stream, &record), got;

	if (length < 0)
		return length;
	got = tls_record_open(&stream->in, record, (size_t)length, data, &type);
	if (stream->partial)
		drop_partial(stream);
	if (got < 0)
		return fail(stream, (unsigned char)-got);
	return take_content(stream, type, data, (size_t)got);
}

ssize_t tls_stream_read(struct tls_stream *stream, char *data)
{
	ssize_t got;

	if (stream->failed)
		return TLS_FAILED;
	if (stream->ended)
		return TLS_ENDED;
	while ((got = read_record(stream, (unsigned char *)data)) == 0)
		if (++stream->idle > IDLE_MAX)
			return fail(stream, SSL_AD_UNEXPECTED_MESSAGE);
	if (got > 0)
		stream->idle = 0;
	return got;
}

void tls_stream_feed(struct tls_stream *stream, const char *data, size_t length)
{
	stream->input = (const unsigned char *)data;
	stream->input_length = length;
}

void tls_stream_why(const struct tls_stream *stream, char text[TLS_WHY_MAX])
{
	snprintf(text, TLS_WHY_MAX, "%s%s", stream->theirs ? "the client sent an alert: " : "",
		 SSL_alert_desc_string_long(stream->alert));
}

/* --- opening and closing --------------------------------------------------------------------- */

bool tls_stream_open(struct tls_stream *stream, uint16_t suite, const struct tls_secrets *secrets,
		     struct tls_output *output)
{
	*stream = (struct tls_stream){.output = output};
	if (!tls_key_open(&stream->in, suite, &secrets->client, false))
		return false;
	if (!tls_key_open(&stream->out, suite, &secrets->server, true)) {
		tls_key_close(&stream->in);
		return false;
	}
	stream->out.number = secrets->sealed;
	return true;
}

void tls_stream_close(struct tls_stream *stream)
{
	drop_partial(stream);
	tls_key_close(&stream->in);
	tls_key_close(&stream->out);
}
