/* SPDX-License-Identifier: MIT */
/*
 * tls-stream.h - what the ends of a connection with TLS 1.3 send each other after the
 * handshake: data, alerts, and changes of keys.
 */
#ifndef SWEET_TLS_STREAM_H
#define SWEET_TLS_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tls/record/tls-record.h"
#include "tls/tls.h"

struct iovec;
struct tls_output;
struct tls_secrets;

struct tls_stream {
	struct tls_key in, out;
	struct tls_output *output;
	const unsigned char *input; /* the caller's; not read yet */
	size_t input_length;
	unsigned char *partial; /* of a record that has come in part; NULL: none */
	size_t partial_length;
	unsigned char message[5]; /* of a key update that has come in part */
	unsigned char message_length;
	unsigned char idle;  /* records without data that have come one after the other */
	unsigned char alert; /* why it failed */
	bool failed;
	bool theirs; /* the client sent that alert */
	bool ended;  /* the client has said that nothing follows */
	bool said_end;
};

/*
 * Begins with the secrets of a suite.  Records are added to the output, which must exist as long.
 * Returns false without memory, or if the suite is unknown.
 */
bool tls_stream_open(struct tls_stream *stream, uint16_t suite, const struct tls_secrets *secrets,
		     struct tls_output *output);
void tls_stream_close(struct tls_stream *stream);

/* These do what the functions of struct tls_library do. */
void tls_stream_feed(struct tls_stream *stream, const char *data, size_t length);
ssize_t tls_stream_read(struct tls_stream *stream, char *data);
bool tls_stream_write(struct tls_stream *stream, const struct iovec *pieces, unsigned count);
void tls_stream_end(struct tls_stream *stream);
void tls_stream_why(const struct tls_stream *stream, char text[TLS_WHY_MAX]);

#endif
