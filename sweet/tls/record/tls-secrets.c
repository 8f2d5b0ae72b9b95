/* SPDX-License-Identifier: MIT */
/*
 * tls-secrets.c - see tls-secrets.h.
 *
 * OpenSSL derives secrets and keys by an algorithm that it looks for by name, with a query of the
 * context.  It finds a provider of ours, which has that algorithm done by OpenSSL's, and notes the
 * result.  (It would also report secrets as lines for a log, but to write those costs 8 % of a
 * handshake.)  And it reports the header of each record that it makes.
 */
#include <openssl/params.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/provider.h>

#include "tls/record/tls-secrets.h"

#define PROVIDER "sweet"

static EVP_KDF *original;
static OSSL_PROVIDER *loaded; /* NULL: no secret is ever noted */
static _Thread_local struct tls_secrets *noted;

/* --- the algorithm ----------------------------------------------------------------------------- */

static bool is(const OSSL_PARAM *label, const char *text)
{
	return label->data_size == strlen(text) && memcmp(label->data, text, label->data_size) == 0;
}

/* Returns what the secret, from which something is derived, belongs to; or NULL. */
static struct tls_traffic *find_traffic(const OSSL_PARAM *secret)
{
	struct tls_traffic *both[] = {&noted->server, &noted->client};

	for (unsigned i = 0; secret && i < 2; i++)
		if (both[i]->length && both[i]->length == secret->data_size &&
		    CRYPTO_memcmp(both[i]->secret, secret->data, secret->data_size) == 0)
			return both[i];
	return NULL;
}

static void note_secret(struct tls_traffic *traffic, const unsigned char *bytes, size_t length)
{
	if (length > sizeof(traffic->secret))
		return;
	memcpy(traffic->secret, bytes, length);
	traffic->length = length;
	traffic->key_length = traffic->iv_length = 0;
	if (traffic == &noted->server)
		noted->sealed = 0;
}

/* Notes the result if it was derived for one of these labels (RFC 8446, sections 7.1 and 7.3). */
static void note(const OSSL_PARAM *label, const OSSL_PARAM *secret, const unsigned char *bytes,
		 size_t length)
{
	struct tls_traffic *traffic;

	if (!label)
		return;
	if (is(label, "c ap traffic")) {
		note_secret(&noted->client, bytes, length);
	} else if (is(label, "s ap traffic")) {
		note_secret(&noted->server, bytes, length);
	} else if (is(label, "key") && length <= TLS_KEY_MAX) {
		traffic = find_traffic(secret);
		if (!traffic)
			return;
		memcpy(traffic->key, bytes, length);
		traffic->key_length = length;
	} else if (is(label, "iv") && length == TLS_IV) {
		traffic = find_traffic(secret);
		if (!traffic)
			return;
		memcpy(traffic->iv, bytes, length);
		traffic->iv_length = length;
	}
}

static void *secrets_new_context(void *provider)
{
	(void)provider;
	return EVP_KDF_CTX_new(original);
}

static void secrets_free_context(void *context)
{
	EVP_KDF_CTX_free(context);
}

static void secrets_reset(void *context)
{
	EVP_KDF_CTX_reset(context);
}

static int secrets_set_parameters(void *context, const OSSL_PARAM parameters[])
{
	return EVP_KDF_CTX_set_params(context, parameters);
}

static const OSSL_PARAM *secrets_settable_parameters(void *context, void *provider)
{
	(void)context;
	(void)provider;
	return EVP_KDF_settable_ctx_params(original);
}

static int secrets_derive(void *context, unsigned char *key, size_t length,
			  const OSSL_PARAM parameters[])
{
	int good = EVP_KDF_derive(context, key, length, parameters);

	if (good == 1 && noted)
		note(OSSL_PARAM_locate_const(parameters, OSSL_KDF_PARAM_LABEL),
		     OSSL_PARAM_locate_const(parameters, OSSL_KDF_PARAM_KEY), key, length);
	return good;
}

/* --- the provider ------------------------------------------------------------------------------ */

static const OSSL_ALGORITHM *secrets_find(void *provider, int operation, int *not_kept)
{
	static const OSSL_DISPATCH functions[] = {
		{OSSL_FUNC_KDF_NEWCTX, (void (*)(void))secrets_new_context},
		{OSSL_FUNC_KDF_FREECTX, (void (*)(void))secrets_free_context},
		{OSSL_FUNC_KDF_RESET, (void (*)(void))secrets_reset},
		{OSSL_FUNC_KDF_SETTABLE_CTX_PARAMS, (void (*)(void))secrets_settable_parameters},
		{OSSL_FUNC_KDF_SET_CTX_PARAMS, (void (*)(void))secrets_set_parameters},
		{OSSL_FUNC_KDF_DERIVE, (void (*)(void))secrets_derive},
		{0, NULL},
	};
	static const OSSL_ALGORITHM algorithms[] = {
		{OSSL_KDF_NAME_TLS1_3_KDF, "provider=" PROVIDER, functions, NULL},
		{NULL, NULL, NULL, NULL},
	};

	(void)provider;
	*not_kept = 0;
	return operation == OSSL_OP_KDF ? algorithms : NULL;
}

static int secrets_begin(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in,
			 const OSSL_DISPATCH **out, void **provider)
{
	static const OSSL_DISPATCH functions[] = {
		{OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))secrets_find}, {0, NULL}};
	static int anything;

	(void)handle;
	(void)in;
	*out = functions;
	*provider = &anything;
	return 1;
}

static void secrets_load(void)
{
	original = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_TLS1_3_KDF, "provider!=" PROVIDER);
	if (original && OSSL_PROVIDER_add_builtin(NULL, PROVIDER, secrets_begin) == 1)
		loaded = OSSL_PROVIDER_try_load(NULL, PROVIDER, 1);
}

/* --- contexts ---------------------------------------------------------------------------------- */

/* The msg_callback. */
static void count_records(int written, int version, int type, const void *data, size_t length,
			  SSL *ssl, void *context)
{
	(void)version;
	(void)data;
	(void)length;
	(void)ssl;
	(void)context;
	if (written && type == SSL3_RT_HEADER && noted)
		noted->sealed++;
}

SSL_CTX *tls_secrets_context(const SSL_METHOD *method)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	SSL_CTX *context;

	pthread_once(&once, secrets_load);
	context = SSL_CTX_new_ex(NULL, loaded ? "?provider=" PROVIDER : NULL, method);
	if (context)
		SSL_CTX_set_msg_callback(context, count_records);
	return context;
}

void tls_secrets_note(struct tls_secrets *secrets)
{
	noted = secrets;
}
