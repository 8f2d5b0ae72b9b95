/* SPDX-License-Identifier: MIT */
/*
 * test-tls-openssl-file.c - unit tests of tls-openssl-file.c: files that are no good are refused
 * with a reason.  Single-threaded.
 */
#include <fcntl.h>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "tls/tls.h"

#include "suite.h"
#include "tls-fixture.h"

static struct tls_certificate pair;
static struct tls_options options;

static void set_up(void)
{
	pair = make_pair(false, "one");
	options =
		(struct tls_options){.name = "one", .certificates = &pair, .certificate_count = 1};
}

static void tear_down(void)
{
	close_certificate(&pair);
}

static void replace(struct tls_file *file, struct tls_file by)
{
	close(file->fd);
	*file = by;
}

START_TEST(good)
{
	tls_library->identity_close(must_open(&options));
	/* The files are read from their beginnings each time. */
	tls_library->identity_close(must_open(&options));
}
END_TEST

START_TEST(key_and_certificate_in_one_file)
{
	EVP_PKEY *key = make_key(false);
	X509 *certificate = make_certificate(key, "both");
	BIO *memory = BIO_new(BIO_s_mem());
	struct tls_certificate both = {0};

	BIO_puts(memory, "some words before it\n");
	PEM_write_bio_PrivateKey(memory, key, NULL, NULL, 0, NULL, NULL);
	PEM_write_bio_X509(memory, certificate);
	both.chain = both.key = file_of("both.pem", memory);
	options.certificates = &both;
	tls_library->identity_close(must_open(&options));
	close(both.chain.fd);
	X509_free(certificate);
	EVP_PKEY_free(key);
}
END_TEST

START_TEST(chain)
{
	EVP_PKEY *key = make_key(false);
	BIO *memory = BIO_new(BIO_s_mem());
	struct tls_identity *identity;
	struct ends ends;

	for (unsigned i = 0; i < 3; i++) {
		X509 *certificate = make_certificate(key, "one");

		PEM_write_bio_X509(memory, certificate);
		X509_free(certificate);
	}
	replace(&pair.chain, file_of("chain.pem", memory));
	replace(&pair.key, key_file(key, NULL));
	EVP_PKEY_free(key);
	identity = must_open(&options);
	open_ends(&ends, identity);
	ck_assert_int_eq(shake(&ends, 4096), 0);
	ck_assert_int_eq(sk_X509_num(SSL_get_peer_cert_chain(ends.client)), 3);
	close_ends(&ends);
	tls_library->identity_close(identity);
}
END_TEST

START_TEST(no_certificate)
{
	replace(&pair.chain, file_with("empty.pem", ""));
	must_refuse(&options, "certificate \"empty.pem\": has no certificate in PEM form");
	replace(&pair.chain, file_with("bad.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n"
						  "-----END CERTIFICATE-----\n"));
	must_refuse(&options, "certificate \"bad.pem\": has no certificate in PEM form");
}
END_TEST

