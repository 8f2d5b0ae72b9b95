/* SPDX-License-Identifier: MIT */
/*
 * tls-records.h - who makes and reads the records of TLS 1.3 after the handshake, instead of
 * OpenSSL: a table of functions, or none.  tls/record/ has the one of this project.
 *
 * OpenSSL can do all that it does, and does where it is not wanted: with "tls-records=openssl", in a
 * build with --disable-tls-records, and for a handshake that it cannot take over.
 */
#ifndef SWEET_TLS_RECORDS_H
#define SWEET_TLS_RECORDS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tls/tls.h"

struct iovec;
struct tls_output;
struct tls_secrets;
struct tls_stream;

struct tls_records {
	/* Call it once, before any other function of OpenSSL. */
	void (*init)(void);

	/* Returns a context whose handshakes can be taken over, or NULL without memory. */
	SSL_CTX *(*context)(const SSL_METHOD *method);

	/* For the secrets of one handshake; NULL without memory. */
	struct tls_secrets *(*begin)(void);
	void (*drop)(struct tls_secrets *secrets); /* may be NULL */

	/* Until the next call, what this thread does for handshakes is noted there; NULL: nowhere. */
	void (*note)(struct tls_secrets *secrets);

	/*
	 * After a handshake: begins with the secrets of a suite (its number, RFC 8446, appendix
	 * B.4).  Records are added to the output, which must exist as long.  Returns NULL without
	 * memory, or if it cannot.
	 */
	struct tls_stream *(*open)(uint16_t suite, const struct tls_secrets *secrets,
				   struct tls_output *output);
	void (*close)(struct tls_stream *stream); /* may be NULL */

	/* These do what the functions of struct tls_library do. */
	void (*feed)(struct tls_stream *stream, const char *data, size_t length);
	ssize_t (*read)(struct tls_stream *stream, char *data);
	bool (*write)(struct tls_stream *stream, const struct iovec *pieces, unsigned count);
	void (*end)(struct tls_stream *stream);
	void (*why)(const struct tls_stream *stream, char text[TLS_WHY_MAX]);
};

/* NULL: this build has none. */
extern const struct tls_records *const tls_records;

#endif
