/* SPDX-License-Identifier: MIT */
/*
 * cache.h - id to member to unit: naming, holding, destroying; members.
 *
 * A process is the owner of its cache (member 0, sees every member's units)
 * or has joined another's (sees its own).  Internal calls return -errno.
 */
#ifndef NC_CACHE_H
#define NC_CACHE_H

#include <pthread.h>
#include <stdatomic.h>

#include "foreign.h"
#include "member.h"

#define NC_COUNTER_SHARDS 16u

/* One a CPU or so: the send path shares no counter's line. */
struct nc_counters {
	alignas(64) _Atomic uint64_t sends[4];
	_Atomic uint64_t bytes[4];
	_Atomic uint64_t stale, denied, zerocopy_copied;
};

struct nc_cache {
	bool owner;
	unsigned flags; /* NC_CACHE_* */
	size_t max_unit;
	size_t member_size;
	struct nc_member own;
	_Atomic(struct nc_foreign *) *foreigns; /* by number; owner only */
	pthread_mutex_t lock;			/* admission and departure */
	unsigned numbers;			/* the highest number given, + 1 */
	unsigned members;
	struct nc_counters counters[NC_COUNTER_SHARDS];
};

/* A unit in use: good from hold to release. */
struct nc_view {
	size_t id;
	struct nc_unit *unit;
	struct nc_foreign *foreign; /* NULL: this process's own */
};

int nc_cache_init_owner(struct nc_cache *cache, const struct NC_cache_options *options);

/* Takes the segment over; see nc_member_init_joined(). */
int nc_cache_init_joined(struct nc_cache *cache, unsigned number, const struct nc_segment *segment,
			 size_t first, uint32_t slots, uint32_t generation, size_t max_unit);
void nc_cache_fini(struct nc_cache *cache);

/*
 * doomed: units destroyed meanwhile but still held may be held again.
 * 0; -ENOENT: unknown, stale, destroyed; -EACCES: another member's.
 */
int nc_cache_hold(struct nc_cache *cache, size_t id, bool doomed, struct nc_view *view);

/* 0; -EINVAL: not held; errors of hold. */
int nc_cache_release(struct nc_cache *cache, size_t id);

/* 0; -ENOENT; -EACCES. */
int nc_cache_destroy(struct nc_cache *cache, size_t id);

/* A new member with a segment; owner only.  0; -EUSERS: no number is free. */
int nc_cache_admit(struct nc_cache *cache, size_t size, struct nc_foreign **foreign, size_t *first);
void nc_cache_bury(struct nc_cache *cache, struct nc_foreign *foreign);

/* Slots in the table of a segment of that size. */
uint32_t nc_cache_member_slots(size_t size);

void nc_cache_count(struct nc_cache *cache, enum NC_method method, size_t bytes);
struct nc_counters *nc_cache_counters(struct nc_cache *cache);

/* All but the text about io_uring. */
void nc_cache_stat(struct nc_cache *cache, struct NC_cache_stat *stat);

#endif
