/* SPDX-License-Identifier: MIT */
/*
 * replacement.h - selects which of many entries to evict next, by one of several
 * policies.
 *
 * SIEVE (Zhang et al., NSDI 2024): a queue in order of arrival, a mark on each
 * entry that was used, and a hand that moves from the oldest to the newest, clears
 * marks and stops at the first entry without one.  LRU: evicts the least recently
 * used entry; time is counted in calls of nc_replacement_add().  GDSF (Cherkasova,
 * 1998): evicts the entry with the least floor + uses / bytes, where the floor is
 * the key of the last evicted entry: small and often used entries stay.
 *
 * GDSF is the default.  In segments, with the requests of a real site (bench/bench
 * trace), it has the highest hit ratio at every cache size: 84.6 % with a cache of
 * 5 % of the bytes, compared with 78.2 % for SIEVE and 74.9 % for LRU.  It keeps
 * fewer large entries, with 9.2 % of the bytes there compared with 11.5 and 10.5 %.
 * But a miss costs a server one request's work, regardless of the size.
 * bench/README.md has all figures.  LRU and GDSF take 8 to 10 bytes per entry in
 * addition to the entry.
 *
 * All calls except nc_replacement_use() require the caller's lock, which also keeps
 * the entries alive.  The order owns no entry.
 */
#ifndef NC_REPLACEMENT_H
#define NC_REPLACEMENT_H

#include <nabc.h>

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The fields of a policy in an entry; only the policy uses them. */
struct nc_replaceable {
	union {
		struct {
			struct nc_replaceable *newer, *older;
			uint32_t arrival_low;
			uint16_t arrival_high;
			_Atomic uint8_t mark; /* enum in replacement-sieve.c */
		} queued;		      /* SIEVE */
		struct {
			_Atomic double key;	/* never decreases */
			double remembered;	/* the key by which the heap is ordered */
			uint32_t place;		/* in the heap */
			_Atomic uint16_t bytes; /* see bytes_pack() */
			_Atomic uint16_t uses;
		} ranked; /* LRU, GDSF */
	};
};

static_assert(sizeof(struct nc_replaceable) <= 24, "memory overhead a unit");

struct nc_replacement {
	const struct nc_replacement_policy *policy;
	_Atomic double clock; /* LRU: adds so far; GDSF: the floor */
	/* SIEVE */
	struct nc_replaceable *newest, *oldest;
	struct nc_replaceable *hand; /* NULL: begin at the oldest */
	uint64_t arrivals;
	/* LRU, GDSF: a heap with the least entry first */
	struct nc_replaceable **heap;
	uint32_t count, room;
};

struct nc_replacement_policy {
	const char *name;
	int (*add)(struct nc_replacement *order, struct nc_replaceable *entry, size_t bytes);
	void (*remove)(struct nc_replacement *order, struct nc_replaceable *entry);
	void (*use)(struct nc_replacement *order, struct nc_replaceable *entry);
	struct nc_replaceable *(*victim)(struct nc_replacement *order,
					 bool (*may_evict)(struct nc_replaceable *entry,
							   void *context),
					 void *context);
	double (*worth)(const struct nc_replacement *order, const struct nc_replaceable *entry);
	void (*judged)(struct nc_replacement *order, struct nc_replaceable *entry, bool survived);
};

/* Returns 0, or -EINVAL (no such policy). */
int nc_replacement_init(struct nc_replacement *order, enum NC_policy policy);
void nc_replacement_fini(struct nc_replacement *order);

/*
 * Returns the name of the policy, such as "sieve"; for the default, the name of the
 * selected one.
 */
const char *nc_replacement_name(enum NC_policy policy);

/* Adds an entry that is in no order.  bytes: the memory it takes.  Returns 0 or -ENOMEM. */
static inline int nc_replacement_add(struct nc_replacement *order, struct nc_replaceable *entry,
				     size_t bytes)
{
	return order->policy->add(order, entry, bytes);
}

static inline void nc_replacement_remove(struct nc_replacement *order, struct nc_replaceable *entry)
{
	order->policy->remove(order, entry);
}

/*
 * Records a use of the entry.  Lock-free, from any thread; writes only to the
 * entry, and only if it changes.  Harmless for an entry that is in no order.
 */
static inline void nc_replacement_use(struct nc_replacement *order, struct nc_replaceable *entry)
{
	order->policy->use(order, entry);
}

/*
 * Returns the victim, which remains in the order; NULL if may_evict refuses all
 * entries.  Refused entries, and a victim that the caller does not evict, keep
 * their rank and are considered again in each call (with SIEVE only in the next
 * round).  So keep entries that stay long (pinned ones) out of the order; may_evict
 * should refuse whatever cannot be evicted.  may_evict must not change the order.
 */
static inline struct nc_replaceable *
nc_replacement_victim(struct nc_replacement *order,
		      bool (*may_evict)(struct nc_replaceable *entry, void *context), void *context)
{
	return order->policy->victim(order, may_evict, context);
}

/*
 * Returns how much the entry deserves to stay, 0 or more, per byte: a share of the
 * expected uses.  Compare it only with other entries of the same order at about the
 * same moment.
 */
static inline double nc_replacement_worth(const struct nc_replacement *order,
					  const struct nc_replaceable *entry)
{
	return order->policy->worth(order, entry);
}

/*
 * Reports that compaction, not victim(), has decided about an entry; the caller
 * then removes it if it does not survive.  The order ages as if it had selected the
 * entry itself, so that entries last used long ago become due.
 */
static inline void nc_replacement_judged(struct nc_replacement *order, struct nc_replaceable *entry,
					 bool survived)
{
	order->policy->judged(order, entry, survived);
}

#endif
