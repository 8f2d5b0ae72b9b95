/* SPDX-License-Identifier: MIT */
/*
 * test-tls-openssl-secrets.c - unit tests of tls-openssl-secrets.c: both ends of a handshake in one
 * process have the same secrets, and the server's records are counted.  Single-threaded.
 */
#include "tls-fixture.h"

#include "tls/tls-openssl-secrets.h"

static SSL_CTX *contexts[2]; /* of the server, of the client */
static SSL *server, *client;
static struct tls_secrets ours, theirs;

static void set_up(void)
{
	EVP_PKEY *key = make_key(false);
	X509 *certificate = make_certificate(key, "test");
	BIO *ends[2];

	contexts[0] = openssl_secrets_context(TLS_server_method());
	contexts[1] = openssl_secrets_context(TLS_client_method());
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
		openssl_secrets_note(&theirs);
		(void)SSL_do_handshake(client);
		openssl_secrets_note(&ours);
		(void)SSL_do_handshake(server);
		openssl_secrets_note(NULL);
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
	ck_assert_uint_eq(ours.client_length, length);
	ck_assert_uint_eq(ours.server_length, length);
	ck_assert_uint_eq(theirs.client_length, length);
	ck_assert_mem_eq(ours.client, theirs.client, length);
	ck_assert_mem_eq(ours.server, theirs.server, length);
	ck_assert_mem_ne(ours.client, ours.server, length);
	ck_assert_uint_eq(ours.sealed, tickets);
}
END_TEST

START_TEST(none_before_tls_1_3)
{
	SSL_set_max_proto_version(client, TLS1_2_VERSION);
	shake_hands();
	ck_assert_uint_eq(ours.client_length, 0);
	ck_assert_uint_eq(ours.server_length, 0);
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
	ck_assert_uint_eq(ours.server_length + theirs.server_length, 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_loop_test(tcase, both_ends_agree, 0, 8);
	tcase_add_test(tcase, none_before_tls_1_3);
	tcase_add_test(tcase, nothing_is_noted);
}

RUN_SUITE("tls-openssl-secrets", fill)
