/* SPDX-License-Identifier: MIT */
/*
 * auth-cache.c - caches valid credentials for some time after each use, as a keyed hash of user,
 * password and line of the file: a check of the same three would have the same result.  Any thread.
 *
 * A table of sets with a fixed size, not a hash table of GLib: its memory is wiped at the end, and
 * the oldest entry of a set is overwritten.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <glib.h>

#include "auth/htpasswd.h"
#include "core/auth-check.h"
#include "core/auth-internal.h"
#include "core/auth.h"

#define REMEMBER_NS (300 * AUTH_SECOND_NS)

static void digest(const struct authenticator *authenticator, const char *hash,
		   const struct auth_check *check, uint8_t out[AUTH_DIGEST])
{
	GHmac *hmac = g_hmac_new(G_CHECKSUM_SHA256, authenticator->salt, AUTH_DIGEST);
	gsize length = AUTH_DIGEST;

	/* With their NULs, which separate them, as none contains one. */
	g_hmac_update(hmac, (const guchar *)hash, (gssize)strlen(hash) + 1);
	g_hmac_update(hmac, (const guchar *)check->user, (gssize)strlen(check->user) + 1);
	g_hmac_update(hmac, (const guchar *)check->password, (gssize)strlen(check->password) + 1);
	g_hmac_get_digest(hmac, out, &length);
	g_hmac_unref(hmac);
}

bool auth_is_remembered(struct authenticator *authenticator, const char *hash,
			const struct auth_check *check, uint64_t now_ns)
{
	struct memory *set;
	uint8_t key[AUTH_DIGEST];
	bool found = false;

	digest(authenticator, hash, check, key);
	set = authenticator->memories[key[0] % AUTH_SETS];
	pthread_mutex_lock(&authenticator->lock);
	for (unsigned i = 0; i < AUTH_WAYS; i++) {
		if (set[i].until_ns <= now_ns || !htpasswd_equal(set[i].digest, key, AUTH_DIGEST))
			continue;
		set[i].until_ns = now_ns + REMEMBER_NS;
		found = true;
	}
	pthread_mutex_unlock(&authenticator->lock);
	return found;
}

void auth_remember(struct authenticator *authenticator, const char *hash,
		   const struct auth_check *check, uint64_t now_ns)
{
	struct memory *set, *spare;
	uint8_t key[AUTH_DIGEST];

	digest(authenticator, hash, check, key);
	set = spare = authenticator->memories[key[0] % AUTH_SETS];
	pthread_mutex_lock(&authenticator->lock);
	for (unsigned i = 0; i < AUTH_WAYS; i++) {
		if (htpasswd_equal(set[i].digest, key, AUTH_DIGEST)) {
			spare = &set[i];
			break;
		}
		if (set[i].until_ns < spare->until_ns)
			spare = &set[i];
	}
	memcpy(spare->digest, key, AUTH_DIGEST);
	spare->until_ns = now_ns + REMEMBER_NS;
	pthread_mutex_unlock(&authenticator->lock);
}
