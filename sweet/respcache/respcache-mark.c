/* SPDX-License-Identifier: MIT */
/*
 * respcache-mark.c - marks: the outcome of the last responses of a URL; see
 * respcache-internal.h.
 *
 * A mark is one number: bits of the hash, the outcome, and the second of its
 * expiry.  URLs that share a slot overwrite each other's marks, which costs only an
 * additional call.
 */
#include "respcache/respcache-internal.h"

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
