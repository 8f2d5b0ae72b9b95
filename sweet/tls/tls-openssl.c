/* SPDX-License-Identifier: MIT */
/*
 * tls-openssl.c - identities by OpenSSL, and its table of functions.
 *
 * Protocols and ciphers are those that Mozilla recommends (Server Side TLS, version 5.7).  So are
 * groups for key exchange, unless OpenSSL knows better ones: its own choice changes with what is known.
 * AES with 128 bits is preferred, which costs the least; but a client that prefers ChaCha20, since
 * its processor has no instructions for AES, gets that.
 */
#include <openssl/crypto.h>
#include <openssl/params.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "tls/tls-openssl-internal.h"
#include "tls/tls-records.h"
#include "tls/tls-tickets.h"
#include "tls/tls.h"

#define INTERMEDIATE                                                                               \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"                               \
	"ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"                               \
	"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:"                               \
	"DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:DHE-RSA-CHACHA20-POLY1305"
#define SUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS "X25519:P-256:P-384"
#define BETTER_GROUP "X25519MLKEM768" /* OpenSSL 3.5 */

/* --- an identity and its context -------------------------------------------------------- */

/* The CRYPTO_EX_free() of the context: handshakes use the identity as long as the context exists. */
static void free_identity(void *context, void *data, CRYPTO_EX_DATA *all, int index, long number,
			  void *pointer)
{
	struct tls_identity *identity = data;

	(void)context;
	(void)all;
	(void)index;
	(void)number;
	(void)pointer;
	while (identity && identity->staples) {
		struct tls_staple *staple = identity->staples;

		identity->staples = staple->next;
		OPENSSL_free(staple->data);
		free(staple);
	}
	free(identity);
}

static int slot = -1;

static void make_slot(void)
{
	slot = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_identity);
}

static const struct tls_identity *identity_of(const SSL *ssl)
{
	return SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), slot);
}

/* --- session tickets ------------------------------------------------------------------- */

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_BOOTTIME, &time);
	return (uint64_t)time.tv_sec;
}

/* Gives OpenSSL the key that encrypts and authenticates a ticket; 1: good, -1: failure. */
static int use_key(const struct tls_ticket_key *key, const unsigned char *iv,
		   EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int encrypt)
{
	OSSL_PARAM digest[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
		OSSL_PARAM_construct_end()};
	bool good = EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, iv, encrypt) &&
		    EVP_MAC_init(mac, key->mac, sizeof(key->mac), digest);

	return good ? 1 : -1;
}

/* 0: the ticket's key does not exist any more; 2: use the ticket, and send a new one. */
static int ticket_key(SSL *ssl, unsigned char *openssl_name, unsigned char *iv,
		      EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int encrypt)
{
	const struct tls_identity *identity = identity_of(ssl);
	struct tls_ticket_key key, latest;
	int result;

	tls_tickets_current(identity->tickets, now(), &latest);
	if (encrypt) {
		memcpy(openssl_name, latest.name, TLS_TICKET_NAME);
		result = RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) == 1
				 ? use_key(&latest, iv, cipher, mac, 1)
				 : -1;
	} else if (!tls_tickets_find(identity->tickets, now(), openssl_name, &key)) {
		result = 0;
	} else {
		result = use_key(&key, iv, cipher, mac, 0);
		/* A client uses a ticket of TLS 1.3 once (RFC 8446, appendix C.4). */
		if (result == 1 && (SSL_version(ssl) == TLS1_3_VERSION ||
				    memcmp(key.name, latest.name, TLS_TICKET_NAME) != 0))
			result = 2;
		OPENSSL_cleanse(&key, sizeof(key));
	}
	OPENSSL_cleanse(&latest, sizeof(latest));
	return result;
}

/* --- what is agreed in a handshake --------------------------------------------------------- */

