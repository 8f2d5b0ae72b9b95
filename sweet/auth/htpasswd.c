/* SPDX-License-Identifier: MIT */
/*
 * htpasswd.c - see htpasswd.h.  crypt_r(3) verifies most formats; "$apr1$" is in
 * apr1.c, and {SHA} and {SSHA} are SHA-1 in base64.
 */
#include <crypt.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <glib.h>

#include "auth/apr1.h"
#include "auth/htpasswd.h"

#define SHA1 20 /* bytes */

struct htpasswd {
	_Atomic unsigned references;
	GHashTable *hashes; /* user to hash */
	char *any;	    /* any hash of the table; NULL: the table is empty */
};

/* --- hashes --------------------------------------------------------------------- */

bool htpasswd_equal(const void *a, const void *b, size_t length)
{
	const volatile unsigned char *left = a, *right = b;
	unsigned char differs = 0;

	for (size_t i = 0; i < length; i++)
		differs |= left[i] ^ right[i];
	return differs == 0;
}

static bool equal_text(const char *a, const char *b)
{
	size_t length = strlen(a);

	/* The length is not secret: the format determines it. */
	return strlen(b) == length && htpasswd_equal(a, b, length);
}

/* Verifies SHA-1 of password and salt; encoded is base64 of the digest and the salt. */
static int verify_sha(const char *encoded, const char *password)
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA1);
	gsize length, digest_length = SHA1;
	guchar *decoded = g_base64_decode(encoded, &length);
	guint8 digest[SHA1];
	int error = -EACCES;

	if (length >= SHA1) {
		g_checksum_update(sum, (const guchar *)password, (gssize)strlen(password));
		g_checksum_update(sum, decoded + SHA1, (gssize)(length - SHA1));
		g_checksum_get_digest(sum, digest, &digest_length);
		if (htpasswd_equal(digest, decoded, SHA1))
			error = 0;
	}
	g_checksum_free(sum);
	g_free(decoded);
	return error;
}

static int verify_crypt(const char *hash, const char *password)
{
	/* Too large for the stack of a thread. */
	struct crypt_data *data = g_new0(struct crypt_data, 1);
	const char *made = crypt_r(password, hash, data);
	int error = -EACCES;

	/* On failure some implementations return "*" instead of NULL. */
	if (!made || *made == '*')
		error = -ENOTSUP;
	else if (equal_text(hash, made))
		error = 0;
	explicit_bzero(data, sizeof(*data));
	g_free(data);
	return error;
}

int htpasswd_verify(const char *hash, const char *password)
{
	char made[APR1_MAX];

	if (g_str_has_prefix(hash, "{SHA}"))
		return verify_sha(hash + strlen("{SHA}"), password);
	if (g_str_has_prefix(hash, "{SSHA}"))
		return verify_sha(hash + strlen("{SSHA}"), password);
	if (!g_str_has_prefix(hash, APR1_MAGIC))
		return verify_crypt(hash, password);
	apr1_crypt(password, hash, made);
	return equal_text(hash, made) ? 0 : -EACCES;
}

static bool is_base64(const char *text, gsize at_least, gsize at_most)
{
	size_t length = strlen(text);
	guchar *decoded;
	gsize bytes;

	if (length % 4 != 0 ||
	    length != strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				   "0123456789+/="))
		return false;
	decoded = g_base64_decode(text, &bytes);
	g_free(decoded);
	return bytes >= at_least && bytes <= at_most;
}

