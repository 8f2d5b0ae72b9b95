/* SPDX-License-Identifier: MIT */
/*
 * fuzz-tls.c - what a client sends before it is known (sweet/tls/tls-openssl-channel.c): the name
 * that it wants lies within its message, the output is bounded, and an end is final.
 *
 * Input: a byte for the length of the pieces in which the rest comes.
 */
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "tls/tls-openssl-internal.h"
#include "tls/tls.h"

#include "fuzz.h"

#define OUTPUT_MAX (64u << 10)

static struct tls_identity usual, named;

static void make(struct tls_identity *identity, uint64_t policy)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();

	identity->context = SSL_CTX_new(TLS_server_method());
	identity->policy = policy;
	X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
	X509_set_pubkey(certificate, key);
	X509_sign(certificate, key, EVP_sha256());
	MUST(SSL_CTX_use_certificate(identity->context, certificate) == 1);
	MUST(SSL_CTX_use_PrivateKey(identity->context, key) == 1);
	SSL_CTX_set_client_hello_cb(identity->context, openssl_choose, NULL);
	X509_free(certificate);
	EVP_PKEY_free(key);
}

static const struct tls_identity *choose(const struct tls_chooser *chooser, const char *name,
					 size_t length)
{
	volatile char last = 0;

	(void)chooser;
	if (!name)
		return &usual;
	/* All of it is there; it may be anything else. */
	for (size_t i = 0; i < length; i++)
		last = name[i];
	(void)last;
	return length % 2 ? &named : &usual;
}

static struct tls_identity *answer(const struct tls_chooser *chooser, const char *name,
				   size_t length)
{
	MUST(name);
	(void)choose(chooser, name, length);
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct tls_chooser chooser = {choose, answer};
	size_t piece = size ? data[0] + 1u : 1, length;
	struct tls_channel *channel;
	char *copy, why[TLS_WHY_MAX];
	int result = TLS_MORE;

	if (!usual.context) {
		make(&usual, 1);
		make(&named, 2);
	}
	channel = tls_library->open(&chooser, -1);
	MUST(channel);
	for (size_t at = 1; at < size && result == TLS_MORE; at += piece) {
		length = size - at < piece ? size - at : piece;
		copy = exact_copy(data + at, length);
		tls_library->feed(channel, copy, length);
		result = tls_library->handshake(channel);
		free(copy);
		MUST(result == 0 || result == TLS_MORE || result == TLS_FAILED ||
		     result == TLS_ENDED);
		(void)tls_library->output(channel, &length);
		MUST(length <= OUTPUT_MAX);
	}
	/* Without the server's answers, a client cannot complete a handshake. */
	MUST(result != 0);
	tls_library->why(channel, why);
	MUST(memchr(why, '\0', sizeof(why)));
	if (result == TLS_FAILED)
		MUST(!tls_library->write(channel, &(struct iovec){(char[]){"x"}, 1}, 1));
	tls_library->close(channel);
	return 0;
}
