/* SPDX-License-Identifier: MIT */
/*
 * tls-record.h - records of TLS 1.3 (RFC 8446, section 5.2), made or read with one key.
 *
 * The ciphers are OpenSSL's.  It would also make and read the records, but copies what they contain
 * into memory of its own first; here they are encrypted from where the caller has them, into the
 * output, and decrypted from the input into the caller's memory.
 */
#ifndef SWEET_TLS_RECORD_H
#define SWEET_TLS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <openssl/evp.h>

#include "tls/tls-output.h"
#include "tls/tls.h"

struct iovec;

#define TLS_SECRET_MAX 48u /* bytes */
#define TLS_KEY_MAX 32u
#define TLS_IV 12u
#define TLS_RECORD_HEADER 5u /* bytes of a record before what is encrypted */

enum tls_content { TLS_CHANGE_CIPHER = 20, TLS_ALERT = 21, TLS_HANDSHAKE = 22, TLS_DATA = 23 };

/* A traffic secret, for one direction of a connection; and what follows from it, if that is known. */
struct tls_traffic {
	unsigned char secret[TLS_SECRET_MAX], key[TLS_KEY_MAX], iv[TLS_IV];
	size_t length, key_length, iv_length; /* of key and iv: 0 if they are not known */
};

/* What makes or reads the records of that direction. */
struct tls_key {
	const struct tls_suite *suite;
	EVP_CIPHER_CTX *cipher;
	uint64_t number; /* of the next record */
	unsigned char iv[TLS_IV], secret[TLS_SECRET_MAX];
};

/*
 * Opens the key of a suite (its number, RFC 8446, appendix B.4).  seals: it makes records, else it
 * reads them.  Returns false without memory, or if the suite is unknown.
 */
bool tls_key_open(struct tls_key *key, uint16_t suite, const struct tls_traffic *traffic,
		  bool seals);
void tls_key_close(struct tls_key *key);

/* Uses the next key (section 7.2); returns false without memory: close it. */
bool tls_key_renew(struct tls_key *key);

/* Whether it has made as many records as it may (section 5.5): renew it. */
bool tls_key_is_worn(const struct tls_key *key);

/*
 * Makes a record of the pieces, together at most 16,384 bytes, at *record, which has room for them
 * and TLS_RECORD_MORE.  Returns its length, or 0 on failure.
 */
size_t tls_record_seal(struct tls_key *key, enum tls_content type, const struct iovec *pieces,
		       unsigned count, unsigned char *record);

/* Returns the length of a record with that header, or minus the alert that it deserves. */
ssize_t tls_record_length(const unsigned char header[TLS_RECORD_HEADER]);

/*
 * Decrypts a record of that length to *content, which has room for 16,385 bytes.  Returns the
 * bytes of the content and its *type, or minus the alert that the record deserves.
 */
ssize_t tls_record_open(struct tls_key *key, const unsigned char *record, size_t length,
			unsigned char *content, unsigned char *type);

#endif
