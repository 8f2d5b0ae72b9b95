/* SPDX-License-Identifier: MIT */
/*
 * test-tls-openssl.c - unit tests of tls-openssl.c: what identities refuse and share, and which
 * sessions they resume.  Single-threaded.
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tls/tls-tickets.h"
#include "tls/tls.h"

#include "suite.h"
#include "tls-fixture.h"

static struct tls_certificate pair;
static struct tls_options options;

static void set_up(void)
{
	pair = make_pair(false, "one");
	options = (struct tls_options){.name = "one",
				       .own_records = true,
				       .certificates = &pair,
				       .certificate_count = 1,
				       .client_ca = pair.chain,
				       .tickets = tls_tickets_open(0)};
}

static void tear_down(void)
{
	tls_tickets_close(options.tickets);
	close_certificate(&pair);
}

static uint64_t policy_of(void)
{
	struct tls_identity *identity = must_open(&options);
	uint64_t policy = tls_library->policy(identity);

	tls_library->identity_close(identity);
	return policy;
}

/* Names and certificates may differ: those are what a host has of its own. */
START_TEST(policy_is_the_rules_for_clients)
{
	struct tls_certificate other = make_pair(true, "two");
	uint64_t policy = policy_of();

	options.name = "two";
	options.certificates = &other;
	ck_assert(policy_of() == policy);
	options.client = TLS_CLIENT_OPTIONAL;
	ck_assert(policy_of() != policy);
	policy = policy_of();
	options.client = TLS_CLIENT_REQUIRED;
	ck_assert(policy_of() != policy);
	policy = policy_of();
	options.client_ca = other.chain;
	ck_assert(policy_of() != policy);
	policy = policy_of();
	options.profile = TLS_MODERN;
	ck_assert(policy_of() != policy);
	close_certificate(&other);
}
END_TEST

static SSL_SESSION *latest;

static int keep(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl;
	SSL_SESSION_free(latest);
	latest = session;
	return 1;
}

