/* SPDX-License-Identifier: MIT */
/*
 * tls-openssl-internal.h - identities and channels by OpenSSL 3.0; private to tls-openssl*.c.
 *
 *   tls-openssl-file.c     reads certificates and keys
 *   tls-openssl-client.c   what programs get to know of a client
 *   tls-openssl-hello.c    what a client wants
 *   tls-openssl-channel.c  the server's end of a connection
 *   tls-openssl.c          identities: certificates and rules; the table
 */
#ifndef SWEET_TLS_OPENSSL_INTERNAL_H
#define SWEET_TLS_OPENSSL_INTERNAL_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tls/tls.h"

struct iovec;
struct tls_channel;
struct tls_records;

#define TLS_CHALLENGE_PROTOCOL "acme-tls/1" /* RFC 8737, section 6.2 */

/* An OCSP response. */
struct tls_staple {
	struct tls_staple *next;
	const X509 *certificate; /* that it is about; the context owns it */
	unsigned char *data;
	int length;
};

struct tls_identity {
	SSL_CTX *context;
	struct tls_staple *staples;
	struct tls_tickets *tickets;
	uint64_t policy;
	bool http2;
	const struct tls_records *records; /* NULL: OpenSSL makes them all */
};

/* --- tls-openssl-file.c --- */

/* Returns a line (free()) about a file: WHAT "NAME": TEXT. */
char *openssl_complaint(const char *what, const struct tls_file *file, const char *text);

/* Gives the identity a certificate, its key and its staple; returns false with *why. */
bool openssl_use_certificate(struct tls_identity *identity,
			     const struct tls_certificate *certificate, char **why);

/*
 * Trusts the certificates of the file to certify clients, and adds their fingerprints to *bound, a
 * digest that is under way.  Returns false with *why.
 */
bool openssl_use_client_ca(SSL_CTX *context, const struct tls_file *file, EVP_MD_CTX *bound,
			   char **why);

/* --- tls-openssl-client.c --- */

/*
 * Returns the variables of tls_library.variables() (free()), and their bytes.  ssl: NULL if the
 * server wants no certificate of the client.
 */
char *openssl_variables(const struct tls_agreed *agreed, const SSL *ssl, size_t *length);

/* --- tls-openssl-hello.c --- */

/* Reads the name of the host (RFC 6066, section 3); returns false if there is none. */
bool openssl_hello_name(SSL *ssl, const char **name, size_t *length);

/* Whether the client speaks nothing but acme-tls/1 (RFC 8737, section 3; RFC 7301, section 3.1). */
bool openssl_hello_wants_answer(SSL *ssl);

/* --- tls-openssl-channel.c --- */

struct tls_channel *openssl_channel_open(const struct tls_chooser *chooser, int socket);
void openssl_channel_close(struct tls_channel *channel);
void openssl_feed(struct tls_channel *channel, const char *data, size_t length);
int openssl_handshake(struct tls_channel *channel);
ssize_t openssl_read(struct tls_channel *channel, char *data);
void openssl_expect(struct tls_channel *channel, size_t length);
bool openssl_write(struct tls_channel *channel, const struct iovec *pieces, unsigned count);
bool openssl_end(struct tls_channel *channel);
const char *openssl_output(const struct tls_channel *channel, size_t *length);
void openssl_sent(struct tls_channel *channel, size_t length);
bool openssl_kernel_sends(const struct tls_channel *channel);
void openssl_agreed(struct tls_channel *channel, struct tls_agreed *agreed);
const char *openssl_channel_variables(struct tls_channel *channel, size_t *length);
void openssl_why(const struct tls_channel *channel, char text[TLS_WHY_MAX]);

/* The client_hello_cb of every context: chooses the identity of the channel. */
int openssl_choose(SSL *ssl, int *alert, void *context);

#endif
