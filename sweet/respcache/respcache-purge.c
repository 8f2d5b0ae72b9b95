/* SPDX-License-Identifier: MIT */
/*
 * respcache-purge.c - drops entries, or makes them stale, by URL and by tag; see respcache-internal.h.
 *
 * A purge must also affect a response that a worker generated before it, but that
 * arrives after it.  A flight's URL is known, so the purge marks the flight, and
 * its response is not stored.  Its tags are not known before the response arrives,
 * so purged tags are logged first, and each response is compared with those purged
 * since its flight began.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/list.h"
#include "base/slice.h"
#include "http/cachekey.h"
#include "program/cacheable.h"
#include "respcache/respcache-internal.h"
#include "respcache/respcache.h"

#define TAG_MAX 1024 /* bytes */

/* --- the log ---------------------------------------------------------------------------- */

static void log_add(struct respcache_log *log, uint64_t hash)
{
	pthread_mutex_lock(&log->lock);
	log->last[log->count++ % RESPCACHE_PURGES] = hash;
	pthread_mutex_unlock(&log->lock);
}

uint64_t respcache_log_count(struct respcache *cache)
{
	uint64_t count;

	pthread_mutex_lock(&cache->log.lock);
	count = cache->log.count;
	pthread_mutex_unlock(&cache->log.lock);
	return count;
}

static bool has_tag(const struct respcache_entry *entry, uint64_t hash)
{
	for (unsigned i = 0; i < entry->tag_count; i++)
		if (entry->tags[i].hash == hash)
			return true;
	return false;
}

bool respcache_log_has(struct respcache *cache, const struct respcache_entry *entry, uint64_t since)
{
	struct respcache_log *log = &cache->log;
	bool has;

	if (!entry->tag_count)
		return false;
	pthread_mutex_lock(&log->lock);
	/* Some of the purges are no longer in the log. */
	has = log->count - since > RESPCACHE_PURGES;
	for (uint64_t i = since; !has && i < log->count; i++)
		has = has_tag(entry, log->last[i % RESPCACHE_PURGES]);
	pthread_mutex_unlock(&log->lock);
	return has;
}

/* --- by tag -------------------------------------------------------------------------------- */

/* What a purge has found in a shard. */
struct found {
	struct respcache_shard *shard;
	bool soft;
	struct list dropped;
	long count;
};

/*
 * Drops the entry, or makes it stale: then it still answers, at most as long as it would have, while
 * one request fetches another.
 */
static void purge_locked(struct found *found, struct respcache_entry *entry)
{
	if (found->soft && !entry->fresh_ns)
		return;
	if (found->soft)
		entry->fresh_ns = 0;
	else
		respcache_unlink_locked(found->shard, entry, &found->dropped);
	respcache_count(found->shard, COUNT_PURGED);
	found->count++;
}

static long end_all(struct found *found)
{
	respcache_drop(&found->dropped);
	return found->count;
}

static long purge_tag(struct respcache *cache, struct slice tag, bool soft)
{
	uint64_t hash = respcache_hash(cache, tag);
	long count = 0;

	log_add(&cache->log, hash);
	for (unsigned i = 0; i < cache->shard_count; i++) {
		struct respcache_shard *shard = &cache->shards[i];
		struct found found = {.shard = shard, .soft = soft};
		const struct list *chain = respcache_tag_chain(cache, shard, hash);
		struct respcache_tag *at;

		pthread_mutex_lock(&shard->lock);
		at = list_first(chain, struct respcache_tag, node);
		while (at) {
			bool fits = at->hash == hash;

			if (fits)
				purge_locked(&found, at->entry);
			/* A drop also removes its other tags, which may be the next ones here. */
			at = fits && !soft ? list_first(chain, struct respcache_tag, node)
					   : list_next(chain, at, node);
		}
		pthread_mutex_unlock(&shard->lock);
		count += end_all(&found);
	}
	return count;
}

void respcache_purge_tags(struct respcache *cache, struct slice list, bool soft)
{
	struct slice tag;

	while (cacheable_tag(&list, &tag))
		(void)purge_tag(cache, tag, soft);
}

/* --- by URL ----------------------------------------------------------------------------------- */

/* Selects the keys to drop by their URLs. */
struct pattern {
	struct slice url; /* begins with a blank if it is for all hosts */
	bool prefix;
};

static bool purge_fits(const struct pattern *pattern, const struct respcache_key *whole)
{
	struct slice wanted = pattern->url, key = {whole->text.at, whole->url_length};

	if (wanted.at[0] == ' ') {
		const char *blank = memchr(key.at, ' ', key.length);

		key.length -= (size_t)(blank - key.at);
		key.at = blank;
	}
	return (pattern->prefix ? key.length >= wanted.length : key.length == wanted.length) &&
	       memcmp(key.at, wanted.at, wanted.length) == 0;
}

static long purge_shard(struct respcache_shard *shard, const struct pattern *pattern, bool soft)
{
	struct found found = {.shard = shard, .soft = soft};

	pthread_mutex_lock(&shard->lock);
	list_each (struct respcache_flight, at, &shard->flights, node)
		at->purged |= purge_fits(pattern, &at->key);
	list_each (struct respcache_entry, entry, &shard->ages, by_age)
		if (purge_fits(pattern, &entry->key))
			purge_locked(&found, entry);
	pthread_mutex_unlock(&shard->lock);
	return end_all(&found);
}

/* For one URL: all its entries are in one chain. */
static long purge_one(struct respcache *cache, struct slice url, bool soft)
{
	uint64_t hash = respcache_hash(cache, url);
	struct respcache_shard *shard = respcache_shard(cache, hash);
	struct found found = {.shard = shard, .soft = soft};

	pthread_mutex_lock(&shard->lock);
	list_each (struct respcache_flight, at, &shard->flights, node)
		at->purged |= at->key.hash == hash;
	list_each (struct respcache_entry, entry, respcache_chain(cache, hash), node)
		if (respcache_key_has_url(&entry->key, hash, url))
			purge_locked(&found, entry);
	pthread_mutex_unlock(&shard->lock);
	return end_all(&found);
}

static long purge_url(struct respcache *cache, struct slice url, bool soft)
{
	char text[CACHEKEY_URL_MAX];
	struct pattern pattern = {{text, 0}, false};
	long count = 0;

	pattern.url.length = cachekey_of_url(url, text, &pattern.prefix);
	if (!pattern.url.length)
		return -EINVAL;
	if (!pattern.prefix && text[0] != ' ')
		return purge_one(cache, pattern.url, soft);
	for (unsigned i = 0; i < cache->shard_count; i++)
		count += purge_shard(&cache->shards[i], &pattern, soft);
	return count;
}

static bool has_scheme(struct slice what)
{
	return (what.length >= 7 && strncasecmp(what.at, "http://", 7) == 0) ||
	       (what.length >= 8 && strncasecmp(what.at, "https://", 8) == 0);
}

long respcache_purge(struct respcache *cache, struct slice what, bool soft)
{
	struct slice rest = what, tag;

	if (what.length && (what.at[0] == '/' || has_scheme(what)))
		return purge_url(cache, what, soft);
	/* It must be exactly one tag. */
	if (what.length > TAG_MAX || !cacheable_tag(&rest, &tag) || tag.length != what.length)
		return -EINVAL;
	return purge_tag(cache, what, soft);
}

void respcache_invalidate(struct respcache *cache, struct slice url)
{
	(void)purge_one(cache, url, false);
}
