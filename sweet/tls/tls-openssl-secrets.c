/* SPDX-License-Identifier: MIT */
/*
 * tls-openssl-secrets.c - see tls-openssl-secrets.h.
 *
 * OpenSSL reports secrets as lines for a log, each when the key that follows from it is put to use;
 * and the header of each record before that is sent.  Together they say how many records were made
 * with a key.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "tls/tls-openssl-secrets.h"

#define RANDOM 64u /* digits of the client's random number, which names the connection in a log */

static int slot = -1;

/* The CRYPTO_EX_free() of a connection. */
static void free_secrets(void *ssl, void *data, CRYPTO_EX_DATA *all, int index, long number,
			 void *pointer)
{
	(void)ssl;
	(void)all;
	(void)index;
	(void)number;
	(void)pointer;
	if (data)
		OPENSSL_cleanse(data, sizeof(struct tls_secrets));
	free(data);
}

static void make_slot(void)
{
	slot = SSL_get_ex_new_index(0, NULL, NULL, NULL, free_secrets);
}

static struct tls_secrets *secrets_of(const SSL *ssl)
{
	struct tls_secrets *secrets = SSL_get_ex_data(ssl, slot);

	if (secrets)
		return secrets;
	secrets = calloc(1, sizeof(*secrets));
	if (secrets && SSL_set_ex_data((SSL *)(uintptr_t)ssl, slot, secrets) != 1) {
		free(secrets);
		secrets = NULL;
	}
	return secrets;
}

/* Reads the rest of a line, and returns the length of the secret, or 0. */
static size_t read_secret(const char *rest, unsigned char secret[TLS_SECRET_MAX])
{
	size_t length;

	if (strlen(rest) <= RANDOM + 1 ||
	    OPENSSL_hexstr2buf_ex(secret, TLS_SECRET_MAX, &length, rest + RANDOM + 1, '\0') != 1)
		return 0;
	return length;
}

static const char *after(const char *line, const char *label)
{
	size_t length = strlen(label);

	return strncmp(line, label, length) == 0 ? line + length : NULL;
}

static void take_line(const SSL *ssl, const char *line)
{
	const char *client = after(line, "CLIENT_TRAFFIC_SECRET_0 ");
	const char *server = after(line, "SERVER_TRAFFIC_SECRET_0 ");
	struct tls_secrets *secrets = client || server ? secrets_of(ssl) : NULL;

	if (!secrets)
		return;
	if (client) {
		secrets->client_length = read_secret(client, secrets->client);
	} else {
		secrets->server_length = read_secret(server, secrets->server);
		secrets->sealed = 0;
	}
}

/* The msg_callback. */
static void count_records(int written, int version, int type, const void *data, size_t length,
			  SSL *ssl, void *context)
{
	struct tls_secrets *secrets;

	(void)version;
	(void)data;
	(void)length;
	(void)context;
	if (!written || type != SSL3_RT_HEADER)
		return;
	secrets = SSL_get_ex_data(ssl, slot);
	if (secrets)
		secrets->sealed++;
}

void openssl_secrets_keep(SSL_CTX *context)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_slot);
	SSL_CTX_set_keylog_callback(context, take_line);
	SSL_CTX_set_msg_callback(context, count_records);
}

const struct tls_secrets *openssl_secrets(const SSL *ssl)
{
	const struct tls_secrets *secrets = SSL_get_ex_data(ssl, slot);

	return secrets && secrets->client_length && secrets->server_length ? secrets : NULL;
}