/* Without a protocol that both know, the handshake fails (RFC 7301, section 3.2). */
static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_length,
			   const unsigned char *offered, unsigned offered_length, void *context)
{
	static const unsigned char all[] = "\x02h2\x08http/1.1\x08http/1.0";
	unsigned from = identity_of(ssl)->http2 ? 0 : strlen("\x02h2");

	(void)context;
	if (SSL_select_next_proto((unsigned char **)(uintptr_t)chosen, chosen_length, all + from,
				  sizeof(all) - 1 - from, offered,
				  offered_length) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

/* For a client that openssl_choose() gave the answer to a challenge: it offers nothing else. */
static int confirm_challenge(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_length,
			     const unsigned char *offered, unsigned offered_length, void *context)
{
	(void)ssl;
	(void)offered_length;
	(void)context;
	*chosen = offered + 1;
	*chosen_length = offered[0];
	return SSL_TLSEXT_ERR_OK;
}

/* openssl_choose() has used the name already: this confirms it (RFC 6066, section 3). */
static int confirm_name(SSL *ssl, int *alert, void *context)
{
	(void)alert;
	(void)context;
	return SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name) ? SSL_TLSEXT_ERR_OK
								  : SSL_TLSEXT_ERR_NOACK;
}

/* Sends the response about the certificate that was chosen (RFC 6066, section 8). */
static int add_staple(SSL *ssl, void *context)
{
	const struct tls_identity *identity = identity_of(ssl);
	const struct tls_staple *staple = identity->staples;
	unsigned char *copy;

	(void)context;
	while (staple && staple->certificate != SSL_get_certificate(ssl))
		staple = staple->next;
	copy = staple ? OPENSSL_memdup(staple->data, (size_t)staple->length) : NULL;
	if (!copy)
		return SSL_TLSEXT_ERR_NOACK;
	/* OpenSSL frees it. */
	SSL_set_tlsext_status_ocsp_resp(ssl, copy, staple->length);
	return SSL_TLSEXT_ERR_OK;
}

static bool knows_better_groups;

static void look_for_groups(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	knows_better_groups = context && SSL_CTX_set1_groups_list(context, BETTER_GROUP) == 1;
	SSL_CTX_free(context);
	ERR_clear_error();
}

static bool set_groups(SSL_CTX *context, const char *groups, char **why)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look_for_groups);
	if (!groups)
		return knows_better_groups || SSL_CTX_set1_groups_list(context, GROUPS) == 1;
	/* OpenSSL 3.5 takes a list of nothing as well. */
	if (groups[strspn(groups, ":")] && SSL_CTX_set1_groups_list(context, groups) == 1)
		return true;
	if (asprintf(why, "tls-groups \"%s\": OpenSSL %s does not know all of them, or %s", groups,
		     OpenSSL_version(OPENSSL_FULL_VERSION_STRING), "one is there twice") < 0)
		*why = NULL;
	return false;
}

static bool set_rules(SSL_CTX *context, enum tls_profile profile)
{
	SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
					     SSL_OP_CIPHER_SERVER_PREFERENCE |
					     SSL_OP_PRIORITIZE_CHACHA);
	/* A channel that waits has no buffers; its output moves when it grows. */
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_dh_auto(context, 1);
	SSL_CTX_set_client_hello_cb(context, openssl_choose, NULL);
	SSL_CTX_set_tlsext_servername_callback(context, confirm_name);
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	SSL_CTX_set_tlsext_status_cb(context, add_staple);
	return SSL_CTX_set_min_proto_version(context, profile == TLS_MODERN ? TLS1_3_VERSION
									    : TLS1_2_VERSION) &&
	       SSL_CTX_set_cipher_list(context, INTERMEDIATE) &&
	       SSL_CTX_set_ciphersuites(context, SUITES) && SSL_CTX_set_max_early_data(context, 0);
}

static bool set_tickets(struct tls_identity *identity, struct tls_tickets *tickets)
{
	identity->tickets = tickets;
	if (!tickets) {
		SSL_CTX_set_options(identity->context, SSL_OP_NO_TICKET);
		return SSL_CTX_set_num_tickets(identity->context, 0) == 1;
	}
	SSL_CTX_set_timeout(identity->context, TLS_TICKET_LIFETIME);
	return SSL_CTX_set_tlsext_ticket_key_evp_cb(identity->context, ticket_key) == 1;
}

static bool set_client(SSL_CTX *context, const struct tls_options *options, EVP_MD_CTX *bound,
		       char **why)
{
	int mode = SSL_VERIFY_PEER;

	if (options->client == TLS_CLIENT_NONE)
		return true;
	if (options->client == TLS_CLIENT_REQUIRED)
		mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(context, mode, NULL);
	return openssl_use_client_ca(context, &options->client_ca, bound, why);
}

/* --- identities ---------------------------------------------------------------------------- */

static bool end_digest(EVP_MD_CTX *of, unsigned char digest[EVP_MAX_MD_SIZE], unsigned *length)
{
	EVP_MD_CTX *copy = EVP_MD_CTX_new();
	bool good = copy && EVP_MD_CTX_copy_ex(copy, of) == 1 &&
		    EVP_DigestFinal_ex(copy, digest, length) == 1;

	EVP_MD_CTX_free(copy);
	return good;
}

