/* SPDX-License-Identifier: MIT */
/*
 * test-tls-openssl-channel.c - unit tests of tls-openssl-channel.c: the test carries the bytes
 * between a channel and a client of OpenSSL.  Single-threaded.
 */
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>

#include "tls/tls.h"

#include "suite.h"
#include "tls-fixture.h"

static struct tls_certificate pair, other;
static struct tls_identity *identity, *named;
static struct ends ends;
static bool own_records; /* of the server; else OpenSSL makes them all */

static void set_up(void)
{
	pair = make_pair(false, "usual");
	other = make_pair(false, "named");
	identity = must_open(&(struct tls_options){.name = "usual",
						   .certificates = &pair,
						   .certificate_count = 1,
						   .own_records = own_records});
	named = must_open(&(struct tls_options){.name = "named",
						.certificates = &other,
						.certificate_count = 1,
						.profile = TLS_MODERN,
						.own_records = own_records});
	open_ends(&ends, identity);
}

static void tear_down(void)
{
	close_ends(&ends);
	tls_library->identity_close(identity);
	tls_library->identity_close(named);
	close_certificate(&pair);
	close_certificate(&other);
}

static void feed_all(void)
{
	static char data[1 << 17];
	size_t length = take_from_client(&ends, data, sizeof(data));

	tls_library->feed(ends.channel, data, length);
}

START_TEST(handshake_in_pieces)
{
	static const size_t pieces[] = {1, 7, 4096};
	struct tls_agreed agreed;

	ck_assert_int_eq(shake(&ends, pieces[_i]), 0);
	tls_library->agreed(ends.channel, &agreed);
	ck_assert_str_eq(agreed.version, "TLSv1.3");
	ck_assert_str_eq(agreed.cipher, SSL_get_cipher_name(ends.client));
	ck_assert(!agreed.resumed);
	ck_assert(agreed.policy == tls_library->policy(identity));
	ck_assert(!tls_library->kernel_sends(ends.channel));
}
END_TEST

START_TEST(data_both_ways)
{
	static char sent[TLS_RECORD_MAX], got[TLS_READ_ROOM];

	ck_assert_int_eq(shake(&ends, 4096), 0);
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)(i * 7);
	for (size_t length = 1; length <= TLS_RECORD_MAX; length *= 2) {
		ck_assert(write_one(ends.channel, sent, length));
		carry_to_client(&ends);
		ck_assert_int_eq(SSL_read(ends.client, got, sizeof(got)), (int)length);
		ck_assert_mem_eq(got, sent, length);
		ck_assert_int_eq(SSL_write(ends.client, sent, (int)length), (int)length);
		feed_all();
		ck_assert_int_eq(tls_library->read(ends.channel, got), (ssize_t)length);
		ck_assert_mem_eq(got, sent, length);
		ck_assert_int_eq(tls_library->read(ends.channel, got), TLS_MORE);
	}
}
END_TEST

/* Output that is sent in parts, while more is added. */
START_TEST(output_in_parts)
{
	char text[] = "0123456789", got[64] = "";
	const char *output;
	size_t length;

	ck_assert_int_eq(shake(&ends, 4096), 0);
	for (unsigned i = 0; i < 200; i++) {
		ck_assert(write_one(ends.channel, text, sizeof(text) - 1));
		output = tls_library->output(ends.channel, &length);
		ck_assert_int_eq(BIO_write(ends.to_client, output, 9), 9);
		tls_library->sent(ends.channel, 9);
	}
	carry_to_client(&ends);
	for (unsigned i = 0; i < 200; i++) {
		ck_assert_int_eq(SSL_read(ends.client, got, sizeof(got)), 10);
		ck_assert_str_eq(got, text);
	}
	output = tls_library->output(ends.channel, &length);
	ck_assert(length == 0);
}
END_TEST

/* The client's first request comes together with the end of its handshake. */
START_TEST(data_with_the_handshake)
{
	static char got[TLS_READ_ROOM];

	(void)SSL_do_handshake(ends.client);
	feed_all();
	ck_assert_int_eq(tls_library->handshake(ends.channel), TLS_MORE);
	carry_to_client(&ends);
	ck_assert_int_eq(SSL_do_handshake(ends.client), 1);
	ck_assert_int_eq(SSL_write(ends.client, "first", 5), 5);
	feed_all();
	ck_assert_int_eq(tls_library->handshake(ends.channel), 0);
	ck_assert_int_eq(tls_library->read(ends.channel, got), 5);
	ck_assert_mem_eq(got, "first", 5);
}
END_TEST

/* A record of several pieces, short ones and long ones. */
static void send_pieces(unsigned number)
{
	static const size_t lengths[][3] = {
		{1, 1, 1}, {200, 0, 1000}, {300, 10000, 9}, {1, 16382, 1}};
	const size_t *length = lengths[number];
	static char sent[TLS_RECORD_MAX], got[TLS_RECORD_MAX];
	struct iovec pieces[3];
	size_t total = 0;

	ck_assert_int_eq(shake(&ends, 4096), 0);
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)(i * 11);
	for (unsigned i = 0; i < 3; i++) {
		pieces[i] = (struct iovec){sent + total, length[i]};
		total += length[i];
	}
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(tls_library->write(ends.channel, pieces, 3));
		carry_to_client(&ends);
		ck_assert_int_eq(SSL_read(ends.client, got, sizeof(got)), (int)total);
		ck_assert_mem_eq(got, sent, total);
	}
}

START_TEST(pieces_of_a_record)
{
	send_pieces((unsigned)_i);
}
END_TEST

