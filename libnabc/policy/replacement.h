/* SPDX-License-Identifier: MIT */
/*
 * replacement.h - which of many things is to go first, by one of several
 * policies.
 *
 * SIEVE (Zhang et al., NSDI 2024): a queue in order of arrival, a mark on
 * each entry that was used, and a hand that walks from the oldest to the
 * newest, clears marks and stops at the first entry without one.
 * LRU: what was used longest ago, in units of one nc_replacement_add().
 * GDSF (Cherkasova, 1998): the least of floor + uses / bytes, where the floor
 * is the key of the last one that went: small and often used things stay.
 *
 * GDSF is the default.  In segments, on bench/bench trace's requests of a real
 * site, it hits most at every size of the cache: 84.6 % with a cache of 5 % of
 * the bytes, where SIEVE hits 78.2 and LRU 74.9; it does not keep as many of
 * the large things, 9.2 % of the bytes there against 11.5 and 10.5.  A miss
 * costs a server a request's work whatever the size.  bench/README.md has all
 * figures.  LRU and GDSF take 8 to 10 bytes an entry besides the entry.
 *
 * Every call but nc_replacement_use() is under the caller's lock, which also
 * keeps the entries alive.  The order owns no entry.
 */
#ifndef NC_REPLACEMENT_H
#define NC_REPLACEMENT_H

#include <nabc.h>

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

/* A policy keeps what it needs in the entry; nobody else looks inside. */
struct nc_replaceable {
	union {
		struct {
			struct nc_replaceable *newer, *older;
			uint32_t arrival_low;
			uint16_t arrival_high;
			_Atomic uint8_t mark; /* enum in replacement-sieve.c */
		} queued;		      /* SIEVE */
		struct {
			_Atomic double key;	/* only grows */
			double remembered;	/* the key that the heap is in order of */
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
	/* LRU, GDSF: a heap whose least is first */
	struct nc_replaceable **heap;
	uint32_t count, room;
};

struct nc_replacement_policy {
	const char *name;
	int (*add)(struct nc_replacement *order, struct nc_replaceable *entry, size_t bytes);
	void (*remove)(struct nc_replacement *order, struct nc_replaceable *entry);
	void (*use)(struct nc_replacement *order, struct nc_replaceable *entry);
	struct nc_replaceable *(*victim)(struct nc_replacement *order,
					 bool (*may_go)(struct nc_replaceable *entry,
							void *context),
					 void *context);
	double (*worth)(const struct nc_replacement *order, const struct nc_replaceable *entry);
	void (*judged)(struct nc_replacement *order, struct nc_replaceable *entry, bool survived);
};

/* 0, or -EINVAL: no such policy. */
int nc_replacement_init(struct nc_replacement *order, enum NC_policy policy);
void nc_replacement_fini(struct nc_replacement *order);

/* What the policy is called, like "sieve"; the default by the name of what it is. */
const char *nc_replacement_name(enum NC_policy policy);

/* Enters what is not in an order.  bytes: the memory it takes.  0 or -ENOMEM. */
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
 * The entry was used.  Lock-free, from any thread; writes the entry alone, and
 * that only when it changes.  Harmless for an entry that is in no order.
 */
static inline void nc_replacement_use(struct nc_replacement *order, struct nc_replaceable *entry)
{
	order->policy->use(order, entry);
}

/*
 * The entry to go, still in the order; NULL when may_go refuses all of them.
 * What is refused, and a victim that the caller then leaves, keeps its rank
 * and comes up again and again (but with SIEVE only in the next round): things
 * that must stay for long (pinned ones) are better left out of the order, and
 * may_go should refuse whatever cannot go.  may_go must not change the order.
 */
static inline struct nc_replaceable *
nc_replacement_victim(struct nc_replacement *order,
		      bool (*may_go)(struct nc_replaceable *entry, void *context), void *context)
{
	return order->policy->victim(order, may_go, context);
}

/*
 * How much the entry deserves to stay, 0 or more, as the worth of each byte of
 * it: a share of the uses to come.  To be compared with other entries of the
 * same order at about the same moment.
 */
static inline double nc_replacement_worth(const struct nc_replacement *order,
					  const struct nc_replaceable *entry)
{
	return order->policy->worth(order, entry);
}

/*
 * The cleaner of segments has decided about an entry, not victim(): what did
 * not survive is removed by the caller after this.  Lets the order age as if
 * it had chosen by itself, so that what was in use long ago becomes due.
 */
static inline void nc_replacement_judged(struct nc_replacement *order, struct nc_replaceable *entry,
					 bool survived)
{
	order->policy->judged(order, entry, survived);
}

#endif
