/* SPDX-License-Identifier: MIT */
/*
 * respcache-internal.h - what the files of respcache.h share: entries in shards,
 * each with its lock; flights; marks; the log of purged tags.
 *
 * A URL's hash says which shard has its entries and flights.  The lock of a
 * shard is held for comparisons and links alone: what is allocated is so
 * before, units are held, destroyed and entries freed behind it.  Counters and
 * references are atomic.
 *
 * respcache-entry.c calls none of the others; respcache-purge.c calls
 * respcache-entry.c; respcache-flight.c calls those two, and respcache.c calls all of
 * them.
 *
 * Why chains of its own, and not GLib's hash table: a URL has several entries, and an entry
 * several tags, which are links in the entry's own block of memory; GLib's table has one
 * value of a key, and allocates when it grows, which would be under the lock.
 *
 * Why shards: every dynamic request of every thread comes by, and the time
 * under the lock, a walk along a chain with keys to compare, is long enough
 * for threads to meet at one lock.
 */
#ifndef SWEET_RESPCACHE_INTERNAL_H
#define SWEET_RESPCACHE_INTERNAL_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "base/siphash.h"
#include "respcache/respcache.h"

#define RESPCACHE_SHARDS 16u
#define RESPCACHE_MARKS 4096u
#define RESPCACHE_PURGES 1024u

/* See cachekey.h. */
struct respcache_key {
	struct slice text;
	size_t url_length;
	uint64_t hash; /* of its URL: all that may be purged together has one shard */
	uint64_t mark; /* of all of it */
};

/* A request and the head that it lies in. */
struct respcache_copy {
	struct request request;
	bool authorized;
	char head[];
};

struct respcache_tag {
	uint64_t hash;
	struct respcache_entry *entry;
	struct respcache_tag *next, **link;
};

/* One block of memory with all that it points at. */
struct respcache_entry {
	struct respcache_view view;  /* must be first */
	_Atomic unsigned references; /* the shard's is one */
	_Atomic bool used;	     /* since the hand came by */
	bool linked, shared;
	uint64_t given;				/* bit of each range */
	uint64_t stored_ns, fresh_ns, stale_ns; /* until when it is both */
	uint32_t age;				/* seconds when it was stored */
	struct respcache_key key;
	struct slice names;
	const char *values;
	size_t size;
	struct respcache_entry *next, **link;  /* of one hash; or of a list of the dropped */
	struct respcache_entry *newer, *older; /* by age, for the hand */
	unsigned tag_count;
	struct respcache_tag *tags;
};

struct respcache_flight {
	struct respcache *cache;
	struct respcache_copy *copy;
	struct respcache_flight *next, **link;
	struct respcache_ask *waiters, **last;
	uint64_t purges; /* tags purged when it began */
	bool purged;	 /* what comes is not to be kept */
	struct respcache_key key;
	char text[]; /* of the key */
};

/* Indices of counters. */
enum respcache_count {
	COUNT_HITS,
	COUNT_STALE,
	COUNT_MISSES,
	COUNT_COLLAPSED,
	COUNT_PASSED,
	COUNT_STORED,
	COUNT_PURGED,
	COUNT_DROPPED,
	COUNT_DEAD,
	COUNTS
};

struct respcache_shard {
	alignas(64) pthread_mutex_t lock;
	struct respcache_entry **chains;
	struct respcache_tag **tags;
	struct respcache_flight *flights;
	struct respcache_entry *newest, *oldest, *hand;
	unsigned entries;
	size_t bytes;
	_Atomic uint64_t counts[COUNTS];
};

/* The tags that were purged last, for answers that were on their way then. */
struct respcache_log {
	pthread_mutex_t lock; /* may be taken with a shard's */
	uint64_t count;	      /* of all */
	uint64_t last[RESPCACHE_PURGES];
};

struct respcache {
	uint8_t key[16];
	unsigned shard_count, chain_count; /* powers of two */
	unsigned entries_max;		   /* of a shard */
	size_t bytes_max;		   /* of a shard */
	struct respcache_log log;
	pthread_mutex_t telling; /* of the next two */
	struct respcache_ask *told;
	bool ending; /* constant while there are threads */
	_Atomic uint64_t marks[RESPCACHE_MARKS];
	struct respcache_shard shards[];
};

