/* SPDX-License-Identifier: MIT */
/*
 * respcache.c - lookups; see respcache.h and respcache-internal.h.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/list.h"
#include "base/slice.h"
#include "http/request.h"
#include "respcache/respcache-internal.h"
#include "respcache/respcache.h"

#define WAITS_MAX 3 /* of one request; then it bypasses the cache */
#define SECOND UINT64_C(1000000000)
#define FEW_ENTRIES 1024u /* up to this number, one shard is enough */

/* --- the cache ------------------------------------------------------------------------- */

static unsigned power_above(unsigned count)
{
	unsigned power = 1;

	while (power < count && power < 1u << 30)
		power *= 2;
	return power;
}

static bool open_shards(struct respcache *cache)
{
	for (unsigned i = 0; i < cache->shard_count; i++) {
		struct respcache_shard *shard = &cache->shards[i];

		pthread_mutex_init(&shard->lock, NULL);
		shard->chains = calloc(cache->chain_count, sizeof(*shard->chains));
		shard->tags = calloc(cache->chain_count, sizeof(*shard->tags));
		if (!shard->chains || !shard->tags)
			return false;
	}
	return true;
}

struct respcache *respcache_open(const struct respcache_options *options)
{
	unsigned shards = options->entries < FEW_ENTRIES ? 1 : RESPCACHE_SHARDS;
	size_t size = sizeof(struct respcache) + shards * sizeof(struct respcache_shard);
	struct respcache *cache = aligned_alloc(64, (size + 63) / 64 * 64);

	if (!cache)
		return NULL;
	memset(cache, 0, size);
	cache->shard_count = shards;
	cache->entries_max = (options->entries + shards - 1) / shards;
	cache->bytes_max = options->bytes / shards;
	cache->chain_count = power_above(cache->entries_max);
	pthread_mutex_init(&cache->log.lock, NULL);
	pthread_mutex_init(&cache->answers_lock, NULL);
	if (open_shards(cache) &&
	    getrandom(cache->key, sizeof(cache->key), 0) == sizeof(cache->key))
		return cache;
	respcache_close(cache);
	return NULL;
}

void respcache_close(struct respcache *cache)
{
	if (!cache)
		return;
	for (unsigned i = 0; i < cache->shard_count; i++) {
		struct respcache_shard *shard = &cache->shards[i];
		struct list dropped = {0};

		list_each (struct respcache_entry, entry, &shard->ages, by_age)
			respcache_unlink_locked(shard, entry, &dropped);
		respcache_drop(&dropped);
		free(shard->chains);
		free(shard->tags);
		pthread_mutex_destroy(&shard->lock);
	}
	pthread_mutex_destroy(&cache->log.lock);
	pthread_mutex_destroy(&cache->answers_lock);
	free(cache);
}

const struct respcache_view *respcache_view(const struct respcache_entry *entry)
{
	return &entry->view;
}

uint32_t respcache_age(const struct respcache_entry *entry, uint64_t now_ns)
{
	/* The clock of one loop may be a little behind that of another. */
	return entry->age +
	       (uint32_t)(now_ns > entry->stored_ns ? (now_ns - entry->stored_ns) / SECOND : 0);
}

/*
 * --- lookups
 * ---------------------------------------------------------------------------------
 */

/* One lookup. */
struct search {
	struct respcache *cache;
	struct respcache_shard *shard;
	struct respcache_ask *ask;
	const struct request *request;
	struct cacheable_rule rule;
	uint64_t now_ns;
	bool authorized;
	bool marked; /* key.mark and ask->mark are known */
	struct respcache_key key;
	/* Allocated without the lock, if needed; freed if not used. */
	struct respcache_copy *copy;
	struct respcache_flight *flight;
	struct list dropped;
	struct respcache_entry *outdated; /* in this step: can be validated; or NULL */
};

/* Hashes the whole key, which a hit does not need. */
static void find_mark(struct search *search)
{
	if (search->marked)
		return;
	search->marked = true;
	search->key.mark = respcache_hash(search->cache, search->key.text);
	search->ask->mark = respcache_mark_hash(search->key.mark, search->authorized);
}

/*
 * Returns a usable entry for the request, or NULL, perhaps with an outdated one; *like: any entry of
 * the key.
 */
static struct respcache_entry *find_locked(struct search *search, struct respcache_entry **like)
{
	const struct list *chain = respcache_chain(search->cache, search->key.hash);

