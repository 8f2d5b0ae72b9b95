/* SPDX-License-Identifier: MIT */
/*
 * respcache-internal.h - shared by the files of respcache.h: entries in shards,
 * each with its lock; flights; marks; the log of purged tags.
 *
 * A URL's hash selects the shard of its entries and flights.  The lock of a shard
 * is held only for comparisons and list operations: memory is allocated before,
 * units are held or destroyed and entries freed after.  Counters and references are
 * atomic.
 *
 * respcache-entry.c and respcache-variant.c call each other, and none of the other files;
 * respcache-purge.c calls respcache-entry.c; respcache-flight.c calls those two; and respcache.c
 * calls all of them.
 *
 * The tables are chains, not GLib's hash tables: a URL has several entries, and an entry
 * several tags, which are links within the entry's own memory.  GLib's table has one value
 * for each key, and allocates memory when it grows, which would be done under the lock.
 *
 * Why shards: every dynamic request of every thread takes a lock here, and a walk
 * along a chain with comparisons of keys is long enough for contention.
 */
#ifndef SWEET_RESPCACHE_INTERNAL_H
#define SWEET_RESPCACHE_INTERNAL_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/siphash.h"
#include "base/slice.h"
#include "http/accept.h"
#include "http/request.h"
#include "respcache/respcache.h"

struct NC_range;
struct cachecontrol;

#define RESPCACHE_SHARDS 16u
#define RESPCACHE_MARKS 4096u
#define RESPCACHE_PURGES 1024u

/* See cachekey.h. */
struct respcache_key {
	struct slice text;
	size_t url_length;
	uint64_t hash; /* of its URL: everything that one URL purges is in one shard */
	uint64_t mark; /* hash of the whole text; of a flight or of a search that missed */
};

/* A request and the head that it points into. */
struct respcache_copy {
	struct request request;
	bool authorized;
	char head[];
};

struct respcache_tag {
	uint64_t hash;
	struct respcache_entry *entry;
	struct list_node node; /* in a chain of tags */
};

/* One block of memory with everything that it points to. */
struct respcache_entry {
	struct respcache_view view;
	_Atomic unsigned references; /* includes the shard's */
	_Atomic bool used;	     /* since the hand passed it */
	bool linked, shared;
	uint64_t owned; /* one bit for each range */
	/* Fresh, or stale, until then; fresh_ns is 0 after a soft purge, under the shard's lock. */
	uint64_t stored_ns, fresh_ns, stale_ns;
	uint64_t kept_ns; /* until then its program can be asked whether it has changed */
	uint32_t age;	  /* seconds when it was stored */
	struct respcache_key key;
	struct slice names;
	const char *values;
	size_t size;
	struct list_node node;	 /* in a chain; or in a list of dropped entries */
	struct list_node by_age; /* for the hand */
	unsigned tag_count;
	struct respcache_tag *tags;
	/* Compressed variants, each with a reference of this entry until it is freed. */
	_Atomic(struct respcache_entry *) variants[CODINGS];
	_Atomic unsigned unfit; /* one bit for each coding of which there will be none */
	_Atomic bool coding;	/* a variant is being made */
};

struct respcache_flight {
	struct respcache *cache;
	struct respcache_copy *copy;
	struct list_node node;
	struct list waiters; /* asks, in the order of arrival */
	/* When it has ended, for the waiters, who keep it until they have their result: */
	_Atomic unsigned references;
	struct respcache_entry *entry; /* its units are held; NULL: there is none */
	enum respcache_verdict otherwise;
	uint64_t purges; /* number of purged tags when it began */
	bool purged;	 /* the response must not be stored */
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
	struct list *chains, *tags; /* by hash: of entries, of their tags */
	struct list flights;
	struct list ages; /* of entries, the newest first */
	struct respcache_entry *hand;
	unsigned entries;
	size_t bytes;
	_Atomic uint64_t counts[COUNTS];
};

/* The last purged tags, to check responses that were in flight then. */
struct respcache_log {
	pthread_mutex_t lock; /* may be taken with a shard's lock held */
	uint64_t count;	      /* of all purged tags */
	uint64_t last[RESPCACHE_PURGES];
};