static inline void respcache_count(struct respcache_shard *shard, enum respcache_count which)
{
	atomic_fetch_add_explicit(&shard->counts[which], 1, memory_order_relaxed);
}

static inline struct respcache_shard *respcache_shard(struct respcache *cache, uint64_t hash)
{
	return &cache->shards[hash & (cache->shard_count - 1)];
}

static inline uint64_t respcache_hash(const struct respcache *cache, struct slice text)
{
	return siphash(cache->key, text.at, text.length);
}

/* --- respcache-entry.c --------------------------------------------------------------- */

/* Referenced by the caller.  NULL: too much of something, or no memory. */
struct respcache_entry *respcache_entry_new(const struct respcache_flight *flight,
					    const struct respcache_answer *answer, uint64_t now_ns);
void respcache_entry_ref(struct respcache_entry *entry);
void respcache_entry_unref(struct respcache_entry *entry);

/* Holds its units; false: one is no more. */
bool respcache_entry_hold(struct respcache_entry *entry);

/* Whether both are one; whether they have one URL. */
bool respcache_key_equal(const struct respcache_key *one, const struct respcache_key *other);
bool respcache_key_has_url(const struct respcache_key *key, uint64_t hash, struct slice url);

/* Whether it answers this request. */
bool respcache_entry_answers(const struct respcache_entry *entry, const struct request *request,
			     bool authorized);

struct respcache_entry **respcache_chain(struct respcache *cache, uint64_t hash);
struct respcache_tag **respcache_tag_chain(struct respcache *cache, struct respcache_shard *shard,
					   uint64_t hash);

/* Puts it in, and onto *dropped what must make room for it. */
void respcache_link_locked(struct respcache *cache, struct respcache_entry *entry,
			   struct respcache_entry **dropped);

/* Out of everything, and onto *dropped. */
void respcache_unlink_locked(struct respcache_shard *shard, struct respcache_entry *entry,
			     struct respcache_entry **dropped);

/* Destroys the units that were given. */
void respcache_destroy(const struct NC_range *ranges, unsigned count, uint64_t given);

/* Ends what was dropped, without a lock. */
void respcache_drop(struct respcache_entry *dropped);

/* --- respcache-purge.c -------------------------------------------------------------------- */

uint64_t respcache_log_count(struct respcache *cache);

/* Whether one of the entry's tags was purged since there were `since` purges. */
bool respcache_log_has(struct respcache *cache, const struct respcache_entry *entry,
		       uint64_t since);

/* --- respcache-flight.c ----------------------------------------------------------------- */

struct respcache_copy *respcache_copy_new(const struct request *request);

/* Takes the copy over; NULL: no memory, and the copy is gone. */
struct respcache_flight *respcache_flight_new(struct respcache *cache, struct respcache_copy *copy,
					      const struct respcache_key *key);
void respcache_flight_free(struct respcache_flight *flight);
void respcache_flight_begin_locked(struct respcache_shard *shard, struct respcache_flight *flight);

/* One that brings what the request wants; like: an entry of the same key, or NULL. */
struct respcache_flight *respcache_flight_find_locked(struct respcache_shard *shard,
						      const struct respcache_key *key,
						      const struct request *request,
						      bool authorized,
						      const struct respcache_entry *like);

/* Marks: what became of the last answers to a URL. */
enum respcache_mark { MARK_NONE, MARK_KEPT, MARK_NOT_KEPT };

void respcache_mark_set(struct respcache *cache, uint64_t hash, enum respcache_mark mark,
			uint64_t now_ns);
enum respcache_mark respcache_mark_of(const struct respcache *cache, uint64_t hash,
				      uint64_t now_ns);

/* A mark of its own for those with a password. */
static inline uint64_t respcache_mark_hash(uint64_t hash, bool authorized)
{
	return authorized ? ~hash : hash;
}

#endif
