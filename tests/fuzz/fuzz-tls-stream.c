/* SPDX-License-Identifier: MIT */
/*
 * fuzz-tls-stream.c - what a client sends after the handshake (sweet/tls/stream.c), who
 * has the keys: the server gets the data of the records that came before the first bad one, never
 * more, and an end is final.
 *
 * Input: a byte for the length of the pieces in which the records come; then for each its type (0:
 * raw bytes instead of a record), two bytes for its length, and its content.
 */
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "tls/tls-output.h"
#include "tls/record/tls-record.h"
#include "tls/record/tls-secrets.h"
#include "tls/record/tls-stream.h"
#include "tls/tls.h"

#include "fuzz.h"

#define SUITE 0x1301
#define OUTPUT_MAX (256u << 10)

static const struct tls_secrets secrets = {.client = {"client", .length = 32},
					   .server = {"server", .length = 32}};

static unsigned char wire[1 << 18];

/* Writes what the client sends; returns its length, and that of the data in it. */
static size_t make_wire(struct input *input, size_t *data_length)
{
	struct tls_key key;
	size_t length = 0;

	MUST(tls_key_open(&key, SUITE, &secrets.client, true));
	*data_length = 0;
	while (input->left) {
		unsigned type = (unsigned)input_number(input, 1);
		size_t content_length = (size_t)input_number(input, 2) % (TLS_RECORD_MAX + 1);
		const uint8_t *content = input_bytes(input, &content_length);
		const struct iovec piece = {(void *)(uintptr_t)content, content_length};

		if (length + content_length + TLS_RECORD_MORE > sizeof(wire))
			break;
		if (type == 0) {
			memcpy(wire + length, content, content_length);
			length += content_length;
			continue;
		}
		length += tls_record_seal(&key, (enum tls_content)type, &piece, 1, wire + length);
		if (type == TLS_DATA)
			*data_length += content_length;
		/* As a client does after a key update. */
		if (type == TLS_HANDSHAKE)
			MUST(tls_key_renew(&key));
	}
	tls_key_close(&key);
	return length;
}

static void check_end(struct tls_stream *stream, ssize_t result)
{
	char why[TLS_WHY_MAX], data[TLS_READ_ROOM];

	MUST(tls_stream_read(stream, data) == result);
	tls_stream_why(stream, why);
	MUST(memchr(why, '\0', sizeof(why)));
	MUST(tls_stream_write(stream, &(struct iovec){(char[]){"x"}, 1}, 1) ==
	     (result != TLS_FAILED));
	tls_stream_end(stream);
	MUST(!tls_stream_write(stream, &(struct iovec){(char[]){"x"}, 1}, 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	size_t piece = 1 + (size_t)input_number(&input, 1) * 8, data_length, got_length = 0;
	size_t length = make_wire(&input, &data_length);
	struct tls_output output = {0};
	struct tls_stream stream;
	ssize_t result = TLS_MORE;

	MUST(tls_stream_open(&stream, SUITE, &secrets, &output));
	for (size_t at = 0; at < length && result == TLS_MORE; at += piece) {
		size_t now = length - at < piece ? length - at : piece;
		char *copy = exact_copy(wire + at, now);
		char *got = exact_copy(wire, TLS_READ_ROOM);

		tls_stream_feed(&stream, copy, now);
		while ((result = tls_stream_read(&stream, got)) > 0)
			got_length += (size_t)result;
		free(copy);
		free(got);
		MUST(result == TLS_MORE || result == TLS_FAILED || result == TLS_ENDED);
		MUST(got_length <= data_length);
		MUST(output.to - output.from <= OUTPUT_MAX);
	}
	check_end(&stream, result);
	tls_stream_close(&stream);
	tls_output_free(&output);
	return 0;
}
