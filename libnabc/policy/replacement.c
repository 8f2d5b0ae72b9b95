/* SPDX-License-Identifier: MIT */
/*
 * replacement.c - SIEVE, LRU and GreedyDual-Size-Frequency; see replacement.h.
 *
 * LRU and GDSF share a heap that is lazy: a use only raises the entry's key,
 * and the heap stays in order of the keys it remembers.  Since keys never
 * fall, an entry whose remembered key is the least and still true is the
 * least of all; one that has grown meanwhile sinks first.  Owns the heap's
 * array.
 */
#include <errno.h>
#include <stdlib.h>

#include "policy/replacement.h"

#define HEAP_ROOM_MIN 64u
#define HEAP_ROOM_MAX (UINT32_MAX / 2)
#define USES_MAX UINT16_MAX

/* Marks of SIEVE. */
enum {
	UNUSED, /* since the hand passed, or ever */
	USED,
	DUE, /* the hand has stopped at it, and it is still there */
};

/* --- SIEVE --------------------------------------------------------------- */

static uint64_t arrival(const struct nc_replaceable *entry)
{
	return (uint64_t)entry->queued.arrival_high << 32 | entry->queued.arrival_low;
}

static uint8_t mark_of(const struct nc_replaceable *entry)
{
	return atomic_load_explicit(&entry->queued.mark, memory_order_relaxed);
}

static void set_mark(struct nc_replaceable *entry, uint8_t mark)
{
	atomic_store_explicit(&entry->queued.mark, mark, memory_order_relaxed);
}

static int sieve_add(struct nc_replacement *order, struct nc_replaceable *entry, size_t bytes)
{
	(void)bytes;
	order->arrivals++;
	entry->queued.arrival_low = (uint32_t)order->arrivals;
	entry->queued.arrival_high = (uint16_t)(order->arrivals >> 32);
	entry->queued.newer = NULL;
	entry->queued.older = order->newest;
	set_mark(entry, UNUSED);
	if (order->newest)
		order->newest->queued.newer = entry;
	else
		order->oldest = entry;
	order->newest = entry;
	return 0;
}

static void sieve_remove(struct nc_replacement *order, struct nc_replaceable *entry)
{
	struct nc_replaceable *newer = entry->queued.newer, *older = entry->queued.older;

	if (order->hand == entry)
		order->hand = newer;
	if (newer)
		newer->queued.older = older;
	else
		order->newest = older;
	if (older)
		older->queued.newer = newer;
	else
		order->oldest = newer;
	entry->queued.newer = entry->queued.older = NULL;
}

static void sieve_use(struct nc_replacement *order, struct nc_replaceable *entry)
{
	(void)order;
	/* Look before writing: a hot entry's line stays shared between CPUs. */
	if (mark_of(entry) != USED)
		set_mark(entry, USED);
}

static struct nc_replaceable *
sieve_victim(struct nc_replacement *order,
	     bool (*may_go)(struct nc_replaceable *entry, void *context), void *context)
{
	struct nc_replaceable *entry = order->hand ? order->hand : order->oldest;
	unsigned ends = 0;

	/* The first pass may clear every mark, so the third end proves that none may go. */
	while (entry && ends < 3) {
		if (may_go(entry, context)) {
			if (mark_of(entry) != USED) {
				order->hand = entry->queued.newer;
				return entry;
			}
			set_mark(entry, UNUSED);
		}
		entry = entry->queued.newer;
		if (!entry) {
			entry = order->oldest;
			ends++;
		}
	}
	return NULL;
}

/* The less, the sooner the hand would stop at it. */
static double sieve_worth(const struct nc_replacement *order, const struct nc_replaceable *entry)
{
	const struct nc_replaceable *hand = order->hand ? order->hand : order->oldest;
	uint64_t round = arrival(order->newest) - arrival(order->oldest) + 1;
	uint64_t way = arrival(entry) - arrival(hand);
	uint8_t mark = mark_of(entry);

	if (arrival(entry) < arrival(hand))
		way += round;
	if (mark == USED)
		way += round;
	else if (mark == DUE)
		way = 0;
	return 1 / (double)(2 * round - way);
}

/* When a used one had to go, the hand stops for it at one that was not. */
static void sieve_judged(struct nc_replacement *order, struct nc_replaceable *entry, bool survived)
{
	struct nc_replaceable *at = order->hand ? order->hand : order->oldest;
	unsigned ends = 0;

	if (survived || mark_of(entry) != USED)
		return;
	set_mark(entry, DUE);
	while (ends < 2) {
		struct nc_replaceable *next = at->queued.newer;

		if (mark_of(at) == UNUSED) {
			set_mark(at, DUE);
			order->hand = next;
			return;
		}
		if (mark_of(at) == USED)
			set_mark(at, UNUSED);
		if (!next)
			ends++;
		at = next ? next : order->oldest;
	}
}

