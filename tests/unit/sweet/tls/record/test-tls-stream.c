/* SPDX-License-Identifier: MIT */
/*
 * test-tls-stream.c - unit tests of tls-stream.c: the test is the client, and makes
 * and reads its records with keys of its own.  Single-threaded.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <sys/uio.h>

#include "tls/tls-output.h"
#include "tls/record/tls-record.h"
#include "tls/record/tls-secrets.h"
#include "tls/record/tls-stream.h"
#include "tls/tls.h"

#include "suite.h"

#define SUITE 0x1301

static struct tls_stream stream;
static struct tls_output output;
static struct tls_key sealing, opening; /* the client's */
static unsigned char wire[4 * TLS_RECORD_WIRE_MAX];
static size_t wire_length;
static char got[TLS_READ_ROOM];

static void set_up(void)
{
	static const struct tls_secrets secrets = {.client = {"the client's", .length = 32},
						   .server = {"the server's", .length = 32},
						   .sealed = 2};

	ck_assert(tls_stream_open(&stream, SUITE, &secrets, &output));
	ck_assert(tls_key_open(&sealing, SUITE, &secrets.client, true));
	ck_assert(tls_key_open(&opening, SUITE, &secrets.server, false));
	opening.number = secrets.sealed;
	wire_length = 0;
}

static void tear_down(void)
{
	tls_stream_close(&stream);
	tls_output_free(&output);
	tls_key_close(&sealing);
	tls_key_close(&opening);
}

/* The client makes a record, which follows the others that the server did not get yet. */
static void add(unsigned type, const void *data, size_t length)
{
	const struct iovec piece = {(void *)(uintptr_t)data, length};

	wire_length +=
		tls_record_seal(&sealing, (enum tls_content)type, &piece, 1, wire + wire_length);
}

static ssize_t read_all(void)
{
	tls_stream_feed(&stream, (char *)wire, wire_length);
	wire_length = 0;
	return tls_stream_read(&stream, got);
}

/* The server's next record must have that type and content. */
static void must_send(unsigned type, const void *data, size_t length)
{
	static unsigned char content[TLS_READ_ROOM];
	const unsigned char *record = output.bytes + output.from;
	unsigned char its_type;
	ssize_t its_length;

	ck_assert_uint_gt(output.to - output.from, TLS_RECORD_HEADER);
	its_length = tls_record_length(record);
	ck_assert_int_gt(its_length, 0);
	ck_assert_int_eq(tls_record_open(&opening, record, (size_t)its_length, content, &its_type),
			 (ssize_t)length);
	ck_assert_uint_eq(its_type, type);
	ck_assert_mem_eq(content, data, length);
	tls_output_sent(&output, (size_t)its_length);
}

static void must_be_silent(void)
{
	ck_assert_uint_eq(output.to, output.from);
}

static void must_alert(unsigned char description)
{
	char why[TLS_WHY_MAX];

	must_send(TLS_ALERT, ((unsigned char[]){2, description}), 2);
	must_be_silent();
	tls_stream_why(&stream, why);
	ck_assert_str_eq(why, SSL_alert_desc_string_long(description));
	ck_assert_int_eq(tls_stream_read(&stream, got), TLS_FAILED);
	ck_assert(!tls_stream_write(&stream, &(struct iovec){(char[]){"x"}, 1}, 1));
	tls_stream_end(&stream);
	must_be_silent();
}

static bool send_text(const char *text)
{
	return tls_stream_write(&stream, &(struct iovec){(void *)(uintptr_t)text, strlen(text)}, 1);
}

START_TEST(data)
{
	add(TLS_DATA, "one", 3);
	add(TLS_DATA, "", 0);
	add(TLS_DATA, "three", 5);
	ck_assert_int_eq(read_all(), 3);
	ck_assert_mem_eq(got, "one", 3);
	ck_assert_int_eq(tls_stream_read(&stream, got), 5);
	ck_assert_mem_eq(got, "three", 5);
	ck_assert_int_eq(tls_stream_read(&stream, got), TLS_MORE);
	ck_assert(send_text("answer") && send_text("another"));
	must_send(TLS_DATA, "answer", 6);
	must_send(TLS_DATA, "another", 7);
}
END_TEST

/* Records that come in pieces, of which some hold the end of one and the begin of the next. */
START_TEST(pieces)
{
	static const size_t lengths[] = {1, 4, 5, 6, 21, 1000, 16000, 20000};
	static unsigned char all[sizeof(wire)];
	static char sent[TLS_RECORD_MAX];
	size_t total, total_got = 0;

	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)(i * 7);
	add(TLS_DATA, sent, 100);
	add(TLS_DATA, sent, sizeof(sent));
	add(TLS_DATA, sent, 1);
	total = wire_length;
	memcpy(all, wire, total);
	for (size_t at = 0; at < total; at += lengths[_i]) {
		size_t left = total - at, length = left < lengths[_i] ? left : lengths[_i];
		ssize_t result;

		/* It must not be read later. */
		memcpy(wire, all + at, length);
		wire_length = length;
		for (result = read_all(); result > 0; result = tls_stream_read(&stream, got)) {
			ck_assert_mem_eq(got, sent, (size_t)result);
			total_got += (size_t)result;
		}
		ck_assert_int_eq(result, TLS_MORE);
		memset(wire, 0xee, length);
	}
	ck_assert_uint_eq(total_got, 100 + sizeof(sent) + 1);
	ck_assert_ptr_null(stream.partial);
}
END_TEST

