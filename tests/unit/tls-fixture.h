/* SPDX-License-Identifier: MIT */
/*
 * tls-fixture.h - certificates that are made for a test, in memory files; and a client by OpenSSL
 * whose bytes the test carries.
 */
#ifndef TLS_FIXTURE_H
#define TLS_FIXTURE_H

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "tls/tls.h"

#include "suite.h"

struct tls_channel;
struct tls_identity;

static inline struct tls_file file_of(const char *name, BIO *contents)
{
	struct tls_file file = {.name = name, .fd = memfd_create(name, MFD_CLOEXEC)};
	char *data;
	long length = BIO_get_mem_data(contents, &data);

	ck_assert_int_ge(file.fd, 0);
	ck_assert_int_eq(write(file.fd, data, (size_t)length), length);
	BIO_free(contents);
	return file;
}

static inline struct tls_file file_with(const char *name, const char *text)
{
	return file_of(name, BIO_new_mem_buf(text, -1));
}

static inline EVP_PKEY *make_key(bool rsa)
{
	EVP_PKEY *key = rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");

	ck_assert_ptr_nonnull(key);
	return key;
}

/* A certificate of that name for the key, by itself. */
static inline X509 *make_certificate(EVP_PKEY *key, const char *name)
{
	X509 *made = X509_new();
	X509_NAME *subject = X509_get_subject_name(made);

	X509_set_version(made, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
	X509_gmtime_adj(X509_getm_notBefore(made), -60);
	X509_gmtime_adj(X509_getm_notAfter(made), 3600);
	X509_set_pubkey(made, key);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1,
				   0);
	X509_set_issuer_name(made, subject);
	ck_assert_int_gt(X509_sign(made, key, EVP_sha256()), 0);
	return made;
}

static inline struct tls_file key_file(EVP_PKEY *key, const char *password)
{
	BIO *memory = BIO_new(BIO_s_mem());

	ck_assert_int_eq(PEM_write_bio_PrivateKey(memory, key, password ? EVP_aes_128_cbc() : NULL,
						  NULL, 0, NULL, (void *)(uintptr_t)password),
			 1);
	return file_of("key.pem", memory);
}

static inline struct tls_file certificate_file(EVP_PKEY *key, const char *name)
{
	BIO *memory = BIO_new(BIO_s_mem());
	X509 *made = make_certificate(key, name);

	ck_assert_int_eq(PEM_write_bio_X509(memory, made), 1);
	X509_free(made);
	return file_of("certificate.pem", memory);
}

static inline struct tls_certificate make_pair(bool rsa, const char *name)
{
	EVP_PKEY *key = make_key(rsa);
	struct tls_certificate made = {.chain = certificate_file(key, name),
				       .key = key_file(key, NULL)};

	EVP_PKEY_free(key);
	return made;
}

static inline void close_certificate(const struct tls_certificate *pair)
{
	close(pair->chain.fd);
	close(pair->key.fd);
}

static inline struct tls_identity *must_open(const struct tls_options *options)
{
	char *why = NULL;
	struct tls_identity *identity = tls_library->identity_open(options, &why);

	ck_assert_msg(identity, "%s", why);
	return identity;
}

/* Opening must fail, with the text in its reason. */
static inline void must_refuse(const struct tls_options *options, const char *text)
{
	char *why = NULL;

	ck_assert_ptr_null(tls_library->identity_open(options, &why));
	ck_assert_msg(why && strstr(why, text), "%s", why ? why : "no reason");
	free(why);
}

/* --- both ends of a connection --------------------------------------------------------------- */

struct ends {
	struct tls_chooser chooser; /* must be first */
	struct tls_identity *usual, *named;
	struct tls_channel *channel;
	SSL_CTX *context;
	SSL *client;
	BIO *to_client, *to_server;
};

static inline const struct tls_identity *choose_end(const struct tls_chooser *chooser,
						    const char *name, size_t length)
{
	const struct ends *ends = (const struct ends *)chooser;

	(void)name;
	return length && ends->named ? ends->named : ends->usual;
}

static inline void open_ends(struct ends *ends, struct tls_identity *usual)
{
	*ends = (struct ends){.chooser.choose = choose_end, .usual = usual};
	ends->channel = tls_library->open(&ends->chooser, -1);
	ck_assert_ptr_nonnull(ends->channel);
	ends->context = SSL_CTX_new(TLS_client_method());
	ends->client = SSL_new(ends->context);
	ends->to_client = BIO_new(BIO_s_mem());
	ends->to_server = BIO_new(BIO_s_mem());
	SSL_set_bio(ends->client, ends->to_client, ends->to_server);
	SSL_set_connect_state(ends->client);
}

static inline void close_ends(struct ends *ends)
{
	/* An end without it makes the client forget its session. */
	SSL_set_shutdown(ends->client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(ends->client);
	SSL_CTX_free(ends->context);
	tls_library->close(ends->channel);
}

static inline bool write_one(struct tls_channel *channel, const void *data, size_t length)
{
	const struct iovec piece = {(void *)(uintptr_t)data, length};

	return tls_library->write(channel, &piece, 1);
}

/* Carries the server's output to the client. */
static inline void carry_to_client(struct ends *ends)
{
	size_t length;
	const char *output = tls_library->output(ends->channel, &length);

	if (length)
		ck_assert_int_eq(BIO_write(ends->to_client, output, (int)length), (int)length);
	tls_library->sent(ends->channel, length);
}

/* Takes what the client has sent, at most most bytes; valid until the next call. */
static inline size_t take_from_client(struct ends *ends, char *data, size_t most)
{
	int length = BIO_read(ends->to_server, data, (int)most);

	return length > 0 ? (size_t)length : 0;
}

/* Performs the handshake, the client's bytes in pieces; returns the server's result. */
static inline int shake(struct ends *ends, size_t piece)
{
	int result = TLS_MORE;
	char data[4096];
	size_t length;

	for (unsigned turns = 0; turns < 10 && result == TLS_MORE; turns++) {
		(void)SSL_do_handshake(ends->client);
		while (result == TLS_MORE && (length = take_from_client(ends, data, piece))) {
			tls_library->feed(ends->channel, data, length);
			result = tls_library->handshake(ends->channel);
		}
		carry_to_client(ends);
	}
	if (result == 0)
		ck_assert_int_eq(SSL_do_handshake(ends->client), 1);
	return result;
}

#endif
