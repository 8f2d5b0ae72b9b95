/* SPDX-License-Identifier: MIT */
/*
 * tls-openssl-file.c - reads PEM files: certificates with those that certify them, keys without a
 * password, and the certificates that clients' ones must be certified by.
 */
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>

#include "tls/tls-openssl-internal.h"
#include "tls/tls.h"

#define FILE_MAX (1u << 20) /* bytes; lists of authorities have some 200 KB */

char *openssl_complaint(const char *what, const struct tls_file *file, const char *text)
{
	char *line = NULL;

	if (asprintf(&line, "%s \"%s\": %s", what, file->name, text) < 0)
		return NULL;
	return line;
}

/* Returns the contents as a memory BIO, which erases them at its end; NULL with *why. */
static BIO *contents(const char *what, const struct tls_file *file, char **why)
{
	BIO *memory = BIO_new(BIO_s_secmem());
	char part[4096];
	off_t at = 0;
	ssize_t got;

	while (memory && (got = pread(file->fd, part, sizeof(part), at)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		at += got;
		if (got > 0 && at <= FILE_MAX && BIO_write(memory, part, (int)got) == (int)got)
			continue;
		*why = openssl_complaint(what, file,
					 got < 0	 ? strerror(errno)
					 : at > FILE_MAX ? "is longer than 1 MB"
							 : "no memory");
		BIO_free(memory);
		memory = NULL;
	}
	OPENSSL_cleanse(part, sizeof(part));
	if (!memory && !*why)
		*why = openssl_complaint(what, file, "no memory");
	return memory;
}

/* A server cannot ask for a password; sets *asked: the key needs one. */
static int no_password(char *text, int room, int writing, void *asked)
{
	(void)text;
	(void)room;
	(void)writing;
	*(bool *)asked = true;
	return -1;
}

static EVP_PKEY *read_key(const struct tls_file *file, char **why)
{
	BIO *memory = contents("key", file, why);
	bool asked = false;
	EVP_PKEY *key;

	if (!memory)
		return NULL;
	key = PEM_read_bio_PrivateKey(memory, NULL, no_password, &asked);
	if (!key)
		*why = openssl_complaint(
			"key", file,
			asked ? "is encrypted: store it without a password, readable for the "
				"server alone (openssl pkey -in OLD -out NEW)"
			      : "has no private key in PEM form");
	BIO_free(memory);
	return key;
}

/* Adds the certificates behind the first one, which certify it. */
static bool add_chain(SSL_CTX *context, BIO *memory)
{
	X509 *next;

	while ((next = PEM_read_bio_X509(memory, NULL, NULL, NULL)))
		if (SSL_CTX_add0_chain_cert(context, next) != 1) {
			X509_free(next);
			return false;
		}
	/* The end of the file, or text that is not a certificate. */
	return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
}

/* Whether the context has a certificate with a key of the same kind, which a second would replace. */
static bool has_kind(SSL_CTX *context, X509 *certificate)
{
	int kind = EVP_PKEY_get_base_id(X509_get0_pubkey(certificate));
	bool found = false;

	for (long more = SSL_CTX_set_current_cert(context, SSL_CERT_SET_FIRST); more && !found;
	     more = SSL_CTX_set_current_cert(context, SSL_CERT_SET_NEXT))
		found = EVP_PKEY_get_base_id(X509_get0_pubkey(SSL_CTX_get0_certificate(context))) ==
			kind;
	return found;
}

static const char *use_chain(SSL_CTX *context, BIO *memory)
{
	X509 *first = PEM_read_bio_X509_AUX(memory, NULL, NULL, NULL);
	const char *wrong = NULL;

	if (!first)
		return "has no certificate in PEM form";
	if (!X509_get0_pubkey(first))
		wrong = "has a key of an unknown kind";
	else if (has_kind(context, first))
		wrong = "has a key of the same kind as another certificate of the list";
	else if (SSL_CTX_use_certificate(context, first) != 1)
		wrong = ERR_reason_error_string(ERR_peek_last_error());
	else if (!add_chain(context, memory))
		wrong = "has a broken certificate behind the first one";
	X509_free(first);
	return wrong;
}

/* Returns the bytes of the response, if clients could use it; NULL with *why. */
static unsigned char *read_staple(const struct tls_file *file, int *length, char **why)
{
	BIO *memory = contents("ocsp-staple", file, why);
	OCSP_RESPONSE *response = memory ? d2i_OCSP_RESPONSE_bio(memory, NULL) : NULL;
	unsigned char *data = NULL;

	if (response && OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL)
		*length = i2d_OCSP_RESPONSE(response, &data);
	if (memory && !data)
		*why = openssl_complaint("ocsp-staple", file,
					 response ? "is not the response to a good request"
						  : "has no OCSP response in DER form");
	OCSP_RESPONSE_free(response);
	BIO_free(memory);
	return data;
}

static bool use_staple(struct tls_identity *identity, const struct tls_file *file, char **why)
{
	struct tls_staple *staple = calloc(1, sizeof(*staple));

	if (!staple)
		return false;
	staple->next = identity->staples;
	identity->staples = staple;
	staple->certificate = SSL_CTX_get0_certificate(identity->context);
	staple->data = read_staple(file, &staple->length, why);
	return staple->data != NULL;
}

bool openssl_use_certificate(struct tls_identity *identity,
			     const struct tls_certificate *certificate, char **why)
{
	SSL_CTX *context = identity->context;
	BIO *memory = contents("certificate", &certificate->chain, why);
	EVP_PKEY *key;
	const char *wrong;

	if (!memory)
		return false;
	ERR_clear_error();
	wrong = use_chain(context, memory);
	BIO_free(memory);
	if (wrong) {
		*why = openssl_complaint("certificate", &certificate->chain, wrong);
		return false;
	}
	key = read_key(&certificate->key, why);
	if (!key)
		return false;
	if (SSL_CTX_use_PrivateKey(context, key) != 1 || SSL_CTX_check_private_key(context) != 1)
		*why = openssl_complaint("key", &certificate->key,
					 "does not belong to the certificate of its place in the "
					 "list");
	EVP_PKEY_free(key);
	if (!*why && certificate->staple.name)
		return use_staple(identity, &certificate->staple, why);
	return !*why;
}

static bool trust(SSL_CTX *context, X509 *authority, EVP_MD_CTX *bound)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned length;

	return X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority) == 1 &&
	       SSL_CTX_add_client_CA(context, authority) == 1 &&
	       X509_digest(authority, EVP_sha256(), digest, &length) == 1 &&
	       EVP_DigestUpdate(bound, digest, length) == 1;
}

bool openssl_use_client_ca(SSL_CTX *context, const struct tls_file *file, EVP_MD_CTX *bound,
			   char **why)
{
	BIO *memory = contents("client-ca", file, why);
	unsigned count = 0;
	X509 *authority;

	if (!memory)
		return false;
	while (!*why && (authority = PEM_read_bio_X509(memory, NULL, NULL, NULL))) {
		count++;
		if (!trust(context, authority, bound))
			*why = openssl_complaint("client-ca", file,
						 "has a certificate that cannot be used");
		X509_free(authority);
	}
	BIO_free(memory);
	if (!*why && count == 0)
		*why = openssl_complaint("client-ca", file, "has no certificate in PEM form");
	return !*why;
}
