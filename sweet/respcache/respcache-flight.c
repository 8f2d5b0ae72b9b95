/* SPDX-License-Identifier: MIT */
/*
 * respcache-flight.c - coalesces concurrent requests into one fetch: flights, their
 * waiters, and how waiters get the result; and marks, the outcome of the last responses
 * of a URL; see respcache-internal.h.
 */
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/list.h"
#include "base/slice.h"
#include "event/loop.h"
#include "http/cachekey.h"
#include "http/request-keep.h"
#include "http/request.h"
#include "program/cacheable.h"
#include "respcache/respcache-internal.h"
#include "respcache/respcache.h"

/* --- copies of requests -------------------------------------------------------------- */

struct respcache_copy *respcache_copy_new(const struct request *request, bool authorized)
{
	struct respcache_copy *copy = malloc(sizeof(*copy) + request->head.length);

	if (!copy)
		return NULL;
	request_copy_head(&copy->request, request, copy->head);
	copy->authorized = authorized;
	return copy;
}

/* --- flights ---------------------------------------------------------------------------- */

struct respcache_flight *respcache_flight_new(struct respcache *cache, struct respcache_copy *copy,
					      const struct respcache_key *key)
{
	struct respcache_flight *flight = malloc(sizeof(*flight) + key->text.length);

	if (!flight) {
		free(copy);
		return NULL;
	}
	*flight = (struct respcache_flight){
		.cache = cache, .copy = copy, .references = 1, .key = *key};
	memcpy(flight->text, key->text.at, key->text.length);
	flight->key.text.at = flight->text;
	return flight;
}

void respcache_flight_release(struct respcache_flight *flight)
{
	if (!flight || atomic_fetch_sub_explicit(&flight->references, 1, memory_order_acq_rel) != 1)
		return;
	if (flight->entry)
		respcache_put(flight->entry);
	free(flight->copy);
	free(flight);
}

void respcache_flight_begin_locked(struct respcache_shard *shard, struct respcache_flight *flight)
{
	flight->purges = respcache_log_count(flight->cache);
	list_prepend(&shard->flights, &flight->node);
}

struct respcache_flight *respcache_flight_find_locked(struct respcache_shard *shard,
						      const struct respcache_key *key,
						      const struct request *request,
						      bool authorized,
						      const struct respcache_entry *like)
{
	struct slice names = like ? like->names : (struct slice){NULL, 0};
	char values[CACHEKEY_VALUES_MAX];

	if (names.length && cachekey_values(request, names, values) < 0)
		return NULL;
	list_each (struct respcache_flight, flight, &shard->flights, node)
		if (!flight->purged && respcache_key_equal(&flight->key, key) &&
		    flight->copy->authorized == authorized &&
		    cachekey_matches(&flight->copy->request, names, values))
			return flight;
	return NULL;
}

bool respcache_flight_authorized(const struct respcache_flight *flight)
{
	return flight->copy->authorized;
}

/* --- waiters ------------------------------------------------------------------------------- */

/* Gives the waiter the entry that its flight has brought, if it fits, else the other verdict. */
static void take_result(struct respcache_ask *ask)
{
	struct respcache_flight *flight = ask->awaited;
	const struct respcache_copy *copy = ask->copy;
	struct respcache_entry *entry = flight->entry;

	ask->awaited = NULL;
	ask->verdict = flight->otherwise;
	if (entry && respcache_entry_answers(entry, &copy->request, copy->authorized) &&
	    respcache_entry_hold(entry)) {
		respcache_entry_ref(entry);
		ask->entry = entry;
		ask->verdict = RESPCACHE_HIT;
	}
	respcache_flight_release(flight);
}

static void deliver(struct respcache_ask *ask)
{
	struct respcache_copy *copy = ask->copy;

	take_result(ask);
	pthread_mutex_lock(&ask->cache->answers_lock);
	list_remove(&ask->node);
	pthread_mutex_unlock(&ask->cache->answers_lock);
	ask->copy = NULL;
	ask->request = &copy->request;
	ask->answered(ask);
	free(copy);
}

/* Runs on the waiter's thread. */
static void flight_deliver(struct loop_task *task)
{
	deliver(container_of(task, struct respcache_ask, task));
}

static void post_result(struct respcache_ask *ask)
{
	struct respcache *cache = ask->cache;

	pthread_mutex_lock(&cache->answers_lock);
	list_prepend(&cache->answers, &ask->node);
	pthread_mutex_unlock(&cache->answers_lock);
	ask->task.run = flight_deliver;
	if (cache->ending)
		deliver(ask);
	else
		loop_queue(ask->loop, &ask->task);
}

void respcache_end(struct respcache *cache)
{
	struct respcache_ask *ask;

	cache->ending = true;
	while ((ask = list_first(&cache->answers, struct respcache_ask, node)))
		deliver(ask);
}

/*
 * Has the waiters of a flight that was removed take their results, each in a turn of its loop.  Until
 * then the entry is held, so that it is not evicted.
 */
static void answer_waiters(struct respcache_flight *flight, struct respcache_entry *entry,
			   enum respcache_verdict otherwise)
{
	struct respcache_ask *ask;

	if (list_is_empty(&flight->waiters))
		return;
	flight->otherwise = otherwise;
	if (entry && respcache_entry_hold(entry)) {
		respcache_entry_ref(entry);
		flight->entry = entry;
	}
	while ((ask = list_take(&flight->waiters, struct respcache_ask, node))) {
		atomic_fetch_add_explicit(&flight->references, 1, memory_order_relaxed);
		ask->awaited = flight;
		post_result(ask);
	}
}

