/* SPDX-License-Identifier: MIT */
/*
 * test-tls-record.c - unit tests of tls-record.c: the records of RFC 8448, section 3,
 * and what is no record.  Single-threaded.
 */
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <sys/uio.h>

#include "tls/record/tls-record.h"
#include "tls/tls-output.h"
#include "tls/tls.h"

#include "suite.h"

#define AES_128 0x1301
#define AES_256 0x1302
#define CHACHA20 0x1303

static const char server_secret[] =
	"a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643";
static const char client_secret[] =
	"9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5";
/* The bytes 0 to 49, from each end. */
static const char from_client[] = "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f"
				  "2b9819a8a5b46b395bd54a9a20441e"
				  "2b62974e1f5a6292a2977014bd1e3deae63aeebb21694915e4";
static const char from_server[] = "17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36"
				  "e30efaf97d90e6dffc602dcb501a59"
				  "a8fcc49c4bf2e5f0a21c0047c2abf332540dd032e167c2955d";

static struct tls_key sealing, opening;
static unsigned char record[TLS_RECORD_WIRE_MAX], content[TLS_READ_ROOM];

static size_t bytes_of(const char *digits, unsigned char *bytes, size_t room)
{
	size_t length;

	ck_assert_int_eq(OPENSSL_hexstr2buf_ex(bytes, room, &length, digits, '\0'), 1);
	return length;
}

static struct tls_key key_of(const char *digits, bool seals)
{
	struct tls_traffic traffic = {0};
	struct tls_key key;

	traffic.length = bytes_of(digits, traffic.secret, sizeof(traffic.secret));
	ck_assert(tls_key_open(&key, AES_128, &traffic, seals));
	return key;
}

static void open_both(uint16_t suite)
{
	const struct tls_traffic traffic = {"any secret", .length = suite == AES_256 ? 48 : 32};

	ck_assert(tls_key_open(&sealing, suite, &traffic, true));
	ck_assert(tls_key_open(&opening, suite, &traffic, false));
}

static void close_both(void)
{
	tls_key_close(&sealing);
	tls_key_close(&opening);
}

static size_t seal(const void *data, size_t length, enum tls_content type)
{
	const struct iovec piece = {(void *)(uintptr_t)data, length};

	return tls_record_seal(&sealing, type, &piece, 1, record);
}

START_TEST(records_of_rfc_8448)
{
	unsigned char expected[128], data[50], type;
	size_t length = bytes_of(from_client, expected, sizeof(expected));

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)i;
	opening = key_of(client_secret, false);
	ck_assert_int_eq(tls_record_length(expected), (ssize_t)length);
	ck_assert_int_eq(tls_record_open(&opening, expected, length, content, &type), 50);
	ck_assert_mem_eq(content, data, sizeof(data));
	ck_assert_uint_eq(type, TLS_DATA);
	/* After a ticket. */
	sealing = key_of(server_secret, true);
	sealing.number = 1;
	length = bytes_of(from_server, expected, sizeof(expected));
	ck_assert_uint_eq(seal(data, sizeof(data), TLS_DATA), length);
	ck_assert_mem_eq(record, expected, length);
	close_both();
}
END_TEST

static const uint16_t suites[] = {AES_128, AES_256, CHACHA20};

START_TEST(there_and_back)
{
	static unsigned char data[TLS_RECORD_MAX];
	unsigned char type;

	open_both(suites[_i]);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7);
	for (size_t length = 0; length <= sizeof(data);
	     length += length < 5000 ? 1 + length / 3 : 1423) {
		struct iovec pieces[] = {{data, length / 3},
					 {data + length / 3, length - length / 3}};
		size_t made = tls_record_seal(&sealing, TLS_HANDSHAKE, pieces, 2, record);

		ck_assert_uint_eq(made, length + TLS_RECORD_MORE);
		ck_assert_int_eq(tls_record_length(record), (ssize_t)made);
		ck_assert_int_eq(tls_record_open(&opening, record, made, content, &type),
				 (ssize_t)length);
		ck_assert_mem_eq(content, data, length);
		ck_assert_uint_eq(type, TLS_HANDSHAKE);
		if (length % 2 == 0) {
			ck_assert(tls_key_renew(&sealing));
			ck_assert(tls_key_renew(&opening));
		}
	}
	close_both();
}
END_TEST

/* Each bit of the header and of what follows is protected; a record is read once, in its order. */
START_TEST(changed_records)
{
	unsigned char type;
	size_t length;

	open_both(suites[_i]);
	length = seal("hello", 5, TLS_DATA);
	for (size_t i = 0; i < length; i++) {
		record[i] ^= 0x10;
		opening.number = 0;
		ck_assert_int_eq(tls_record_open(&opening, record, length, content, &type),
				 -SSL_AD_BAD_RECORD_MAC);
		record[i] ^= 0x10;
	}
	ck_assert_int_eq(tls_record_open(&opening, record, length, content, &type),
			 -SSL_AD_BAD_RECORD_MAC);
	opening.number = 0;
	ck_assert_int_eq(tls_record_open(&opening, record, length, content, &type), 5);
	ck_assert(tls_key_renew(&opening));
	ck_assert_int_eq(tls_record_open(&opening, record, length, content, &type),
			 -SSL_AD_BAD_RECORD_MAC);
	close_both();
}
END_TEST

