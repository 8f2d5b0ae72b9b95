/* SPDX-License-Identifier: MIT */
/*
 * tls-secrets.h - the traffic secrets of TLS 1.3 and the keys of both ends, which follow from
 * them, noted while OpenSSL performs a handshake.
 */
#ifndef SWEET_TLS_SECRETS_H
#define SWEET_TLS_SECRETS_H

#include <openssl/ssl.h>
#include <stdint.h>

#include "tls/record/tls-record.h"

/* All zero: none yet. */
struct tls_secrets {
	struct tls_traffic client, server;
	uint64_t sealed; /* records that were made with the server's */
};

/* Returns a context whose connections' secrets can be noted, or NULL without memory. */
SSL_CTX *tls_secrets_context(const SSL_METHOD *method);

/* Until the next call, what this thread does for handshakes is noted there; NULL: nowhere. */
void tls_secrets_note(struct tls_secrets *secrets);

#endif