/* --- the end of a flight ----------------------------------------------------------------- */

/* Drops the entries that the new response replaces. */
static void replace_locked(struct respcache_flight *flight, struct respcache_shard *shard,
			   struct list *dropped)
{
	const struct list *chain = respcache_chain(flight->cache, flight->key.hash);

	list_each (struct respcache_entry, entry, chain, node) {
		if (respcache_key_equal(&entry->key, &flight->key) &&
		    cachekey_matches(&flight->copy->request, entry->names, entry->values))
			respcache_unlink_locked(shard, entry, dropped);
	}
}

/* Then the library destroys the units by itself if no request comes any more. */
static void set_lifetimes(const struct respcache_answer *answer)
{
	uint64_t seconds =
		(uint64_t)answer->terms.fresh + answer->terms.stale + respcache_validated_s(answer);

	for (unsigned i = 0; i < answer->range_count; i++)
		if (answer->owned & UINT64_C(1) << i)
			respcache_set_lifetime(answer->ranges[i].id, seconds);
}

bool respcache_store(struct respcache_flight *flight, const struct respcache_answer *answer,
		     uint64_t now_ns)
{
	struct respcache *cache = flight->cache;
	struct respcache_shard *shard = respcache_shard(cache, flight->key.hash);
	struct respcache_entry *entry = respcache_entry_new(flight, answer, now_ns);
	struct list dropped = {0};
	bool purged, kept = false;

	pthread_mutex_lock(&shard->lock);
	purged = flight->purged || (entry && respcache_log_has(cache, entry, flight->purges));
	if (entry && !purged) {
		replace_locked(flight, shard, &dropped);
		/* For the waiters: another thread may drop the entry at once. */
		respcache_entry_ref(entry);
		respcache_link_locked(cache, entry, &dropped);
		kept = true;
	} else if (entry) {
		list_prepend(&dropped, &entry->node);
	}
	list_remove(&flight->node); /* so that no request joins it */
	pthread_mutex_unlock(&shard->lock);
	if (kept) {
		set_lifetimes(answer);
		respcache_count(shard, COUNT_STORED);
		respcache_mark_set(cache,
				   respcache_mark_hash(flight->key.mark, flight->copy->authorized),
				   MARK_KEPT, now_ns);
	}
	answer_waiters(flight, kept ? entry : NULL,
		       kept || purged ? RESPCACHE_AGAIN : RESPCACHE_PASS);
	if (kept)
		respcache_entry_unref(entry);
	/* Nobody else destroys the owned units. */
	if (!entry)
		respcache_destroy(answer->ranges, answer->range_count, answer->owned);
	respcache_drop(&dropped);
	respcache_flight_release(flight);
	return kept;
}

void respcache_give_up(struct respcache_flight *flight, enum respcache_failure failure,
		       uint64_t now_ns)
{
	struct respcache_shard *shard = respcache_shard(flight->cache, flight->key.hash);
	struct list dropped = {0};

	/* Before the waiters get the result: they must not join another flight. */
	if (failure == RESPCACHE_NOT_KEPT)
		respcache_mark_set(flight->cache,
				   respcache_mark_hash(flight->key.mark, flight->copy->authorized),
				   MARK_NOT_KEPT, now_ns);
	pthread_mutex_lock(&shard->lock);
	/* An entry from the time when such responses were stored is outdated. */
	if (failure == RESPCACHE_NOT_KEPT)
		replace_locked(flight, shard, &dropped);
	list_remove(&flight->node); /* so that no request joins it */
	pthread_mutex_unlock(&shard->lock);
	answer_waiters(flight, NULL,
		       failure == RESPCACHE_ABANDONED ? RESPCACHE_AGAIN : RESPCACHE_PASS);
	respcache_drop(&dropped);
	respcache_flight_release(flight);
}

/* --- marks ------------------------------------------------------------------------------ */

/*
 * A mark is one number: bits of the hash, the outcome, and the second of its
 * expiry.  URLs that share a slot overwrite each other's marks, which costs only an
 * additional call.
 */
#define NOT_KEPT_S 5	   /* no request waits for another's response during this time */
#define KEPT_S (24 * 3600) /* remembers for this time that the URL has cacheable responses */
#define SECOND UINT64_C(1000000000)

#define MARK_TIME UINT64_C(0xffffffff)

static uint64_t mark_name(uint64_t hash)
{
	return hash & ~(MARK_TIME | UINT64_C(3) << 32);
}

void respcache_mark_set(struct respcache *cache, uint64_t hash, enum respcache_mark mark,
			uint64_t now_ns)
{
	uint64_t until = now_ns / SECOND + (mark == MARK_KEPT ? KEPT_S : NOT_KEPT_S);

	atomic_store_explicit(&cache->marks[hash % RESPCACHE_MARKS],
			      mark_name(hash) | (uint64_t)mark << 32 | (until & MARK_TIME),
			      memory_order_relaxed);
}

enum respcache_mark respcache_mark_of(const struct respcache *cache, uint64_t hash, uint64_t now_ns)
{
	uint64_t mark =
		atomic_load_explicit(&cache->marks[hash % RESPCACHE_MARKS], memory_order_relaxed);

	if (mark_name(mark) != mark_name(hash) || now_ns / SECOND >= (mark & MARK_TIME))
		return MARK_NONE;
	return (enum respcache_mark)(mark >> 32 & 3);
}

void respcache_note(struct respcache *cache, uint64_t mark, uint64_t now_ns)
{
	if (mark)
		respcache_mark_set(cache, mark, MARK_KEPT, now_ns);
}
