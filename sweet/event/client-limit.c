/* SPDX-License-Identifier: MIT */
/*
 * client-limit.c - see client-limit.h.
 *
 * Requests: a table of sets of WAYS entries.  An entry holds the keyed hash of
 * client and scope, and the time when the bucket is full again (the "theoretical
 * arrival time" of the generic cell rate algorithm), so one number is the whole
 * bucket.  If that time is past, the bucket is full, which is the same as no entry.
 * When a set is full, the entry with the earliest time is replaced.
 *
 * GLib's hash table has no bounded size, and a block of memory for each entry, so it is not
 * used for these.
 *
 * Connections: a counter for each client that has connections of a scope, in a hash table of
 * each stripe.
 *
 * Locks are striped; each is held for a few comparisons.  No lock is taken while no
 * limit is configured, because then nobody calls these functions.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/random.h>

#include <glib.h>

#include "base/siphash.h"
#include "event/client-limit.h"

#define WAYS 8
#define STRIPES 64

struct bucket {
	uint64_t who;
	uint64_t full_ns; /* when the whole burst is available again; 0: no entry */
};

struct limited_client {
	uint64_t who; /* must be first: its key */
	unsigned connections;
};

union stripe {
	struct {
		pthread_mutex_t lock;
		GHashTable *clients; /* struct limited_client */
	};
	char line[64]; /* a cache line of the processor */
};

struct client_limits {
	union stripe stripes[STRIPES];
	uint8_t key[16];
	unsigned sets; /* a power of two */
	struct bucket buckets[];
};

struct client_limits *client_limits_open(unsigned entries)
{
	struct client_limits *limits;
	unsigned sets = 1;

	while (sets * WAYS < entries)
		sets *= 2;
	/* Untouched pages take no memory. */
	limits = calloc(1, sizeof(*limits) + sizeof(struct bucket) * WAYS * sets);
	if (!limits)
		return NULL;
	limits->sets = sets;
	for (unsigned i = 0; i < STRIPES; i++) {
		pthread_mutex_init(&limits->stripes[i].lock, NULL);
		limits->stripes[i].clients =
			g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	}
	if (getrandom(limits->key, sizeof(limits->key), 0) == sizeof(limits->key))
		return limits;
	client_limits_close(limits);
	return NULL;
}

void client_limits_close(struct client_limits *limits)
{
	if (!limits)
		return;
	for (unsigned i = 0; i < STRIPES; i++) {
		g_hash_table_unref(limits->stripes[i].clients);
		pthread_mutex_destroy(&limits->stripes[i].lock);
	}
	free(limits);
}

/* All clients of Unix sockets count as one. */
struct client_address client_address(const struct sockaddr *address)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
	struct client_address who = {.family = address ? address->sa_family : AF_UNSPEC};

	if (who.family == AF_INET) {
		memcpy(who.net, &in->sin_addr, 4);
	} else if (who.family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		who.family = AF_INET;
		memcpy(who.net, in6->sin6_addr.s6_addr + 12, 4);
	} else if (who.family == AF_INET6) {
		memcpy(who.net, in6->sin6_addr.s6_addr, 8);
	}
	return who;
}

/* Returns the hash of a client in a scope. */
static uint64_t number(const struct client_limits *limits, const struct client_address *who,
		       uint64_t scope)
{
	struct {
		uint64_t scope;
		struct client_address who;
	} whole = {.scope = scope, .who = *who};

	return siphash(limits->key, &whole, sizeof(whole));
}

/* --- connections ------------------------------------------------------------------ */

uint64_t client_limits_scope(const char *name)
{
	static const uint8_t no_key[16];

	return siphash(no_key, name, strlen(name));
}

struct limited_client *client_limits_enter(struct client_limits *limits, uint64_t scope,
					   const struct sockaddr *address, unsigned at_most)
{
	struct client_address from = client_address(address);
	uint64_t who = number(limits, &from, scope);
	union stripe *stripe = &limits->stripes[who % STRIPES];
	struct limited_client *client;

	pthread_mutex_lock(&stripe->lock);
	client = g_hash_table_lookup(stripe->clients, &who);
	if (client) {
		if (client->connections >= at_most)
			client = NULL;
		else
			client->connections++;
	} else if (at_most > 0) {
		client = g_new(struct limited_client, 1);
		*client = (struct limited_client){.who = who, .connections = 1};
		g_hash_table_add(stripe->clients, client);
	}
	pthread_mutex_unlock(&stripe->lock);
	return client;
}

void client_limits_leave(struct client_limits *limits, struct limited_client *client)
{
	union stripe *stripe = &limits->stripes[client->who % STRIPES];

	pthread_mutex_lock(&stripe->lock);
	if (--client->connections == 0)
		g_hash_table_remove(stripe->clients, client);
	pthread_mutex_unlock(&stripe->lock);
}

/* --- requests ----------------------------------------------------------------------- */

struct rate_limit *rate_new(const char *name, unsigned rate, unsigned burst)
{
	struct rate_limit *limit = malloc(sizeof(*limit));

	if (!limit)
		return NULL;
	limit->scope = client_limits_scope(name);
	limit->interval_ns = 1000000000u / rate;
	if (limit->interval_ns == 0)
		limit->interval_ns = 1;
	limit->burst_ns = limit->interval_ns * (burst - 1);
	return limit;
}

void rate_free(struct rate_limit *rate)
{
	free(rate);
}

/* Returns the entry of who, or NULL. */
static struct bucket *find_locked(struct bucket *set, uint64_t who)
{
	for (unsigned i = 0; i < WAYS; i++)
		if (set[i].who == who && set[i].full_ns)
			return &set[i];
	return NULL;
}

/* Returns the entry to replace. */
static struct bucket *victim_locked(struct bucket *set)
{
	struct bucket *spare = &set[0];

	for (unsigned i = 1; i < WAYS; i++)
		if (set[i].full_ns < spare->full_ns)
			spare = &set[i];
	return spare;
}

uint64_t client_limits_take(struct client_limits *limits, const struct rate_limit *rate,
			    const struct sockaddr *address, uint64_t now_ns)
{
	struct client_address from = client_address(address);
	uint64_t who = number(limits, &from, rate->scope), wait = 0;
	unsigned place = who & (limits->sets - 1);
	pthread_mutex_t *lock = &limits->stripes[place % STRIPES].lock;
	struct bucket *set = &limits->buckets[(size_t)place * WAYS], *bucket;

	pthread_mutex_lock(lock);
	bucket = find_locked(set, who);
	if (!bucket) {
		bucket = victim_locked(set);
		*bucket = (struct bucket){.who = who};
	}
	if (bucket->full_ns < now_ns)
		bucket->full_ns = now_ns;
	if (bucket->full_ns - now_ns > rate->burst_ns)
		wait = bucket->full_ns - now_ns - rate->burst_ns;
	else
		bucket->full_ns += rate->interval_ns;
	pthread_mutex_unlock(lock);
	return wait;
}

void client_limits_put_back(struct client_limits *limits, const struct rate_limit *rate,
			    const struct client_address *from)
{
	uint64_t who = number(limits, from, rate->scope);
	unsigned place = who & (limits->sets - 1);
	pthread_mutex_t *lock = &limits->stripes[place % STRIPES].lock;
	struct bucket *bucket;

	pthread_mutex_lock(lock);
	bucket = find_locked(&limits->buckets[(size_t)place * WAYS], who);
	if (bucket && bucket->full_ns > rate->interval_ns)
		bucket->full_ns -= rate->interval_ns;
	pthread_mutex_unlock(lock);
}