/* --- the heap ------------------------------------------------------------ */

static double load(const _Atomic double *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

static void store(_Atomic double *to, double value)
{
	atomic_store_explicit(to, value, memory_order_relaxed);
}

static void put(struct nc_replacement *order, uint32_t place, struct nc_replaceable *entry)
{
	order->heap[place] = entry;
	entry->ranked.place = place;
}

static void rise(struct nc_replacement *order, struct nc_replaceable *entry)
{
	uint32_t place = entry->ranked.place;

	while (place) {
		struct nc_replaceable *above = order->heap[(place - 1) / 2];

		if (above->ranked.remembered <= entry->ranked.remembered)
			break;
		put(order, place, above);
		place = (place - 1) / 2;
	}
	put(order, place, entry);
}

static void sink(struct nc_replacement *order, struct nc_replaceable *entry)
{
	uint32_t place = entry->ranked.place;

	for (;;) {
		uint32_t next = 2 * place + 1;

		if (next >= order->count)
			break;
		if (next + 1 < order->count &&
		    order->heap[next + 1]->ranked.remembered < order->heap[next]->ranked.remembered)
			next++;
		if (order->heap[next]->ranked.remembered >= entry->ranked.remembered)
			break;
		put(order, place, order->heap[next]);
		place = next;
	}
	put(order, place, entry);
}

static int heap_reserve(struct nc_replacement *order)
{
	struct nc_replaceable **heap;
	uint32_t room;

	if (order->count < order->room)
		return 0;
	if (order->room > HEAP_ROOM_MAX)
		return -ENOMEM;
	/* By a quarter: what lies idle counts into the overhead of a unit. */
	room = order->room < HEAP_ROOM_MIN ? HEAP_ROOM_MIN : order->room + order->room / 4;
	heap = reallocarray(order->heap, room, sizeof(heap[0]));
	if (!heap)
		return -ENOMEM;
	order->heap = heap;
	order->room = room;
	return 0;
}

static int heap_add(struct nc_replacement *order, struct nc_replaceable *entry, double key)
{
	int error = heap_reserve(order);

	if (error)
		return error;
	store(&entry->ranked.key, key);
	entry->ranked.remembered = key;
	entry->ranked.place = order->count++;
	rise(order, entry);
	return 0;
}

static void heap_remove(struct nc_replacement *order, struct nc_replaceable *entry)
{
	uint32_t place = entry->ranked.place;
	struct nc_replaceable *last = order->heap[--order->count];

	if (last == entry)
		return;
	put(order, place, last);
	rise(order, last);
	sink(order, last);
}

/* Lets the heap remember the present key of its first entry, which is returned. */
static struct nc_replaceable *heap_least(struct nc_replacement *order)
{
	for (;;) {
		struct nc_replaceable *entry = order->heap[0];
		double key = load(&entry->ranked.key);

		if (key <= entry->ranked.remembered)
			return entry;
		entry->ranked.remembered = key;
		sink(order, entry);
	}
}

static struct nc_replaceable *
heap_victim(struct nc_replacement *order,
	    bool (*may_go)(struct nc_replaceable *entry, void *context), void *context)
{
	struct nc_replaceable *entry = NULL;
	uint32_t all = order->count;

	while (order->count) {
		entry = heap_least(order);
		if (may_go(entry, context))
			break;
		/* Set aside, into the place that this leaves free behind the heap. */
		heap_remove(order, entry);
		put(order, order->count, entry);
		entry = NULL;
	}
	while (order->count < all)
		rise(order, order->heap[order->count++]);
	return entry;
}

/* --- LRU ----------------------------------------------------------------- */

static int lru_add(struct nc_replacement *order, struct nc_replaceable *entry, size_t bytes)
{
	double now = load(&order->clock) + 1;

	(void)bytes;
	store(&order->clock, now);
	return heap_add(order, entry, now);
}

static void lru_use(struct nc_replacement *order, struct nc_replaceable *entry)
{
	/* After the entry that was added last, before the next one. */
	double now = load(&order->clock) + 0.5;

	if (load(&entry->ranked.key) < now)
		store(&entry->ranked.key, now);
}

/* What was used twice as long ago is half as likely to be used again soon. */
static double lru_worth(const struct nc_replacement *order, const struct nc_replaceable *entry)
{
	return 1 / (load(&order->clock) + 1 - load(&entry->ranked.key));
}

static void lru_judged(struct nc_replacement *order, struct nc_replaceable *entry, bool survived)
{
	(void)order;
	(void)entry;
	(void)survived;
}

/* --- GDSF ---------------------------------------------------------------- */

/* In 16 bits, rounded down by less than a thousandth: exponent and 10 bits. */
static uint16_t bytes_pack(size_t bytes)
{
	unsigned exponent;

	if (bytes < 1024)
		return (uint16_t)bytes;
	exponent = 63 - 10 - (unsigned)__builtin_clzll(bytes);
	return (uint16_t)((exponent + 1) << 10 | (bytes >> exponent & 1023));
}

static double bytes_unpack(uint16_t packed)
{
	unsigned exponent = packed >> 10;

	if (!exponent)
		return packed ? packed : 1;
	return (double)((uint64_t)(1024 | (packed & 1023)) << (exponent - 1));
}

static double gdsf_key(const struct nc_replacement *order, const struct nc_replaceable *entry,
		       unsigned uses)
{
	/* Atomic, as an entry may be used while it is added. */
	uint16_t bytes = atomic_load_explicit(&entry->ranked.bytes, memory_order_relaxed);

	return load(&order->clock) + uses / bytes_unpack(bytes);
}

static int gdsf_add(struct nc_replacement *order, struct nc_replaceable *entry, size_t bytes)
{
	atomic_store_explicit(&entry->ranked.bytes, bytes_pack(bytes), memory_order_relaxed);
	atomic_store_explicit(&entry->ranked.uses, 1, memory_order_relaxed);
	return heap_add(order, entry, gdsf_key(order, entry, 1));
}

/* Two at the same time may count as one. */
static void gdsf_use(struct nc_replacement *order, struct nc_replaceable *entry)
{
	unsigned uses = atomic_load_explicit(&entry->ranked.uses, memory_order_relaxed);
	double key;

	if (uses < USES_MAX)
		atomic_store_explicit(&entry->ranked.uses, (uint16_t)++uses, memory_order_relaxed);
	key = gdsf_key(order, entry, uses);
	if (load(&entry->ranked.key) < key)
		store(&entry->ranked.key, key);
}

/* The key is the floor at the last use and the uses for each byte. */
static double gdsf_worth(const struct nc_replacement *order, const struct nc_replaceable *entry)
{
	double worth = load(&entry->ranked.key) - order->heap[0]->ranked.remembered;

	return worth > 0 ? worth : 0;
}

/*
 * The floor is the key of the one that should have gone: a better one that had
 * to go from its segment says nothing about age.
 */
static void gdsf_judged(struct nc_replacement *order, struct nc_replaceable *entry, bool survived)
{
	double key;

	(void)entry;
	if (survived)
		return;
	key = heap_least(order)->ranked.remembered;
	if (key > load(&order->clock))
		store(&order->clock, key);
}

static struct nc_replaceable *
gdsf_victim(struct nc_replacement *order,
	    bool (*may_go)(struct nc_replaceable *entry, void *context), void *context)
{
	struct nc_replaceable *entry = heap_victim(order, may_go, context);

	if (entry && load(&order->clock) < entry->ranked.remembered)
		store(&order->clock, entry->ranked.remembered);
	return entry;
}

/* --- the table ----------------------------------------------------------- */

static const struct nc_replacement_policy sieve = {
	.name = "sieve",
	.add = sieve_add,
	.remove = sieve_remove,
	.use = sieve_use,
	.victim = sieve_victim,
	.worth = sieve_worth,
	.judged = sieve_judged,
};

static const struct nc_replacement_policy lru = {
	.name = "lru",
	.add = lru_add,
	.remove = heap_remove,
	.use = lru_use,
	.victim = heap_victim,
	.worth = lru_worth,
	.judged = lru_judged,
};

static const struct nc_replacement_policy gdsf = {
	.name = "gdsf",
	.add = gdsf_add,
	.remove = heap_remove,
	.use = gdsf_use,
	.victim = gdsf_victim,
	.worth = gdsf_worth,
	.judged = gdsf_judged,
};

static const struct nc_replacement_policy *const policies[] = {
	[NC_POLICY_DEFAULT] = &gdsf,
	[NC_POLICY_SIEVE] = &sieve,
	[NC_POLICY_LRU] = &lru,
	[NC_POLICY_GDSF] = &gdsf,
};

static const struct nc_replacement_policy *find(enum NC_policy policy)
{
	return (size_t)policy < sizeof(policies) / sizeof(policies[0]) ? policies[policy] : NULL;
}

int nc_replacement_init(struct nc_replacement *order, enum NC_policy policy)
{
	*order = (struct nc_replacement){.policy = find(policy)};
	return order->policy ? 0 : -EINVAL;
}

void nc_replacement_fini(struct nc_replacement *order)
{
	free(order->heap);
	*order = (struct nc_replacement){.policy = order->policy};
}

const char *nc_replacement_name(enum NC_policy policy)
{
	const struct nc_replacement_policy *found = find(policy);

	return found ? found->name : NULL;
}