START_TEST(broken_chain)
{
	EVP_PKEY *key = make_key(false);
	X509 *certificate = make_certificate(key, "one");
	BIO *memory = BIO_new(BIO_s_mem());

	PEM_write_bio_X509(memory, certificate);
	BIO_puts(memory, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
	replace(&pair.chain, file_of("chain.pem", memory));
	must_refuse(&options, "has a broken certificate behind the first one");
	X509_free(certificate);
	EVP_PKEY_free(key);
}
END_TEST

START_TEST(keys_that_are_no_good)
{
	EVP_PKEY *key = make_key(false), *rsa = make_key(true);

	replace(&pair.key, key_file(key, NULL));
	must_refuse(&options, "key \"key.pem\": does not belong to the certificate");
	replace(&pair.key, key_file(rsa, NULL));
	must_refuse(&options, "key \"key.pem\": does not belong to the certificate");
	replace(&pair.key, key_file(key, "secret"));
	must_refuse(&options, "key \"key.pem\": is encrypted");
	replace(&pair.key, file_with("none.pem", "nothing"));
	must_refuse(&options, "key \"none.pem\": has no private key in PEM form");
	EVP_PKEY_free(key);
	EVP_PKEY_free(rsa);
}
END_TEST

START_TEST(two_of_a_kind)
{
	struct tls_certificate both[] = {pair, make_pair(false, "two")};

	options.certificates = both;
	options.certificate_count = 2;
	must_refuse(&options, "has a key of the same kind as another certificate of the list");
	close_certificate(&both[1]);
}
END_TEST

START_TEST(file_that_is_too_long)
{
	ck_assert_int_eq(ftruncate(pair.chain.fd, (1 << 20) + 1), 0);
	must_refuse(&options, "is longer than 1 MB");
}
END_TEST

START_TEST(file_that_cannot_be_read)
{
	replace(&pair.chain, (struct tls_file){"folder", open("/", O_RDONLY | O_CLOEXEC)});
	must_refuse(&options, "certificate \"folder\": Is a directory");
}
END_TEST

/* A response of that status, about nothing. */
static struct tls_file staple_file(unsigned char status)
{
	const unsigned char der[] = {0x30, 3, 0x0a, 1, status};
	BIO *memory = BIO_new(BIO_s_mem());

	BIO_write(memory, der, sizeof(der));
	return file_of("staple.der", memory);
}

START_TEST(staple_is_sent)
{
	struct tls_identity *identity;
	const unsigned char *got;
	struct ends ends;

	pair.staple = staple_file(OCSP_RESPONSE_STATUS_SUCCESSFUL);
	identity = must_open(&options);
	for (unsigned wanted = 0; wanted < 2; wanted++) {
		open_ends(&ends, identity);
		if (wanted)
			SSL_set_tlsext_status_type(ends.client, TLSEXT_STATUSTYPE_ocsp);
		ck_assert_int_eq(shake(&ends, 4096), 0);
		ck_assert_int_eq(SSL_get_tlsext_status_ocsp_resp(ends.client, &got) > 0, wanted);
		close_ends(&ends);
	}
	tls_library->identity_close(identity);
	close(pair.staple.fd);
}
END_TEST

START_TEST(staples_that_are_no_good)
{
	pair.staple = file_with("text.der", "no response");
	must_refuse(&options, "ocsp-staple \"text.der\": has no OCSP response in DER form");
	replace(&pair.staple, staple_file(OCSP_RESPONSE_STATUS_TRYLATER));
	must_refuse(&options, "ocsp-staple \"staple.der\": is not the response to a good request");
	replace(&pair.staple, (struct tls_file){"closed", -1});
	must_refuse(&options, "ocsp-staple \"closed\": Bad file descriptor");
}
END_TEST

START_TEST(authorities)
{
	options.client = TLS_CLIENT_REQUIRED;
	options.client_ca = pair.chain;
	tls_library->identity_close(must_open(&options));
	options.client_ca = pair.key;
	must_refuse(&options, "client-ca \"key.pem\": has no certificate in PEM form");
	options.client_ca = (struct tls_file){"closed", -1};
	must_refuse(&options, "client-ca \"closed\": Bad file descriptor");
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, good);
	tcase_add_test(tcase, key_and_certificate_in_one_file);
	tcase_add_test(tcase, chain);
	tcase_add_test(tcase, no_certificate);
	tcase_add_test(tcase, broken_chain);
	tcase_add_test(tcase, keys_that_are_no_good);
	tcase_add_test(tcase, two_of_a_kind);
	tcase_add_test(tcase, file_that_is_too_long);
	tcase_add_test(tcase, file_that_cannot_be_read);
	tcase_add_test(tcase, staple_is_sent);
	tcase_add_test(tcase, staples_that_are_no_good);
	tcase_add_test(tcase, authorities);
}

RUN_SUITE("tls-openssl-file", fill)