/* Connects with the latest session; returns whether it was resumed. */
static bool resumes(struct tls_identity *identity, int version)
{
	struct tls_agreed agreed;
	struct ends ends;
	bool resumed;
	char byte;

	open_ends(&ends, identity);
	SSL_set_max_proto_version(ends.client, version);
	/* The context, which ends with this connection, must not keep it. */
	SSL_CTX_set_session_cache_mode(ends.context,
				       SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ends.context, keep);
	if (latest)
		ck_assert_int_eq(SSL_set_session(ends.client, latest), 1);
	ck_assert_int_eq(shake(&ends, 4096), 0);
	/* With TLS 1.3, the tickets follow. */
	ck_assert_int_eq(SSL_read(ends.client, &byte, 1), -1);
	ck_assert_ptr_nonnull(latest);
	tls_library->agreed(ends.channel, &agreed);
	resumed = agreed.resumed;
	ck_assert_int_eq(SSL_session_reused(ends.client), resumed);
	close_ends(&ends);
	return resumed;
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

START_TEST(session_is_resumed_by_its_host)
{
	struct tls_identity *one = must_open(&options), *again = must_open(&options), *two;

	options.name = "two";
	two = must_open(&options);
	latest = NULL;
	ck_assert(!resumes(one, versions[_i]));
	ck_assert(resumes(one, versions[_i]));
	/* As after a reload. */
	ck_assert(resumes(again, versions[_i]));
	ck_assert(!resumes(two, versions[_i]));
	SSL_SESSION_free(latest);
	tls_library->identity_close(one);
	tls_library->identity_close(again);
	tls_library->identity_close(two);
}
END_TEST

START_TEST(no_tickets)
{
	struct tls_identity *identity;
	struct ends ends;
	char byte;

	tls_tickets_close(options.tickets);
	options.tickets = NULL;
	identity = must_open(&options);
	open_ends(&ends, identity);
	ck_assert_int_eq(shake(&ends, 4096), 0);
	ck_assert_int_eq(SSL_read(ends.client, &byte, 1), -1);
	ck_assert(!SSL_SESSION_is_resumable(SSL_get0_session(ends.client)));
	close_ends(&ends);
	tls_library->identity_close(identity);
}
END_TEST

/* As a reload does while clients connect. */
START_TEST(closed_during_a_handshake)
{
	struct tls_identity *identity = must_open(&options);
	struct ends ends;
	char byte;

	open_ends(&ends, identity);
	tls_library->identity_close(identity);
	ck_assert_int_eq(shake(&ends, 4096), 0);
	ck_assert_int_eq(SSL_read(ends.client, &byte, 1), -1);
	ck_assert(SSL_SESSION_is_resumable(SSL_get0_session(ends.client)));
	close_ends(&ends);
	/* The next client finds no TLS any more. */
	ends.usual = NULL;
	ck_assert_ptr_null(tls_library->open(&ends.chooser, -1));
}
END_TEST

START_TEST(two_kinds_of_keys)
{
	struct tls_certificate both[] = {pair, make_pair(true, "two")};
	struct tls_identity *identity;
	static const struct {
		const char *ciphers;
		int kind;
	} wanted[] = {{"ECDHE-RSA-AES128-GCM-SHA256", EVP_PKEY_RSA},
		      {"ECDHE-ECDSA-AES128-GCM-SHA256", EVP_PKEY_EC}};

	options.certificates = both;
	options.certificate_count = 2;
	identity = must_open(&options);
	for (unsigned i = 0; i < 2; i++) {
		struct ends ends;

		open_ends(&ends, identity);
		SSL_set_max_proto_version(ends.client, TLS1_2_VERSION);
		ck_assert_int_eq(SSL_set_cipher_list(ends.client, wanted[i].ciphers), 1);
		ck_assert_int_eq(shake(&ends, 4096), 0);
		ck_assert_int_eq(EVP_PKEY_get_base_id(
					 X509_get0_pubkey(SSL_get0_peer_certificate(ends.client))),
				 wanted[i].kind);
		close_ends(&ends);
	}
	tls_library->identity_close(identity);
	close_certificate(&both[1]);
}
END_TEST

/* Returns the group that the server and a client agree on, until the next call; theirs: NULL: any. */
static const char *agreed_group(const char *ours, const char *theirs)
{
	static char name[64];
	struct tls_identity *identity;
	struct ends ends;

	options.groups = ours;
	identity = must_open(&options);
	open_ends(&ends, identity);
	if (theirs)
		ck_assert_int_eq(SSL_set1_groups_list(ends.client, theirs), 1);
	ck_assert_int_eq(shake(&ends, 4096), 0);
	/* The text belongs to the client. */
	snprintf(name, sizeof(name), "%s",
		 SSL_group_to_name(ends.client, (int)SSL_get_negotiated_group(ends.client)));
	close_ends(&ends);
	tls_library->identity_close(identity);
	return name;
}

static bool is_known(const char *group)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	bool known = SSL_CTX_set1_groups_list(context, group) == 1;

	SSL_CTX_free(context);
	return known;
}

START_TEST(groups)
{
	/* What browsers offer first is taken where the library has it. */
	const char *best = is_known("X25519MLKEM768") ? "X25519MLKEM768" : "x25519";

	ck_assert_str_eq(agreed_group(NULL, NULL), best);
	ck_assert_str_eq(agreed_group(NULL, "X25519"), "x25519");
	ck_assert_str_eq(agreed_group(NULL, "P-256"), "secp256r1");
	ck_assert_str_eq(agreed_group("P-384", "X25519:P-384"), "secp384r1");
	ck_assert_str_eq(agreed_group("P-521", NULL), "secp521r1");
}
END_TEST

START_TEST(groups_that_are_no_good)
{
	static const char *const bad[] = {"P-257", "X25519:P-257", "", ":"};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		options.groups = bad[i];
		must_refuse(&options, "does not know all of them");
	}
}
END_TEST

START_TEST(name_of_the_library)
{
	ck_assert_str_eq(tls_library->name(), OpenSSL_version(OPENSSL_FULL_VERSION_STRING));
	tls_library->identity_close(NULL);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, policy_is_the_rules_for_clients);
	tcase_add_loop_test(tcase, session_is_resumed_by_its_host, 0, 2);
	tcase_add_test(tcase, no_tickets);
	tcase_add_test(tcase, closed_during_a_handshake);
	tcase_add_test(tcase, two_kinds_of_keys);
	tcase_add_test(tcase, groups);
	tcase_add_test(tcase, groups_that_are_no_good);
	tcase_add_test(tcase, name_of_the_library);
}

RUN_SUITE("tls-openssl", fill)