/* Records of TLS 1.2 are made by OpenSSL. */
START_TEST(tls_1_2)
{
	static char got[TLS_READ_ROOM];
	struct tls_agreed agreed;

	SSL_set_max_proto_version(ends.client, TLS1_2_VERSION);
	send_pieces((unsigned)_i);
	tls_library->agreed(ends.channel, &agreed);
	ck_assert_str_eq(agreed.version, "TLSv1.2");
	ck_assert_int_eq(SSL_write(ends.client, "request", 7), 7);
	feed_all();
	ck_assert_int_eq(tls_library->read(ends.channel, got), 7);
	ck_assert_mem_eq(got, "request", 7);
	ck_assert_int_eq(tls_library->read(ends.channel, got), TLS_MORE);
	ck_assert(tls_library->end(ends.channel));
	carry_to_client(&ends);
	ck_assert_int_eq(SSL_read(ends.client, got, sizeof(got)), 0);
	ck_assert_int_eq(SSL_get_error(ends.client, 0), SSL_ERROR_ZERO_RETURN);
}
END_TEST

START_TEST(identity_by_name)
{
	struct tls_agreed agreed;

	ends.named = named;
	ck_assert_int_eq(SSL_set_tlsext_host_name(ends.client, "named"), 1);
	ck_assert_int_eq(shake(&ends, 4096), 0);
	ck_assert_int_eq(
		X509_check_host(SSL_get0_peer_certificate(ends.client), "named", 0, 0, NULL), 1);
	tls_library->agreed(ends.channel, &agreed);
	ck_assert(agreed.policy == tls_library->policy(named));
}
END_TEST

static void must_fail(const char *text)
{
	char why[TLS_WHY_MAX];

	tls_library->why(ends.channel, why);
	ck_assert_msg(strstr(why, text), "%s", why);
}

/* The named host's rules, not the usual one's. */
START_TEST(version_by_name)
{
	ends.named = named;
	SSL_set_tlsext_host_name(ends.client, "named");
	SSL_set_max_proto_version(ends.client, TLS1_2_VERSION);
	ck_assert_int_eq(shake(&ends, 4096), TLS_FAILED);
	must_fail("unsupported protocol");
}
END_TEST

START_TEST(rubbish)
{
	const char *output;
	size_t length;

	tls_library->feed(ends.channel, "GET / HTTP/1.1\r\n\r\n", 18);
	ck_assert_int_eq(tls_library->handshake(ends.channel), TLS_FAILED);
	must_fail("http request");
	output = tls_library->output(ends.channel, &length);
	ck_assert(length == 0 || output[0] == 21);
}
END_TEST

START_TEST(broken_record)
{
	static char got[TLS_READ_ROOM];
	char data[256];
	size_t length;

	ck_assert_int_eq(shake(&ends, 4096), 0);
	ck_assert_int_eq(SSL_write(ends.client, "hello", 5), 5);
	length = take_from_client(&ends, data, sizeof(data));
	data[length - 1] ^= 1;
	tls_library->feed(ends.channel, data, length);
	ck_assert_int_eq(tls_library->read(ends.channel, got), TLS_FAILED);
	/* Versions of OpenSSL say more, or less, of it. */
	must_fail(own_records ? "bad record mac" : "record");
	/* The client gets an alert. */
	tls_library->output(ends.channel, &length);
	ck_assert(length > 0);
	ck_assert(!write_one(ends.channel, "x", 1));
}
END_TEST

START_TEST(ends_are_announced)
{
	static char got[TLS_READ_ROOM];

	ck_assert_int_eq(shake(&ends, 4096), 0);
	tls_library->end(ends.channel);
	carry_to_client(&ends);
	ck_assert_int_eq(SSL_read(ends.client, got, sizeof(got)), 0);
	ck_assert_int_eq(SSL_get_error(ends.client, 0), SSL_ERROR_ZERO_RETURN);
	(void)SSL_shutdown(ends.client);
	feed_all();
	ck_assert_int_eq(tls_library->read(ends.channel, got), TLS_ENDED);
}
END_TEST

/* A client that wants new keys, again and again, and reads none of the answers. */
START_TEST(output_is_bounded)
{
	static char got[TLS_READ_ROOM];
	size_t length;
	ssize_t result = TLS_MORE;
	unsigned count;

	ck_assert_int_eq(shake(&ends, 4096), 0);
	for (count = 0; count < 100000 && result == TLS_MORE; count++) {
		ck_assert_int_eq(SSL_key_update(ends.client, SSL_KEY_UPDATE_REQUESTED), 1);
		ck_assert_int_eq(SSL_do_handshake(ends.client), 1);
		feed_all();
		result = tls_library->read(ends.channel, got);
	}
	ck_assert_int_eq(result, TLS_FAILED);
	tls_library->output(ends.channel, &length);
	ck_assert(length <= 256 << 10);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_loop_test(tcase, handshake_in_pieces, 0, 3);
	tcase_add_test(tcase, data_both_ways);
	tcase_add_test(tcase, output_in_parts);
	tcase_add_test(tcase, data_with_the_handshake);
	tcase_add_loop_test(tcase, pieces_of_a_record, 0, 4);
	tcase_add_loop_test(tcase, tls_1_2, 0, 4);
	tcase_add_test(tcase, identity_by_name);
	tcase_add_test(tcase, version_by_name);
	tcase_add_test(tcase, rubbish);
	tcase_add_test(tcase, broken_record);
	tcase_add_test(tcase, ends_are_announced);
	tcase_add_test(tcase, output_is_bounded);
}

int main(void)
{
	int failed = run_suite("tls-openssl-channel", fill);

	own_records = true;
	return run_suite("tls-openssl-channel with own records", fill) || failed;
}
