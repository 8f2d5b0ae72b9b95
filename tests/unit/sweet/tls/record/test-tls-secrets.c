/* SPDX-License-Identifier: MIT */
/*
 * test-tls-secrets.c - unit tests of tls-secrets.c: both ends of a handshake in one
 * process have the same secrets, and the server's records are counted.  Single-threaded.
 */
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "suite.h"
#include "tls-fixture.h"

#include "tls/record/tls-record.h"
#include "tls/record/tls-secrets.h"
#include "tls/tls-output.h"
#include "tls/tls.h"

static SSL_CTX *contexts[2]; /* of the server, of the client */
static SSL *server, *client;
static struct tls_secrets ours, theirs;

static void set_up(void)
{
	EVP_PKEY *key = make_key(false);
	X509 *certificate = make_certificate(key, "test");
	BIO *ends[2];

	contexts[0] = tls_secrets_context(TLS_server_method());
	contexts[1] = tls_secrets_context(TLS_client_method());
	ck_assert_int_eq(SSL_CTX_use_certificate(contexts[0], certificate), 1);
	ck_assert_int_eq(SSL_CTX_use_PrivateKey(contexts[0], key), 1);
	X509_free(certificate);
	EVP_PKEY_free(key);
	server = SSL_new(contexts[0]);
	client = SSL_new(contexts[1]);
	ck_assert_int_eq(BIO_new_bio_pair(&ends[0], 1 << 16, &ends[1], 1 << 16), 1);
	SSL_set_bio(server, ends[0], ends[0]);
	SSL_set_bio(client, ends[1], ends[1]);
	SSL_set_accept_state(server);
	SSL_set_connect_state(client);
}

static void tear_down(void)
{
	SSL_free(server);
	SSL_free(client);
	for (unsigned i = 0; i < 2; i++)
		SSL_CTX_free(contexts[i]);
}

static void shake_hands(void)
{
	for (unsigned i = 0; i < 4; i++) {
		tls_secrets_note(&theirs);
		(void)SSL_do_handshake(client);
		tls_secrets_note(&ours);
		(void)SSL_do_handshake(server);
		tls_secrets_note(NULL);
	}
	ck_assert(SSL_is_init_finished(server) && SSL_is_init_finished(client));
}

START_TEST(both_ends_agree)
{
	static const char *const suites[] = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"};
	size_t length = _i % 2 ? 48 : 32;
	unsigned tickets = (unsigned)_i / 2;

	SSL_set_ciphersuites(client, suites[_i % 2]);
	SSL_set_num_tickets(server, tickets);
	shake_hands();
	ck_assert_uint_eq(ours.client.length, length);
	ck_assert_uint_eq(ours.server.length, length);
	ck_assert_uint_eq(theirs.client.length, length);
	ck_assert_mem_eq(ours.client.secret, theirs.client.secret, length);
	ck_assert_mem_eq(ours.server.secret, theirs.server.secret, length);
	ck_assert_mem_ne(ours.client.secret, ours.server.secret, length);
	ck_assert_uint_eq(ours.sealed, tickets);
}
END_TEST

/* What is known makes the records that what is derived reads. */
static void check_known(uint16_t suite, const struct tls_traffic *traffic, size_t key_length)
{
	struct tls_traffic bare = *traffic;
	struct tls_key sealing, opening;
	unsigned char record[64], content[TLS_READ_ROOM];
	struct iovec piece = {(char[]){"content"}, 7};
	unsigned char type;
	size_t length;

	ck_assert_uint_eq(traffic->key_length, key_length);
	ck_assert_uint_eq(traffic->iv_length, TLS_IV);
	bare.key_length = bare.iv_length = 0;
	ck_assert(tls_key_open(&sealing, suite, traffic, true));
	ck_assert(tls_key_open(&opening, suite, &bare, false));
	length = tls_record_seal(&sealing, TLS_DATA, &piece, 1, record);
	ck_assert_uint_eq(length, 7 + TLS_RECORD_MORE);
	ck_assert_int_eq(tls_record_open(&opening, record, length, content, &type), 7);
	ck_assert_mem_eq(content, "content", 7);
	tls_key_close(&sealing);
	tls_key_close(&opening);
}

START_TEST(keys_are_known)
{
	static const char *const suites[] = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
					     "TLS_CHACHA20_POLY1305_SHA256"};
	static const size_t lengths[] = {16, 32, 32};
	uint16_t number = (uint16_t)(0x1301 + _i);

	SSL_set_ciphersuites(client, suites[_i]);
	shake_hands();
	check_known(number, &ours.client, lengths[_i]);
	check_known(number, &ours.server, lengths[_i]);
	ck_assert_mem_eq(ours.client.key, theirs.client.key, lengths[_i]);
	ck_assert_mem_ne(ours.client.key, ours.server.key, lengths[_i]);
	ck_assert_mem_ne(ours.client.iv, ours.server.iv, TLS_IV);
}
END_TEST

START_TEST(none_before_tls_1_3)
{
	SSL_set_max_proto_version(client, TLS1_2_VERSION);
	shake_hands();
	ck_assert_uint_eq(ours.client.length, 0);
	ck_assert_uint_eq(ours.server.length, 0);
}
END_TEST

/* Other handshakes of the thread change nothing. */
START_TEST(nothing_is_noted)
{
	for (unsigned i = 0; i < 4; i++) {
		(void)SSL_do_handshake(client);
		(void)SSL_do_handshake(server);
	}
	ck_assert(SSL_is_init_finished(server));
	ck_assert_uint_eq(ours.server.length + theirs.server.length, 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_loop_test(tcase, both_ends_agree, 0, 8);
	tcase_add_loop_test(tcase, keys_are_known, 0, 3);
	tcase_add_test(tcase, none_before_tls_1_3);
	tcase_add_test(tcase, nothing_is_noted);
}

RUN_SUITE("tls-secrets", fill)