static const unsigned char wanted[] = {24, 0, 0, 1, 1}, not_wanted[] = {24, 0, 0, 1, 0};

/* A new key for what the client sends, and for what it gets if it wants that. */
START_TEST(key_updates)
{
	for (unsigned i = 0; i < 3; i++) {
		add(TLS_HANDSHAKE, _i ? wanted : not_wanted, 5);
		ck_assert(tls_key_renew(&sealing));
		add(TLS_DATA, "new", 3);
		ck_assert_int_eq(read_all(), 3);
		if (_i) {
			must_send(TLS_HANDSHAKE, not_wanted, 5);
			ck_assert(tls_key_renew(&opening));
		}
		must_be_silent();
		ck_assert(send_text("answer"));
		must_send(TLS_DATA, "answer", 6);
	}
}
END_TEST

START_TEST(key_update_in_two_records)
{
	add(TLS_HANDSHAKE, wanted, 3);
	add(TLS_HANDSHAKE, wanted + 3, 2);
	ck_assert(tls_key_renew(&sealing));
	add(TLS_DATA, "new", 3);
	ck_assert_int_eq(read_all(), 3);
	must_send(TLS_HANDSHAKE, not_wanted, 5);
}
END_TEST

/* The key has made as many records as it may. */
START_TEST(worn_key)
{
	stream.out.number = opening.number = 1u << 24;
	ck_assert(send_text("answer"));
	must_send(TLS_HANDSHAKE, not_wanted, 5);
	ck_assert(tls_key_renew(&opening));
	must_send(TLS_DATA, "answer", 6);
	ck_assert(send_text("another"));
	must_send(TLS_DATA, "another", 7);
}
END_TEST

START_TEST(ends)
{
	add(TLS_ALERT, ((unsigned char[]){1, 90}), 2);
	add(TLS_DATA, "last", 4);
	add(TLS_ALERT, ((unsigned char[]){1, 0}), 2);
	add(TLS_DATA, "ignored", 7);
	ck_assert_int_eq(read_all(), 4);
	ck_assert_int_eq(tls_stream_read(&stream, got), TLS_ENDED);
	ck_assert_int_eq(tls_stream_read(&stream, got), TLS_ENDED);
	/* The other direction is open until the server says so. */
	ck_assert(send_text("answer"));
	must_send(TLS_DATA, "answer", 6);
	tls_stream_end(&stream);
	tls_stream_end(&stream);
	must_send(TLS_ALERT, ((unsigned char[]){1, 0}), 2);
	must_be_silent();
	ck_assert(!send_text("too late"));
}
END_TEST

START_TEST(alert_of_the_client)
{
	char why[TLS_WHY_MAX];

	add(TLS_ALERT, ((unsigned char[]){2, SSL_AD_INTERNAL_ERROR}), 2);
	add(TLS_DATA, "ignored", 7);
	ck_assert_int_eq(read_all(), TLS_FAILED);
	tls_stream_why(&stream, why);
	ck_assert_str_eq(why, "the client sent an alert: internal error");
	must_be_silent();
	ck_assert(!send_text("x"));
}
END_TEST

static const struct {
	unsigned type;
	const char *data;
	size_t length;
	unsigned char alert;
} refused[] = {
	{TLS_HANDSHAKE, "", 0, SSL_AD_UNEXPECTED_MESSAGE},
	{TLS_HANDSHAKE, "\x01\0\0\1\0", 5, SSL_AD_UNEXPECTED_MESSAGE}, /* a ClientHello */
	{TLS_HANDSHAKE, "\x04", 1, SSL_AD_UNEXPECTED_MESSAGE},
	{TLS_HANDSHAKE, "\x18\0\0\1\0\x18\0\0\1\0", 10, SSL_AD_UNEXPECTED_MESSAGE},
	{TLS_HANDSHAKE, "\x18\0\0\2\0", 5, SSL_AD_DECODE_ERROR},
	{TLS_HANDSHAKE, "\x18\1", 2, SSL_AD_DECODE_ERROR},
	{TLS_HANDSHAKE, "\x18\0\0\1\2", 5, SSL_AD_ILLEGAL_PARAMETER},
	{TLS_ALERT, "", 0, SSL_AD_UNEXPECTED_MESSAGE},
	{TLS_ALERT, "\1", 1, SSL_AD_DECODE_ERROR},
	{TLS_ALERT, "\1\x5a\1\0", 4, SSL_AD_DECODE_ERROR},
	{TLS_CHANGE_CIPHER, "\1", 1, SSL_AD_UNEXPECTED_MESSAGE},
	{24, "\1\0\0", 3, SSL_AD_UNEXPECTED_MESSAGE}, /* a heartbeat */
	{255, "x", 1, SSL_AD_UNEXPECTED_MESSAGE},
};

