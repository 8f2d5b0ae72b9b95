/* SPDX-License-Identifier: MIT */
/*
 * apr1.c - see apr1.h.  This is the MD5 scheme of crypt(3) ("$1$") with another
 * magic string in its first digest.  No state; any thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <glib.h>

#include "auth/apr1.h"

#define DIGEST 16
#define ROUNDS 1000

static void add(GChecksum *sum, const void *data, size_t length)
{
	g_checksum_update(sum, data, (gssize)length);
}

/* Returns the digest and resets the checksum. */
static void end(GChecksum *sum, uint8_t *digest)
{
	gsize length = DIGEST;

	g_checksum_get_digest(sum, digest, &length);
	g_checksum_reset(sum);
}

/* Writes six bits per character, lowest first. */
static char *encode(char *at, unsigned value, unsigned characters)
{
	static const char letters[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz";

	for (; characters > 0; characters--, value >>= 6)
		*at++ = letters[value & 0x3f];
	return at;
}

static void first_digest(GChecksum *sum, const char *password, size_t length, const char *salt,
			 size_t salt_length, uint8_t *digest)
{
	add(sum, password, length);
	add(sum, salt, salt_length);
	add(sum, password, length);
	end(sum, digest);
	add(sum, password, length);
	add(sum, APR1_MAGIC, strlen(APR1_MAGIC));
	add(sum, salt, salt_length);
	for (size_t left = length; left > 0; left -= left < DIGEST ? left : DIGEST)
		add(sum, digest, left < DIGEST ? left : DIGEST);
	/* Part of the scheme: a zero byte or the first character for each bit of the length. */
	for (size_t bits = length; bits > 0; bits >>= 1)
		add(sum, bits & 1 ? "" : password, 1);
	end(sum, digest);
}

void apr1_crypt(const char *password, const char *setting, char *out)
{
	const char *salt = setting + strlen(APR1_MAGIC);
	size_t length = strlen(password), salt_length = strcspn(salt, "$");
	GChecksum *sum = g_checksum_new(G_CHECKSUM_MD5);
	uint8_t digest[DIGEST];
	char *at;

	if (salt_length > 8)
		salt_length = 8;
	first_digest(sum, password, length, salt, salt_length, digest);
	for (unsigned round = 0; round < ROUNDS; round++) {
		bool odd = round & 1;

		add(sum, odd ? (const void *)password : digest, odd ? length : DIGEST);
		if (round % 3)
			add(sum, salt, salt_length);
		if (round % 7)
			add(sum, password, length);
		add(sum, odd ? (const void *)digest : password, odd ? DIGEST : length);
		end(sum, digest);
	}
	g_checksum_free(sum);
	at = out + sprintf(out, APR1_MAGIC "%.*s$", (int)salt_length, salt);
	for (unsigned i = 0; i < 5; i++)
		at = encode(at,
			    (unsigned)digest[i] << 16 | (unsigned)digest[i + 6] << 8 |
				    digest[i < 4 ? i + 12 : 5],
			    4);
	at = encode(at, digest[11], 2);
	*at = '\0';
}