START_TEST(padding)
{
	unsigned char data[100] = "padded", type;
	size_t length;

	open_both(AES_128);
	data[6] = TLS_ALERT;
	/* The record's own type is one byte more, 0 as the padding. */
	length = seal(data, sizeof(data), (enum tls_content)0);
	ck_assert_int_eq(tls_record_open(&opening, record, length, content, &type), 6);
	ck_assert_uint_eq(type, TLS_ALERT);
	memset(data, 0, sizeof(data));
	length = seal(data, sizeof(data), (enum tls_content)0);
	ck_assert_int_eq(tls_record_open(&opening, record, length, content, &type),
			 -SSL_AD_UNEXPECTED_MESSAGE);
	close_both();
}
END_TEST

START_TEST(headers)
{
	static const struct {
		unsigned char header[TLS_RECORD_HEADER];
		ssize_t length;
	} all[] = {
		{{23, 3, 3, 0x40, 0x11}, 5 + 16384 + 17},
		{{23, 9, 9, 0, 16}, 5 + 16}, /* any version */
		{{23, 3, 3, 0x40, 0x12}, -SSL_AD_RECORD_OVERFLOW},
		{{23, 3, 3, 0xff, 0xff}, -SSL_AD_RECORD_OVERFLOW},
		{{23, 3, 3, 0, 15}, -SSL_AD_BAD_RECORD_MAC},
		{{23, 3, 3, 0, 0}, -SSL_AD_BAD_RECORD_MAC},
		{{20, 3, 3, 0, 1}, -SSL_AD_UNEXPECTED_MESSAGE},
		{{21, 3, 3, 0, 2}, -SSL_AD_UNEXPECTED_MESSAGE},
		{{22, 3, 3, 0, 20}, -SSL_AD_UNEXPECTED_MESSAGE},
		{"GET /", -SSL_AD_UNEXPECTED_MESSAGE},
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		ck_assert_int_eq(tls_record_length(all[i].header), all[i].length);
}
END_TEST

/* An empty record, without even a type. */
START_TEST(nothing_encrypted)
{
	static const struct tls_traffic traffic = {"any secret", .length = 32};
	static const unsigned char header[] = {23, 3, 3, 0, 16};
	unsigned char type;
	int made;

	ck_assert(tls_key_open(&sealing, AES_128, &traffic, true));
	opening = (struct tls_key){0};
	ck_assert(tls_key_open(&opening, AES_128, &traffic, false));
	memcpy(record, header, sizeof(header));
	ck_assert_int_eq(EVP_EncryptInit_ex2(sealing.cipher, NULL, NULL, sealing.iv, NULL), 1);
	ck_assert_int_eq(EVP_EncryptUpdate(sealing.cipher, NULL, &made, header, 5), 1);
	ck_assert_int_eq(EVP_EncryptFinal_ex(sealing.cipher, record + 5, &made), 1);
	ck_assert_int_eq(EVP_CIPHER_CTX_ctrl(sealing.cipher, EVP_CTRL_AEAD_GET_TAG, 16, record + 5),
			 1);
	ck_assert_int_eq(tls_record_open(&opening, record, 21, content, &type),
			 -SSL_AD_UNEXPECTED_MESSAGE);
	close_both();
}
END_TEST

START_TEST(ends_of_a_key)
{
	open_both(AES_128);
	ck_assert(!tls_key_is_worn(&sealing));
	sealing.number = (1u << 24) - 1;
	ck_assert(!tls_key_is_worn(&sealing));
	ck_assert_uint_gt(seal("x", 1, TLS_DATA), 0);
	ck_assert(tls_key_is_worn(&sealing));
	ck_assert(tls_key_renew(&sealing));
	ck_assert(!tls_key_is_worn(&sealing));
	/* The number never begins again. */
	sealing.number = UINT64_MAX;
	ck_assert_uint_eq(seal("x", 1, TLS_DATA), 0);
	ck_assert_uint_eq(seal(content, TLS_RECORD_MAX + 1, TLS_DATA), 0);
	close_both();
}
END_TEST

START_TEST(refused_keys)
{
	static const struct tls_traffic shorter = {.length = 32}, longer = {.length = 48};

	ck_assert(!tls_key_open(&sealing, 0x1304, &shorter, true));
	ck_assert(!tls_key_open(&sealing, AES_128, &longer, true));
	ck_assert(!tls_key_open(&sealing, AES_256, &shorter, true));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, records_of_rfc_8448);
	tcase_add_loop_test(tcase, there_and_back, 0, 3);
	tcase_add_loop_test(tcase, changed_records, 0, 3);
	tcase_add_test(tcase, padding);
	tcase_add_test(tcase, headers);
	tcase_add_test(tcase, nothing_encrypted);
	tcase_add_test(tcase, ends_of_a_key);
	tcase_add_test(tcase, refused_keys);
}

RUN_SUITE("tls-record", fill)