struct respcache {
	uint8_t key[16];
	unsigned shard_count, chain_count; /* powers of two */
	unsigned entries_max;		   /* of a shard */
	size_t bytes_max;		   /* of a shard */
	struct respcache_log log;
	pthread_mutex_t answers_lock; /* protects the next two */
	struct list answers;	      /* asks */
	bool ending;		      /* constant while there are threads */
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

/* Returns an entry with a reference of the caller; NULL: over a limit, or no memory. */
struct respcache_entry *respcache_entry_new(const struct respcache_flight *flight,
					    const struct respcache_answer *answer, uint64_t now_ns);
void respcache_entry_ref(struct respcache_entry *entry);
void respcache_entry_unref(struct respcache_entry *entry);

/* Returns the seconds that an entry of the response is kept to be validated; 0: it cannot be. */
uint64_t respcache_validated_s(const struct respcache_answer *answer);

/* Holds its units; returns false if one is gone. */
bool respcache_entry_hold(struct respcache_entry *entry);

/* Return true if both keys are equal; if the key has that URL. */
bool respcache_key_equal(const struct respcache_key *one, const struct respcache_key *other);
bool respcache_key_has_url(const struct respcache_key *key, uint64_t hash, struct slice url);

/* Returns true if the entry answers this request. */
bool respcache_entry_answers(const struct respcache_entry *entry, const struct request *request,
			     bool authorized);

struct list *respcache_chain(struct respcache *cache, uint64_t hash);
struct list *respcache_tag_chain(struct respcache *cache, struct respcache_shard *shard,
				 uint64_t hash);

/* Inserts an entry, and puts the entries that it evicts onto *dropped. */
void respcache_link_locked(struct respcache *cache, struct respcache_entry *entry,
			   struct list *dropped);

/* Removes an entry from all lists, and puts it onto *dropped. */
void respcache_unlink_locked(struct respcache_shard *shard, struct respcache_entry *entry,
			     struct list *dropped);

/* Destroys the units of the ranges in owned. */
void respcache_destroy(const struct NC_range *ranges, unsigned count, uint64_t owned);

/* Then the library destroys the unit by itself, some time after it has become useless. */
void respcache_set_lifetime(size_t id, uint64_t seconds);

/* Frees dropped entries; call it without a lock. */
void respcache_drop(struct list *dropped);

/* --- respcache-variant.c ------------------------------------------------------------------ */

/* Sets what the entry's lines say about compression; its names, head and ranges are set. */
void respcache_variant_describe(struct respcache_entry *entry, const struct cachecontrol *control);

/* Destroys the units of all variants. */
void respcache_variants_destroy(struct respcache_entry *entry);

/* --- respcache-purge.c -------------------------------------------------------------------- */

uint64_t respcache_log_count(struct respcache *cache);

/* Returns true if one of the entry's tags was purged after the first since purges. */
bool respcache_log_has(struct respcache *cache, const struct respcache_entry *entry,
		       uint64_t since);

/* --- respcache-flight.c ----------------------------------------------------------------- */

struct respcache_copy *respcache_copy_new(const struct request *request, bool authorized);

/* Takes the copy; returns NULL without memory, and frees the copy. */
struct respcache_flight *respcache_flight_new(struct respcache *cache, struct respcache_copy *copy,
					      const struct respcache_key *key);
void respcache_flight_release(struct respcache_flight *flight);
void respcache_flight_begin_locked(struct respcache_shard *shard, struct respcache_flight *flight);

/* Finds a flight whose response fits the request; like: an entry of the same key, or NULL. */
struct respcache_flight *respcache_flight_find_locked(struct respcache_shard *shard,
						      const struct respcache_key *key,
						      const struct request *request,
						      bool authorized,
						      const struct respcache_entry *like);

/* Marks: the outcome of the last responses of a URL. */
enum respcache_mark { MARK_NONE, MARK_KEPT, MARK_NOT_KEPT };

void respcache_mark_set(struct respcache *cache, uint64_t hash, enum respcache_mark mark,
			uint64_t now_ns);
enum respcache_mark respcache_mark_of(const struct respcache *cache, uint64_t hash,
				      uint64_t now_ns);

/* Authorized requests have a mark of their own. */
static inline uint64_t respcache_mark_hash(uint64_t hash, bool authorized)
{
	return authorized ? ~hash : hash;
}

#endif
