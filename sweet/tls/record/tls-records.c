/* SPDX-License-Identifier: MIT */
/*
 * tls-records.c - the table of tls/tls-records.h, by the sources of this folder:
 *
 *   tls-memory.c   where OpenSSL gets its memory
 *   tls-secrets.c  the secrets that a handshake of TLS 1.3 has agreed
 *   tls-record.c   records, by OpenSSL's ciphers
 *   tls-stream.c   what the ends send each other after the handshake
 */
#include <openssl/crypto.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tls/record/tls-memory.h"
#include "tls/record/tls-secrets.h"
#include "tls/record/tls-stream.h"
#include "tls/tls-records.h"

static struct tls_secrets *records_begin(void)
{
	return calloc(1, sizeof(struct tls_secrets));
}

static void records_drop(struct tls_secrets *secrets)
{
	if (secrets)
		OPENSSL_cleanse(secrets, sizeof(*secrets));
	free(secrets);
}

static struct tls_stream *records_open(uint16_t suite, const struct tls_secrets *secrets,
				       struct tls_output *output)
{
	struct tls_stream *stream = malloc(sizeof(*stream));

	if (stream && !tls_stream_open(stream, suite, secrets, output)) {
		free(stream);
		return NULL;
	}
	return stream;
}

static void records_close(struct tls_stream *stream)
{
	if (stream)
		tls_stream_close(stream);
	free(stream);
}

static const struct tls_records records = {
	.init = tls_memory_init,
	.context = tls_secrets_context,
	.begin = records_begin,
	.drop = records_drop,
	.note = tls_secrets_note,
	.open = records_open,
	.close = records_close,
	.feed = tls_stream_feed,
	.read = tls_stream_read,
	.write = tls_stream_write,
	.end = tls_stream_end,
	.why = tls_stream_why,
};

const struct tls_records *const tls_records = &records;
