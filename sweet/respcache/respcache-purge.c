/* SPDX-License-Identifier: MIT */
/*
 * respcache-purge.c - drops entries by URL and by tag; see respcache-internal.h.
 *
 * A purge must also affect a response that a worker generated before it, but that
 * arrives after it.  A flight's URL is known, so the purge marks the flight, and
 * its response is not stored.  Its tags are not known before the response arrives,
 * so purged tags are logged first, and each response is compared with those purged
 * since its flight began.
 */
#include <errno.h>

#include "respcache/respcache-internal.h"

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

static long end_all(struct respcache_shard *shard, struct respcache_entry *dropped)
{
	long count = 0;

	for (const struct respcache_entry *entry = dropped; entry; entry = entry->next) {
		respcache_count(shard, COUNT_PURGED);
		count++;
	}
	respcache_drop(dropped);
	return count;
}

static long purge_tag(struct respcache *cache, struct slice tag)
{
	uint64_t hash = respcache_hash(cache, tag);
	long count = 0;

	log_add(&cache->log, hash);
	for (unsigned i = 0; i < cache->shard_count; i++) {
		struct respcache_shard *shard = &cache->shards[i];
		struct respcache_entry *dropped = NULL;
		struct respcache_tag *at;

		pthread_mutex_lock(&shard->lock);
		at = *respcache_tag_chain(cache, shard, hash);
		while (at) {
			if (at->hash != hash) {
				at = at->next;
				continue;
			}
			/* This also removes its other tags, which may be the next ones here. */
			respcache_unlink_locked(shard, at->entry, &dropped);
			at = *respcache_tag_chain(cache, shard, hash);
		}
		pthread_mutex_unlock(&shard->lock);
		count += end_all(shard, dropped);
	}
	return count;
}

void respcache_purge_tags(struct respcache *cache, struct slice list)
{
	struct slice tag;

	while (cacheable_tag(&list, &tag))
		(void)purge_tag(cache, tag);
}

/* --- by URL ----------------------------------------------------------------------------------- */

/* Selects the keys to drop by their URLs. */
struct pattern {
	struct slice url; /* begins with a blank if it is for all hosts */
	bool prefix;
};

static bool fits(const struct pattern *pattern, const struct respcache_key *whole)
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

static long purge_shard(struct respcache_shard *shard, const struct pattern *pattern)
{
	struct respcache_entry *dropped = NULL, *entry, *older;

	pthread_mutex_lock(&shard->lock);
	for (struct respcache_flight *at = shard->flights; at; at = at->next)
		at->purged |= fits(pattern, &at->key);
	for (entry = shard->newest; entry; entry = older) {
		older = entry->older;
		if (fits(pattern, &entry->key))
			respcache_unlink_locked(shard, entry, &dropped);
	}
	pthread_mutex_unlock(&shard->lock);
	return end_all(shard, dropped);
}

/* For one URL: all its entries are in one chain. */
static long purge_one(struct respcache *cache, struct slice url)
{
	uint64_t hash = respcache_hash(cache, url);
	struct respcache_shard *shard = respcache_shard(cache, hash);
	struct respcache_entry *dropped = NULL, *entry, *next;

	pthread_mutex_lock(&shard->lock);
	for (struct respcache_flight *at = shard->flights; at; at = at->next)
		at->purged |= at->key.hash == hash;
	for (entry = *respcache_chain(cache, hash); entry; entry = next) {
		next = entry->next;
		if (respcache_key_has_url(&entry->key, hash, url))
			respcache_unlink_locked(shard, entry, &dropped);
	}
	pthread_mutex_unlock(&shard->lock);
	return end_all(shard, dropped);
}

static long purge_url(struct respcache *cache, struct slice url)
{
	char text[CACHEKEY_URL_MAX];
	struct pattern pattern = {{text, 0}, false};
	long count = 0;

	pattern.url.length = cachekey_of_url(url, text, &pattern.prefix);
	if (!pattern.url.length)
		return -EINVAL;
	if (!pattern.prefix && text[0] != ' ')
		return purge_one(cache, pattern.url);
	for (unsigned i = 0; i < cache->shard_count; i++)
		count += purge_shard(&cache->shards[i], &pattern);
	return count;
}

static bool has_scheme(struct slice what)
{
	return (what.length >= 7 && strncasecmp(what.at, "http://", 7) == 0) ||
	       (what.length >= 8 && strncasecmp(what.at, "https://", 8) == 0);
}

long respcache_purge(struct respcache *cache, struct slice what)
{
	struct slice rest = what, tag;

	if (what.length && (what.at[0] == '/' || has_scheme(what)))
		return purge_url(cache, what);
	/* It must be exactly one tag. */
	if (what.length > TAG_MAX || !cacheable_tag(&rest, &tag) || tag.length != what.length)
		return -EINVAL;
	return purge_tag(cache, what);
}

void respcache_invalidate(struct respcache *cache, struct slice url)
{
	(void)purge_one(cache, url);
}