	*like = NULL;
	search->outdated = NULL;
	list_each (struct respcache_entry, entry, chain, node) {
		if (!respcache_key_equal(&entry->key, &search->key))
			continue;
		*like = entry;
		if (!respcache_entry_answers(entry, search->request, search->authorized))
			continue;
		if (search->now_ns < entry->stale_ns)
			return entry;
		if (search->now_ns < entry->kept_ns) {
			search->outdated = entry;
			continue;
		}
		/* It still tells which fields its URL varies by, until another entry does. */
		if (!entry->names.length) {
			*like = NULL;
			respcache_unlink_locked(search->shard, entry, &search->dropped);
		}
	}
	return NULL;
}

static enum respcache_verdict give_locked(struct search *search, struct respcache_entry *entry)
{
	struct respcache_ask *ask = search->ask;
	bool fresh = search->now_ns < entry->fresh_ns;

	if (!fresh && search->request->method == METHOD_GET &&
	    !respcache_flight_find_locked(search->shard, &search->key, search->request,
					  search->authorized, entry)) {
		/* The flight must be allocated without the lock: return, and try again. */
		if (!search->flight)
			return RESPCACHE_FETCH;
		respcache_flight_begin_locked(search->shard, search->flight);
		ask->flight = search->flight;
		search->flight = NULL;
	}
	if (!atomic_load_explicit(&entry->used, memory_order_relaxed))
		atomic_store_explicit(&entry->used, true, memory_order_relaxed);
	respcache_entry_ref(entry);
	ask->entry = entry;
	return fresh ? RESPCACHE_HIT : RESPCACHE_STALE;
}

/* There is no usable entry. */
static enum respcache_verdict miss_locked(struct search *search, const struct respcache_entry *like)
{
	struct respcache_ask *ask = search->ask;
	struct respcache_flight *flight;
	enum respcache_mark mark;

	find_mark(search);
	mark = respcache_mark_of(search->cache, ask->mark, search->now_ns);
	/*
	 * Responses to HEAD or Range requests are not stored.  A conditional
	 * request fetches only if the URL is known to be cacheable, because the
	 * program must not see the condition.
	 */
	if (search->request->method != METHOD_GET || request_find(search->request, "Range") ||
	    (search->request->conditional && mark != MARK_KEPT) || ask->waits >= WAITS_MAX ||
	    mark == MARK_NOT_KEPT)
		return RESPCACHE_PASS;
	flight = respcache_flight_find_locked(search->shard, &search->key, search->request,
					      search->authorized, like);
	if (!flight && search->flight) {
		respcache_flight_begin_locked(search->shard, search->flight);
		ask->flight = search->flight;
		search->flight = NULL;
		ask->entry = search->outdated;
		if (ask->entry)
			respcache_entry_ref(ask->entry);
		return RESPCACHE_FETCH;
	}
	if (flight && search->copy) {
		ask->cache = search->cache;
		ask->copy = search->copy;
		search->copy = NULL;
		ask->waits++;
		list_append(&flight->waiters, &ask->node);
		return RESPCACHE_WAIT;
	}
	/* As above; the verdict says which of the two is missing. */
	return flight ? RESPCACHE_AGAIN : RESPCACHE_FETCH;
}

static enum respcache_verdict step(struct search *search)
{
	struct respcache_entry *entry, *like;
	enum respcache_verdict verdict;

	pthread_mutex_lock(&search->shard->lock);
	entry = find_locked(search, &like);
	verdict = entry ? give_locked(search, entry) : miss_locked(search, like);
	pthread_mutex_unlock(&search->shard->lock);
	return verdict;
}

/* Holds the entry's units; if one is gone, removes the entry. */
static bool hold(struct search *search)
{
	struct respcache_entry *entry = search->ask->entry;

	if (respcache_entry_hold(entry))
		return true;
	search->ask->entry = NULL;
	respcache_count(search->shard, COUNT_DEAD);
	pthread_mutex_lock(&search->shard->lock);
	if (entry->linked)
		respcache_unlink_locked(search->shard, entry, &search->dropped);
	pthread_mutex_unlock(&search->shard->lock);
	respcache_entry_unref(entry);
	return false;
}