START_TEST(refused_content)
{
	add(refused[_i].type, refused[_i].data, refused[_i].length);
	add(TLS_DATA, "ignored", 7);
	ck_assert_int_eq(read_all(), TLS_FAILED);
	must_alert(refused[_i].alert);
}
END_TEST

START_TEST(data_between_parts_of_a_message)
{
	add(TLS_HANDSHAKE, wanted, 3);
	add(_i ? TLS_ALERT : TLS_DATA, "\1\0", 2);
	ck_assert_int_eq(read_all(), TLS_FAILED);
	must_alert(SSL_AD_UNEXPECTED_MESSAGE);
}
END_TEST

/* Of each kind, and mixed: no client needs that many without data between them. */
START_TEST(too_many_without_data)
{
	for (unsigned i = 0; i < 33; i++) {
		switch (_i == 3 ? i % 3 : (unsigned)_i) {
		case 0:
			add(TLS_DATA, "", 0);
			break;
		case 1:
			add(TLS_ALERT, "\1\x5a", 2);
			break;
		default:
			add(TLS_HANDSHAKE, not_wanted, 5);
			ck_assert(tls_key_renew(&sealing));
		}
		if (i == 15) {
			add(TLS_DATA, "x", 1);
			ck_assert_int_eq(read_all(), 1);
		}
	}
	ck_assert_int_eq(read_all(), TLS_MORE);
	for (unsigned i = 0; i < 16; i++)
		add(TLS_DATA, "", 0);
	ck_assert_int_eq(read_all(), TLS_FAILED);
	must_alert(SSL_AD_UNEXPECTED_MESSAGE);
}
END_TEST

START_TEST(no_record)
{
	memcpy(wire, "GET / HTTP/1.1\r\n", 16);
	for (wire_length = 4; wire_length > 0;)
		ck_assert_int_eq(read_all(), TLS_MORE);
	if (_i)
		memcpy(wire, "\3\4\5\6", wire_length = 4); /* the length is 773 */
	else
		memcpy(wire, " / HTTP", wire_length = 7);
	ck_assert_int_eq(read_all(), TLS_FAILED);
	must_alert(SSL_AD_UNEXPECTED_MESSAGE);
}
END_TEST

START_TEST(broken_record)
{
	add(TLS_DATA, "hello", 5);
	wire[wire_length - 1] ^= 1;
	ck_assert_int_eq(read_all(), TLS_FAILED);
	must_alert(SSL_AD_BAD_RECORD_MAC);
}
END_TEST

/* A client that reads nothing. */
START_TEST(full_output)
{
	static char most[TLS_RECORD_MAX];
	const struct iovec piece = {most, sizeof(most)};
	unsigned count = 0;

	while (tls_stream_write(&stream, &piece, 1))
		count++;
	ck_assert_uint_eq(count, 15);
	ck_assert_uint_le(output.to, 256 << 10);
	while (count-- > 0)
		must_send(TLS_DATA, most, sizeof(most));
	must_be_silent();
	ck_assert(send_text("answer"));
	must_send(TLS_DATA, "answer", 6);
}
END_TEST

START_TEST(unknown_suite)
{
	static const struct tls_secrets secrets = {.client.length = 32, .server.length = 48};
	struct tls_stream other;

	ck_assert(!tls_stream_open(&other, 0x1305, &secrets, &output));
	ck_assert(!tls_stream_open(&other, SUITE, &secrets, &output));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, data);
	tcase_add_loop_test(tcase, pieces, 0, 8);
	tcase_add_loop_test(tcase, key_updates, 0, 2);
	tcase_add_test(tcase, key_update_in_two_records);
	tcase_add_test(tcase, worn_key);
	tcase_add_test(tcase, ends);
	tcase_add_test(tcase, alert_of_the_client);
	tcase_add_loop_test(tcase, refused_content, 0, sizeof(refused) / sizeof(refused[0]));
	tcase_add_loop_test(tcase, data_between_parts_of_a_message, 0, 2);
	tcase_add_loop_test(tcase, too_many_without_data, 0, 4);
	tcase_add_loop_test(tcase, no_record, 0, 2);
	tcase_add_test(tcase, broken_record);
	tcase_add_test(tcase, full_output);
	tcase_add_test(tcase, unknown_suite);
}

RUN_SUITE("tls-stream", fill)
