/* SPDX-License-Identifier: MIT */
/*
 * tls-openssl-secrets.h - the secrets of TLS 1.3 from which the keys of both ends follow, as OpenSSL
 * reports them while it performs a handshake.
 */
#ifndef SWEET_TLS_OPENSSL_SECRETS_H
#define SWEET_TLS_OPENSSL_SECRETS_H

#include <openssl/ssl.h>

#include "tls/tls-openssl-record.h"

struct tls_secrets {
	unsigned char client[TLS_SECRET_MAX], server[TLS_SECRET_MAX];
	size_t client_length, server_length;
	uint64_t sealed; /* records that were made with the server's */
};

/* Call it once for each context: its connections keep their secrets. */
void openssl_secrets_keep(SSL_CTX *context);

/* Returns NULL if the handshake is not over, without memory, or before TLS 1.3. */
const struct tls_secrets *openssl_secrets(const SSL *ssl);

#endif
