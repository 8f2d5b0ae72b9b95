/* SPDX-License-Identifier: MIT */
/*
 * tls-record.c - see tls-record.h.
 */
#include <openssl/params.h>
#include <pthread.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>

#include "tls/record/tls-record.h"

#define TAG 16u
#define WORN (UINT64_C(1) << 24) /* of 24 million records that AES-GCM may encrypt */
/* To copy a short piece, so that it is encrypted with its neighbours, costs less than a call. */
#define TOGETHER_MAX 4096u

struct tls_suite {
	uint16_t number;
	const char *cipher_name, *digest_name;
	size_t key_length, secret_length;
	EVP_CIPHER *cipher;
	EVP_MAC_CTX *mac; /* HMAC with the digest; copied for each use */
};

static struct tls_suite suites[] = {
	{TLS1_3_CK_AES_128_GCM_SHA256 & 0xffff, "AES-128-GCM", "SHA256", 16, 32, NULL, NULL},
	{TLS1_3_CK_AES_256_GCM_SHA384 & 0xffff, "AES-256-GCM", "SHA384", 32, 48, NULL, NULL},
	{TLS1_3_CK_CHACHA20_POLY1305_SHA256 & 0xffff, "ChaCha20-Poly1305", "SHA256", 32, 32, NULL,
	 NULL},
};
#define SUITES (sizeof(suites) / sizeof(suites[0]))

/* --- suites ---------------------------------------------------------------------------------- */

/* Once, since to look an algorithm up by name costs more than to encrypt a short record. */
static void find_algorithms(void)
{
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);

	for (size_t i = 0; i < SUITES; i++) {
		OSSL_PARAM digest[] = {
			OSSL_PARAM_construct_utf8_string(
				OSSL_MAC_PARAM_DIGEST, (char *)(uintptr_t)suites[i].digest_name, 0),
			OSSL_PARAM_construct_end()};

		suites[i].cipher = EVP_CIPHER_fetch(NULL, suites[i].cipher_name, NULL);
		suites[i].mac = hmac ? EVP_MAC_CTX_new(hmac) : NULL;
		if (suites[i].mac && EVP_MAC_CTX_set_params(suites[i].mac, digest) != 1) {
			EVP_MAC_CTX_free(suites[i].mac);
			suites[i].mac = NULL;
		}
	}
	EVP_MAC_free(hmac);
}

static const struct tls_suite *find_suite(uint16_t number)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_algorithms);
	for (size_t i = 0; i < SUITES; i++)
		if (suites[i].number == number && suites[i].cipher && suites[i].mac)
			return &suites[i];
	return NULL;
}

/* --- keys ------------------------------------------------------------------------------------ */

/* Begins HMAC with the key's secret; returns NULL without memory. */
static EVP_MAC_CTX *begin_mac(const struct tls_key *key)
{
	EVP_MAC_CTX *mac = EVP_MAC_CTX_dup(key->suite->mac);

	if (mac && EVP_MAC_init(mac, key->secret, key->suite->secret_length, NULL) == 1)
		return mac;
	EVP_MAC_CTX_free(mac);
	return NULL;
}

/*
 * HKDF-Expand-Label (section 7.1) without a context, for a length that one block of HKDF has (RFC
 * 5869, section 2.3).
 */
static bool expand(EVP_MAC_CTX *mac, const char *label, unsigned char *out, size_t length)
{
	unsigned char info[32] = {0, (unsigned char)length}, block[EVP_MAX_MD_SIZE];
	size_t label_length = strlen(label), end = 3 + label_length, made;
	bool good;

	info[2] = (unsigned char)label_length;
	memcpy(info + 3, label, label_length);
	info[end++] = 0; /* bytes of the context */
	info[end++] = 1; /* the number of the block */
	good = EVP_MAC_update(mac, info, end) == 1 &&
	       EVP_MAC_final(mac, block, &made, sizeof(block)) == 1 && length <= made;
	if (good)
		memcpy(out, block, length);
	OPENSSL_cleanse(block, sizeof(block));
	return good;
}

/* seals: 1, 0, or -1: as before. */
static bool use(struct tls_key *key, const unsigned char *bytes, int seals)
{
	key->number = 0;
	return EVP_CipherInit_ex2(key->cipher, key->suite->cipher, bytes, key->iv, seals, NULL) ==
	       1;
}

/* Uses what follows from the secret. */
static bool derive(struct tls_key *key, int seals)
{
	unsigned char bytes[TLS_KEY_MAX];
	EVP_MAC_CTX *mac = begin_mac(key);
	bool good = mac && expand(mac, "tls13 key", bytes, key->suite->key_length) &&
		    EVP_MAC_init(mac, NULL, 0, NULL) == 1 && /* once more, with the same secret */
		    expand(mac, "tls13 iv", key->iv, sizeof(key->iv)) && use(key, bytes, seals);

	OPENSSL_cleanse(bytes, sizeof(bytes));
	EVP_MAC_CTX_free(mac);
	return good;
}

/* Uses what is known. */
static bool take(struct tls_key *key, const struct tls_traffic *traffic, bool seals)
{
	if (traffic->key_length != key->suite->key_length || traffic->iv_length != sizeof(key->iv))
		return derive(key, seals);
	memcpy(key->iv, traffic->iv, sizeof(key->iv));
	return use(key, traffic->key, seals);
}

bool tls_key_open(struct tls_key *key, uint16_t suite, const struct tls_traffic *traffic,
		  bool seals)
{
	*key = (struct tls_key){.suite = find_suite(suite)};
	if (!key->suite || traffic->length != key->suite->secret_length)
		return false;
	memcpy(key->secret, traffic->secret, traffic->length);
	key->cipher = EVP_CIPHER_CTX_new();
	if (key->cipher && take(key, traffic, seals))
		return true;
	tls_key_close(key);
	return false;
}