static void count(struct search *search, enum respcache_verdict verdict)
{
	static const enum respcache_count counts[] = {[RESPCACHE_PASS] = COUNT_PASSED,
						      [RESPCACHE_HIT] = COUNT_HITS,
						      [RESPCACHE_STALE] = COUNT_STALE,
						      [RESPCACHE_FETCH] = COUNT_MISSES,
						      [RESPCACHE_WAIT] = COUNT_COLLAPSED};

	respcache_count(search->shard, counts[verdict]);
}

/* Allocates what a step needs; returns false without memory. */
static bool prepare(struct search *search, enum respcache_verdict wanted)
{
	struct respcache_copy *copy = respcache_copy_new(search->request, search->authorized);

	find_mark(search);
	if (wanted == RESPCACHE_AGAIN)
		search->copy = copy;
	else if (copy)
		search->flight = respcache_flight_new(search->cache, copy, &search->key);
	return search->copy || search->flight;
}

static enum respcache_verdict run(struct search *search)
{
	struct respcache_ask *ask = search->ask;

	for (;;) {
		enum respcache_verdict verdict = step(search);

		/* Another thread may already report the result: do not touch ask any more. */
		if (verdict == RESPCACHE_WAIT) {
			count(search, verdict);
			return verdict;
		}
		/* If the dead entry's lookup began a flight, this request fetches for all. */
		if (ask->entry && !hold(search)) {
			if (!ask->flight)
				continue;
			verdict = RESPCACHE_FETCH;
		}
		if (verdict == RESPCACHE_AGAIN || (verdict == RESPCACHE_FETCH && !ask->flight)) {
			if (prepare(search, verdict))
				continue;
			verdict = RESPCACHE_PASS;
		}
		count(search, verdict);
		return verdict;
	}
}

enum respcache_verdict respcache_look_up(struct respcache *cache, struct respcache_ask *ask,
					 const struct request *request, struct cacheable_rule rule,
					 uint64_t now_ns)
{
	struct search search = {.cache = cache, .ask = ask, .request = request, .now_ns = now_ns};
	enum respcache_verdict verdict;
	char key[CACHEKEY_MAX];

	ask->entry = NULL;
	ask->flight = NULL;
	ask->mark = 0;
	if (rule.mode == CACHEABLE_OFF ||
	    (request->method != METHOD_GET && request->method != METHOD_HEAD) ||
	    request->content_length || request->chunked)
		return RESPCACHE_PASS;
	search.key.text = (struct slice){
		key, cachekey_write(request, &ask->place, key, &search.key.url_length)};
	if (!search.key.text.length)
		return RESPCACHE_PASS;
	search.authorized = ask->authorized;
	/* Most paths never store anything: for those, this is the whole cost. */
	if (rule.mode == CACHEABLE_MARKED) {
		find_mark(&search);
		if (respcache_mark_of(cache, ask->mark, now_ns) != MARK_KEPT) {
			respcache_count(respcache_shard(cache, ask->mark), COUNT_PASSED);
			return RESPCACHE_PASS;
		}
	}
	search.key.hash = respcache_hash(cache, (struct slice){key, search.key.url_length});
	search.shard = respcache_shard(cache, search.key.hash);
	verdict = run(&search);
	free(search.copy);
	respcache_flight_release(search.flight);
	respcache_drop(&search.dropped);
	return verdict;
}

/*
 * --- statistics
 * -------------------------------------------------------------------------------
 */

void respcache_stat(struct respcache *cache, struct respcache_stat *stat)
{
	uint64_t counts[COUNTS] = {0};

	*stat = (struct respcache_stat){0};
	for (unsigned i = 0; i < cache->shard_count; i++) {
		struct respcache_shard *shard = &cache->shards[i];

		pthread_mutex_lock(&shard->lock);
		stat->entries += shard->entries;
		stat->bytes += shard->bytes;
		pthread_mutex_unlock(&shard->lock);
		for (unsigned k = 0; k < COUNTS; k++)
			counts[k] += atomic_load_explicit(&shard->counts[k], memory_order_relaxed);
	}
	stat->hits = counts[COUNT_HITS];
	stat->stale = counts[COUNT_STALE];
	stat->misses = counts[COUNT_MISSES];
	stat->collapsed = counts[COUNT_COLLAPSED];
	stat->passed = counts[COUNT_PASSED];
	stat->stored = counts[COUNT_STORED];
	stat->purged = counts[COUNT_PURGED];
	stat->dropped = counts[COUNT_DROPPED];
	stat->dead = counts[COUNT_DEAD];
}
