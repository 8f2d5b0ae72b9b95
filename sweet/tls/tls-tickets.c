/* SPDX-License-Identifier: MIT */
/*
 * tls-tickets.c - see tls-tickets.h.
 */
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <sys/types.h>

#include "tls/tls-tickets.h"

#define SEED 32u

struct tls_tickets {
	pthread_mutex_t lock;
	uint64_t hour;		    /* of the seed */
	unsigned char seed[SEED];   /* of that hour */
	bool made;		    /* `now` was derived from the seed */
	struct tls_ticket_key now;  /* of that hour */
	struct tls_ticket_key last; /* of the hour before */
};

/* HMAC as a function of a seed: what is derived for one purpose says nothing about the others. */
static void derive(const unsigned char seed[SEED], const char *purpose, unsigned char *out,
		   size_t length)
{
	unsigned char digest[EVP_MAX_MD_SIZE];

	(void)HMAC(EVP_sha256(), seed, SEED, (const unsigned char *)purpose, strlen(purpose),
		   digest, NULL);
	memcpy(out, digest, length);
	OPENSSL_cleanse(digest, sizeof(digest));
}

/* When it is needed: a server without TLS does not start the cryptographic library. */
static void make_key(struct tls_tickets *tickets)
{
	if (tickets->made)
		return;
	derive(tickets->seed, "name", tickets->now.name, sizeof(tickets->now.name));
	derive(tickets->seed, "cipher", tickets->now.cipher, sizeof(tickets->now.cipher));
	derive(tickets->seed, "mac", tickets->now.mac, sizeof(tickets->now.mac));
	tickets->made = true;
}

static bool fill_random(void *bytes, size_t length)
{
	/* Up to 256 bytes are never cut short. */
	return getrandom(bytes, length, 0) == (ssize_t)length;
}

struct tls_tickets *tls_tickets_open(uint64_t now)
{
	struct tls_tickets *tickets = calloc(1, sizeof(*tickets));

	if (!tickets || !fill_random(tickets->seed, SEED) ||
	    !fill_random(&tickets->last, sizeof(tickets->last))) {
		free(tickets);
		return NULL;
	}
	pthread_mutex_init(&tickets->lock, NULL);
	tickets->hour = now / TLS_TICKET_LIFETIME;
	return tickets;
}

void tls_tickets_close(struct tls_tickets *tickets)
{
	if (!tickets)
		return;
	pthread_mutex_destroy(&tickets->lock);
	OPENSSL_cleanse(tickets, sizeof(*tickets));
	free(tickets);
}

/* The lock is held. */
static void advance(struct tls_tickets *tickets, uint64_t now)
{
	/* A clock that goes back keeps the keys. */
	for (; tickets->hour < now / TLS_TICKET_LIFETIME; tickets->hour++) {
		make_key(tickets);
		tickets->last = tickets->now;
		derive(tickets->seed, "seed", tickets->seed, SEED);
		tickets->made = false;
	}
}

void tls_tickets_advance(struct tls_tickets *tickets, uint64_t now)
{
	pthread_mutex_lock(&tickets->lock);
	advance(tickets, now);
	pthread_mutex_unlock(&tickets->lock);
}

void tls_tickets_current(struct tls_tickets *tickets, uint64_t now, struct tls_ticket_key *key)
{
	pthread_mutex_lock(&tickets->lock);
	advance(tickets, now);
	make_key(tickets);
	*key = tickets->now;
	pthread_mutex_unlock(&tickets->lock);
}

bool tls_tickets_find(struct tls_tickets *tickets, uint64_t now,
		      const unsigned char name[TLS_TICKET_NAME], struct tls_ticket_key *key)
{
	const struct tls_ticket_key *keys[] = {&tickets->now, &tickets->last};
	bool found = false;

	pthread_mutex_lock(&tickets->lock);
	advance(tickets, now);
	make_key(tickets);
	for (unsigned i = 0; i < 2 && !found; i++) {
		found = CRYPTO_memcmp(keys[i]->name, name, TLS_TICKET_NAME) == 0;
		if (found)
			*key = *keys[i];
	}
	pthread_mutex_unlock(&tickets->lock);
	return found;
}