/* Returns true if it looks like one of the formats. crypt(3) checks it at its first use. */
static bool is_hash(const char *hash)
{
	static const char *const forms[] = {"$1$",  "$5$", "$6$", "$2a$", "$2b$",
					    "$2y$", "$y$", "$7$", "$gy$", "$sha1$"};
	static const char letters[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz";

	if (g_str_has_prefix(hash, "{SHA}"))
		return is_base64(hash + strlen("{SHA}"), SHA1, SHA1);
	if (g_str_has_prefix(hash, "{SSHA}"))
		return is_base64(hash + strlen("{SSHA}"), SHA1, SHA1 + 64);
	if (g_str_has_prefix(hash, APR1_MAGIC)) {
		const char *salt = hash + strlen(APR1_MAGIC);
		size_t length = strcspn(salt, "$");

		return length <= 8 && salt[length] == '$' && strlen(salt + length + 1) == 22;
	}
	for (unsigned i = 0; i < G_N_ELEMENTS(forms); i++)
		if (g_str_has_prefix(hash, forms[i]))
			return strlen(hash) > strlen(forms[i]);
	/* The oldest format: two characters of salt and eleven of hash. */
	return strlen(hash) == 13 && strspn(hash, letters) == 13;
}

/* --- the file ------------------------------------------------------------------- */

/* Adds one line, which is modified; returns an error message or NULL. */
static const char *add_line(struct htpasswd *file, char *line)
{
	char *hash, *end;

	g_strchomp(line);
	if (*line == '\0' || *line == '#')
		return NULL;
	hash = strchr(line, ':');
	if (!hash)
		return "there must be USER:HASH, as htpasswd writes it";
	*hash++ = '\0';
	end = strchr(hash, ':');
	if (end)
		*end = '\0';
	if (*line == '\0')
		return "the user's name is missing";
	if (strlen(line) > HTPASSWD_USER_MAX)
		return "the user's name is longer than 127 bytes";
	if (g_hash_table_contains(file->hashes, line))
		return "this user already has a line above";
	if (!is_hash(hash))
		return "the format of the password is unknown: make the line with "
		       "\"htpasswd -B\" (bcrypt)";
	hash = g_strdup(hash);
	g_hash_table_insert(file->hashes, g_strdup(line), hash);
	if (!file->any)
		file->any = hash;
	return NULL;
}

struct htpasswd *htpasswd_parse(const char *name, const char *text, size_t length, char **why)
{
	struct htpasswd *file = g_new0(struct htpasswd, 1);
	const char *at = text, *end = text + length;
	const char *wrong = NULL;
	unsigned number = 0;

	atomic_init(&file->references, 1);
	file->hashes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	*why = NULL;
	while (at < end && !wrong) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t bytes = (size_t)((newline ? newline : end) - at);
		char *line = g_strndup(at, bytes);

		number++;
		wrong = memchr(at, '\0', bytes) ? "the line has a NUL byte in it"
						: add_line(file, line);
		g_free(line);
		at += bytes + 1;
	}
	if (!wrong)
		return file;
	*why = g_strdup_printf("%s:%u: %s", name, number, wrong);
	htpasswd_release(file);
	return NULL;
}

struct htpasswd *htpasswd_read(const char *path, char **why)
{
	struct htpasswd *file = NULL;
	GError *error = NULL;
	gsize length;
	char *text;

	if (!g_file_get_contents(path, &text, &length, &error)) {
		*why = g_strdup_printf("cannot read the users and passwords: %s", error->message);
		g_error_free(error);
		return NULL;
	}
	if (length > HTPASSWD_FILE_MAX)
		*why = g_strdup_printf("%s: has more than %u bytes: is it a file of users and "
				       "passwords?",
				       path, HTPASSWD_FILE_MAX);
	else
		file = htpasswd_parse(path, text, length, why);
	explicit_bzero(text, length);
	g_free(text);
	return file;
}

struct htpasswd *htpasswd_hold(struct htpasswd *file)
{
	atomic_fetch_add_explicit(&file->references, 1, memory_order_relaxed);
	return file;
}

void htpasswd_release(struct htpasswd *file)
{
	if (!file || atomic_fetch_sub_explicit(&file->references, 1, memory_order_acq_rel) != 1)
		return;
	g_hash_table_destroy(file->hashes);
	g_free(file);
}

const char *htpasswd_find(const struct htpasswd *file, const char *user)
{
	return g_hash_table_lookup(file->hashes, user);
}

const char *htpasswd_any(const struct htpasswd *file)
{
	return file->any;
}
