/* SPDX-License-Identifier: MIT */
/*
 * tls-openssl-client.c - what programs get to know of a channel and its client's certificate, in
 * variables with the names that Apache's module of TLS gave them.
 */
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/x509.h>

#include "tls/tls-openssl-internal.h"
#include "tls/tls.h"

#define VALUE_MAX 1024 /* bytes of a value; a longer one is left out */

/* The variables so far. */
struct variables {
	char *text;
	size_t length;
	bool failed;
};

static void add(struct variables *variables, const char *name, const char *value, size_t length)
{
	size_t before = strlen(name) + 1;
	char *text;

	if (length > VALUE_MAX || memchr(value, '\0', length))
		return;
	text = realloc(variables->text, variables->length + before + length + 1);
	if (!text) {
		variables->failed = true;
		return;
	}
	variables->text = text;
	text += variables->length;
	memcpy(text, name, before - 1);
	text[before - 1] = '=';
	memcpy(text + before, value, length);
	text[before + length] = '\0';
	variables->length += before + length + 1;
}

static void add_text(struct variables *variables, const char *name, const char *value)
{
	add(variables, name, value, strlen(value));
}

/* Adds what was written to the memory BIO, and empties it. */
static void add_written(struct variables *variables, const char *name, BIO *written)
{
	char *value;
	long length = BIO_get_mem_data(written, &value);

	if (length > 0)
		add(variables, name, value, (size_t)length);
	(void)BIO_reset(written);
}

/* As RFC 2253 writes names, with the bytes of UTF-8. */
static void add_name(struct variables *variables, const char *name, const X509_NAME *of,
		     BIO *memory)
{
	if (X509_NAME_print_ex(memory, of, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) >= 0)
		add_written(variables, name, memory);
}

static void add_fingerprint(struct variables *variables, const X509 *certificate)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	char text[2 * EVP_MAX_MD_SIZE + 1];
	unsigned length = 0;

	if (X509_digest(certificate, EVP_sha256(), digest, &length) != 1)
		return;
	for (unsigned i = 0; i < length; i++)
		sprintf(text + 2 * i, "%02x", digest[i]);
	add(variables, "SSL_CLIENT_FINGERPRINT", text, 2 * length);
}

static void add_certificate(struct variables *variables, const X509 *certificate, BIO *memory)
{
	add_name(variables, "SSL_CLIENT_S_DN", X509_get_subject_name(certificate), memory);
	add_name(variables, "SSL_CLIENT_I_DN", X509_get_issuer_name(certificate), memory);
	if (i2a_ASN1_INTEGER(memory, X509_get0_serialNumber(certificate)) > 0)
		add_written(variables, "SSL_CLIENT_M_SERIAL", memory);
	if (ASN1_TIME_print(memory, X509_get0_notBefore(certificate)))
		add_written(variables, "SSL_CLIENT_V_START", memory);
	if (ASN1_TIME_print(memory, X509_get0_notAfter(certificate)))
		add_written(variables, "SSL_CLIENT_V_END", memory);
	add_fingerprint(variables, certificate);
}

char *openssl_variables(const struct tls_agreed *agreed, const SSL *ssl, size_t *length)
{
	const X509 *certificate = ssl ? SSL_get0_peer_certificate(ssl) : NULL;
	struct variables variables = {0};
	BIO *memory = certificate ? BIO_new(BIO_s_mem()) : NULL;

	add_text(&variables, "SSL_PROTOCOL", agreed->version);
	add_text(&variables, "SSL_CIPHER", agreed->cipher);
	/* A certificate that is no good has ended the handshake. */
	if (ssl && SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE)
		add_text(&variables, "SSL_CLIENT_VERIFY", certificate ? "SUCCESS" : "NONE");
	if (memory)
		add_certificate(&variables, certificate, memory);
	BIO_free(memory);
	*length = variables.failed ? 0 : variables.length;
	return variables.text;
}