/*
 * A session is resumed only where its client would have had to show the same: below the same name,
 * with the same rules for clients.
 */
static bool bind_sessions(struct tls_identity *identity, EVP_MD_CTX *bound,
			  const struct tls_options *options)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned length = 0;
	unsigned char rules[] = {(unsigned char)options->profile, (unsigned char)options->client};

	if (EVP_DigestUpdate(bound, rules, sizeof(rules)) != 1 ||
	    !end_digest(bound, digest, &length))
		return false;
	memcpy(&identity->policy, digest, sizeof(identity->policy));
	return EVP_DigestUpdate(bound, options->name, strlen(options->name)) == 1 &&
	       end_digest(bound, digest, &length) &&
	       SSL_CTX_set_session_id_context(identity->context, digest, length) == 1;
}

static bool set_up(struct tls_identity *identity, const struct tls_options *options,
		   EVP_MD_CTX *bound, char **why)
{
	SSL_CTX *context = identity->context;

	identity->http2 = options->http2;
	if (!set_rules(context, options->profile) || !set_groups(context, options->groups, why) ||
	    !set_tickets(identity, options->tickets) ||
	    EVP_DigestInit_ex(bound, EVP_sha256(), NULL) != 1)
		return false;
	for (unsigned i = 0; i < options->certificate_count; i++)
		if (!openssl_use_certificate(identity, &options->certificates[i], why))
			return false;
	if (options->challenge)
		SSL_CTX_set_alpn_select_cb(context, confirm_challenge, NULL);
	return set_client(context, options, bound, why) && bind_sessions(identity, bound, options);
}

static void openssl_identity_close(struct tls_identity *identity)
{
	if (identity)
		SSL_CTX_free(identity->context);
}

static SSL_CTX *context_new(const struct tls_records *records)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT, records_once = PTHREAD_ONCE_INIT;

	if (records)
		pthread_once(&records_once, records->init);
	pthread_once(&once, make_slot);
	return records ? records->context(TLS_server_method()) : SSL_CTX_new(TLS_server_method());
}

/* Returns an identity with a context that owns it. */
static struct tls_identity *identity_new(bool own_records)
{
	struct tls_identity *identity = calloc(1, sizeof(*identity));

	if (identity) {
		identity->records = own_records ? tls_records : NULL;
		identity->context = context_new(identity->records);
	}
	if (identity && identity->context &&
	    SSL_CTX_set_ex_data(identity->context, slot, identity) == 1)
		return identity;
	if (identity)
		SSL_CTX_free(identity->context);
	free(identity);
	return NULL;
}

static struct tls_identity *openssl_identity_open(const struct tls_options *options, char **why)
{
	struct tls_identity *identity = identity_new(options->own_records);
	EVP_MD_CTX *bound = EVP_MD_CTX_new();

	*why = NULL;
	if (!identity || !bound || !set_up(identity, options, bound, why)) {
		unsigned long code = ERR_peek_last_error();
		const char *text = code ? ERR_reason_error_string(code) : NULL;

		if (!*why)
			*why = strdup(text ? text : "OpenSSL: no memory");
		openssl_identity_close(identity);
		identity = NULL;
	}
	EVP_MD_CTX_free(bound);
	ERR_clear_error();
	return identity;
}

static uint64_t openssl_policy(const struct tls_identity *identity)
{
	return identity->policy;
}

static const char *openssl_name(void)
{
	return OpenSSL_version(OPENSSL_FULL_VERSION_STRING);
}

static bool openssl_can_make_records(void)
{
	return tls_records;
}

static const struct tls_library openssl = {
	.name = openssl_name,
	.can_make_records = openssl_can_make_records,
	.identity_open = openssl_identity_open,
	.identity_close = openssl_identity_close,
	.policy = openssl_policy,
	.open = openssl_channel_open,
	.close = openssl_channel_close,
	.feed = openssl_feed,
	.handshake = openssl_handshake,
	.read = openssl_read,
	.expect = openssl_expect,
	.write = openssl_write,
	.end = openssl_end,
	.output = openssl_output,
	.sent = openssl_sent,
	.kernel_sends = openssl_kernel_sends,
	.agreed = openssl_agreed,
	.variables = openssl_channel_variables,
	.why = openssl_why,
};

const struct tls_library *const tls_library = &openssl;