void tls_key_close(struct tls_key *key)
{
	EVP_CIPHER_CTX_free(key->cipher);
	OPENSSL_cleanse(key, sizeof(*key));
}

bool tls_key_renew(struct tls_key *key)
{
	EVP_MAC_CTX *mac = begin_mac(key);
	bool good = mac && expand(mac, "tls13 traffic upd", key->secret, key->suite->secret_length);

	EVP_MAC_CTX_free(mac);
	return good && derive(key, -1);
}

bool tls_key_is_worn(const struct tls_key *key)
{
	return key->number >= WORN;
}

/* The initial value with the record's number (section 5.3); no number is used twice. */
static bool next_record(struct tls_key *key)
{
	unsigned char nonce[sizeof(key->iv)];

	if (key->number == UINT64_MAX)
		return false;
	memcpy(nonce, key->iv, sizeof(nonce));
	for (unsigned i = 0; i < 8; i++)
		nonce[sizeof(nonce) - 1 - i] ^= (unsigned char)(key->number >> 8 * i);
	key->number++;
	return EVP_CipherInit_ex2(key->cipher, NULL, NULL, nonce, -1, NULL) == 1;
}

/* --- making records ---------------------------------------------------------------------------- */

static bool encrypt(EVP_CIPHER_CTX *cipher, unsigned char *out, const void *data, size_t length)
{
	int made;

	return EVP_EncryptUpdate(cipher, out, &made, data, (int)length) == 1;
}

static bool encrypt_pieces(EVP_CIPHER_CTX *cipher, const struct iovec *pieces, unsigned count,
			   unsigned char type, unsigned char *out)
{
	for (unsigned i = 0; i < count; i++) {
		if (!encrypt(cipher, out, pieces[i].iov_base, pieces[i].iov_len))
			return false;
		out += pieces[i].iov_len;
	}
	return encrypt(cipher, out, &type, 1);
}

static bool encrypt_together(EVP_CIPHER_CTX *cipher, const struct iovec *pieces, unsigned count,
			     unsigned char type, unsigned char *out)
{
	size_t length = tls_gather(pieces, count, out);

	out[length++] = type;
	return encrypt(cipher, out, out, length);
}

size_t tls_record_seal(struct tls_key *key, enum tls_content type, const struct iovec *pieces,
		       unsigned count, unsigned char *record)
{
	unsigned char *inner = record + TLS_RECORD_HEADER;
	size_t length = 1;
	int made;

	for (unsigned i = 0; i < count; i++)
		length += pieces[i].iov_len;
	record[0] = TLS_DATA; /* whatever it is: that is encrypted */
	record[1] = record[2] = 3;
	record[3] = (unsigned char)((length + TAG) >> 8);
	record[4] = (unsigned char)(length + TAG);
	if (length > TLS_READ_ROOM || !next_record(key) ||
	    EVP_EncryptUpdate(key->cipher, NULL, &made, record, TLS_RECORD_HEADER) != 1)
		return 0;
	if (!(length <= TOGETHER_MAX ? encrypt_together : encrypt_pieces)(
		    key->cipher, pieces, count, (unsigned char)type, inner) ||
	    EVP_EncryptFinal_ex(key->cipher, inner + length, &made) != 1 ||
	    EVP_CIPHER_CTX_ctrl(key->cipher, EVP_CTRL_AEAD_GET_TAG, TAG, inner + length) != 1)
		return 0;
	return TLS_RECORD_HEADER + length + TAG;
}

/* --- reading records ------------------------------------------------------------------------- */

ssize_t tls_record_length(const unsigned char header[TLS_RECORD_HEADER])
{
	size_t length = (size_t)header[3] << 8 | header[4];

	/* What is not encrypted has no place here (section 5).  The version is ignored (5.1). */
	if (header[0] != TLS_DATA)
		return -SSL_AD_UNEXPECTED_MESSAGE;
	if (length > TLS_READ_ROOM + TAG)
		return -SSL_AD_RECORD_OVERFLOW;
	if (length < TAG)
		return -SSL_AD_BAD_RECORD_MAC;
	return (ssize_t)(TLS_RECORD_HEADER + length);
}

ssize_t tls_record_open(struct tls_key *key, const unsigned char *record, size_t length,
			unsigned char *content, unsigned char *type)
{
	size_t inner = length - TLS_RECORD_HEADER - TAG;
	const unsigned char *tag = record + length - TAG;
	int made;

	if (!next_record(key) ||
	    EVP_CIPHER_CTX_ctrl(key->cipher, EVP_CTRL_AEAD_SET_TAG, TAG, (void *)(uintptr_t)tag) !=
		    1 ||
	    EVP_DecryptUpdate(key->cipher, NULL, &made, record, TLS_RECORD_HEADER) != 1 ||
	    EVP_DecryptUpdate(key->cipher, content, &made, record + TLS_RECORD_HEADER,
			      (int)inner) != 1 ||
	    EVP_DecryptFinal_ex(key->cipher, content + inner, &made) != 1)
		return -SSL_AD_BAD_RECORD_MAC;
	/* The type follows the content, and zeros as padding the type (section 5.4). */
	while (inner > 0 && content[inner - 1] == 0)
		inner--;
	if (inner == 0)
		return -SSL_AD_UNEXPECTED_MESSAGE;
	*type = content[--inner];
	return (ssize_t)inner;
}
