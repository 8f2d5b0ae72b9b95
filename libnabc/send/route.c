/* SPDX-License-Identifier: MIT */
/*
 * route.c - the table of routes; see route.h.
 *
 * An entry that goes to another route gets a new number: memos and sends that
 * still have the old one are then ignored or find it anew.  Counters of such
 * stragglers may land in the wrong entry; nothing but statistics hangs on it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include "send/route.h"

#define LEVEL_MAX 13u
#define WINDOW 32u

/* A memo: cookie << 16 | number << 9 | strange << 8 | bounded << 7 | local << 6 | index. */
#define MEMO_COOKIE_MAX (UINT64_MAX >> 16)
#define MEMO_NUMBER_MAX 0x7fu
#define MEMO_STRANGE 0x100u
#define MEMO_BOUNDED 0x80u
#define MEMO_LOCAL 0x40u
#define MEMO_INDEX 0x3fu
static_assert(NC_ROUTES == MEMO_INDEX + 1, "an index fits a memo");

struct key {
	unsigned char address[16];
	int family;
	bool local;
};

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

void nc_routes_init(struct nc_routes *routes)
{
	memset(routes, 0, sizeof(*routes));
	routes->fixed = NC_ROUTE_LEARN;
	pthread_mutex_init(&routes->lock, NULL);
}

void nc_routes_fini(struct nc_routes *routes)
{
	for (unsigned i = 0; i < NC_ROUTES; i++)
		free(routes->table[i].counts);
	pthread_mutex_destroy(&routes->lock);
}

/* --- counters ------------------------------------------------------------- */

static void add(_Atomic uint64_t *counter, uint64_t more)
{
	if (more)
		atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void nc_route_count(const struct nc_route_use *use, const struct nc_route_tally *tally,
		    unsigned weight)
{
	struct nc_route_counts *counts;
	int cpu;

	if (!use->route)
		return;
	cpu = sched_getcpu();
	counts = &use->route->counts[(unsigned)(cpu < 0 ? 0 : cpu) % NC_ROUTE_SHARDS];
	for (unsigned i = 0; i < NC_METHODS; i++) {
		add(&counts->sends[i], (uint64_t)tally->sends[i] * weight);
		add(&counts->bytes[i], tally->bytes[i] * weight);
	}
	add(&counts->partial, (uint64_t)tally->partial * weight);
}

static uint64_t uses(const struct nc_route *route)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < NC_ROUTE_SHARDS; i++)
		for (unsigned method = 0; method < NC_METHODS; method++)
			sum += get(&route->counts[i].sends[method]);
	return sum;
}

/* --- entries -------------------------------------------------------------- */

static void forget(struct nc_trial *trial)
{
	atomic_store_explicit(&trial->level, 0, memory_order_relaxed);
	atomic_store_explicit(&trial->since, 0, memory_order_relaxed);
	atomic_store_explicit(&trial->calls, 0, memory_order_relaxed);
	atomic_store_explicit(&trial->bytes, 0, memory_order_relaxed);
}

static void forget_all(struct nc_route *route)
{
	forget(&route->copied);
	for (unsigned i = 0; i < NC_METHODS; i++)
		for (unsigned class = 0; class < NC_ROUTE_CLASSES; class ++)
			forget(&route->taken[i][class]);
}

/* An empty entry, or the one that was used least since the last time; NULL: all are fixed. */
static struct nc_route *vacate_locked(struct nc_routes *routes)
{
	struct nc_route *least = NULL;
	uint64_t best = 0;

	for (unsigned i = 0; i < NC_ROUTES; i++) {
		struct nc_route *route = &routes->table[i];
		uint64_t since;

		if (route->family == AF_UNSPEC)
			return route;
		since = uses(route) - route->mark;
		if (atomic_load_explicit(&route->fixed, memory_order_relaxed) == NC_ROUTE_LEARN &&
		    (!least || since < best)) {
			least = route;
			best = since;
		}
	}
	/* What was long ago counts half, again and again. */
	if (++routes->replaced % NC_ROUTES == 0)
		for (unsigned i = 0; i < NC_ROUTES; i++)
			routes->table[i].mark +=
				(uses(&routes->table[i]) - routes->table[i].mark) / 2;
	return least;
}

static bool same_address(const struct nc_route *route, const struct key *key)
{
	return route->family == key->family &&
	       memcmp(route->address, key->address, sizeof(key->address)) == 0;
}

static struct nc_route *find_locked(struct nc_routes *routes, const struct key *key)
{
	for (unsigned i = 0; i < NC_ROUTES; i++)
		if (routes->table[i].local == key->local && same_address(&routes->table[i], key))
			return &routes->table[i];
	return NULL;
}

static struct nc_route *enter_locked(struct nc_routes *routes, const struct key *key)
{
	struct nc_route *route = find_locked(routes, key);
	size_t size = NC_ROUTE_SHARDS * sizeof(*route->counts);
	int fixed = routes->fixed;

	if (route)
		return route;
	/* One word for an address, whoever the peers are. */
	for (unsigned i = 0; i < NC_ROUTES; i++)
		if (same_address(&routes->table[i], key))
			fixed = atomic_load_explicit(&routes->table[i].fixed, memory_order_relaxed);
	route = vacate_locked(routes);
	if (route && !route->counts)
		route->counts = aligned_alloc(alignof(struct nc_route_counts), size);
	if (!route || !route->counts)
		return NULL;
	memset(route->counts, 0, size);
	memcpy(route->address, key->address, sizeof(route->address));
	route->family = key->family;
	route->local = key->local;
	route->mark = 0;
	atomic_store_explicit(&route->kept, 0, memory_order_relaxed);
	atomic_store_explicit(&route->copied_count, 0, memory_order_relaxed);
	forget_all(route);
	atomic_store_explicit(&route->fixed, fixed, memory_order_relaxed);
	atomic_fetch_add_explicit(&route->number, 1, memory_order_relaxed);
	return route;
}

/* --- from a socket to its route -------------------------------------------- */

static bool key_of(const struct sockaddr_storage *from, struct key *key)
{
	*key = (struct key){.family = from->ss_family};
	switch (from->ss_family) {
	case AF_INET:
		memcpy(key->address, mapped, sizeof(mapped));
		memcpy(key->address + sizeof(mapped),
		       &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
		return true;
	case AF_INET6:
		memcpy(key->address, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr,
		       16);
		if (memcmp(key->address, mapped, sizeof(mapped)) == 0)
			key->family = AF_INET;
		return true;
	case AF_UNIX:
		key->local = true;
		return true;
	default:
		return false;
	}
}

static bool ask(int socket, struct key *key)
{
	struct sockaddr_storage here, there;
	socklen_t here_length = sizeof(here), there_length = sizeof(there);
	struct key peer;

	if (getsockname(socket, (struct sockaddr *)&here, &here_length) < 0 ||
	    getpeername(socket, (struct sockaddr *)&there, &there_length) < 0 ||
	    !key_of(&here, key) || !key_of(&there, &peer))
		return false;
	if (memcmp(key->address, peer.address, sizeof(key->address)) == 0)
		key->local = true;
	return true;
}

static uint64_t memo_of(const struct nc_routes *routes, const struct nc_route_use *use)
{
	return use->cookie << 16 | (uint64_t)(use->number & MEMO_NUMBER_MAX) << 9 |
	       (use->strange ? MEMO_STRANGE : 0) | (use->unbounded ? 0 : MEMO_BOUNDED) |
	       (use->local ? MEMO_LOCAL : 0) | (uint64_t)(use->route - routes->table);
}

static void remember(struct nc_routes *routes, const struct nc_route_use *use)
{
	if (use->route && use->cookie && use->cookie <= MEMO_COOKIE_MAX)
		atomic_store_explicit(&routes->memos[use->cookie % NC_ROUTE_MEMOS],
				      memo_of(routes, use), memory_order_relaxed);
}

static bool recall(struct nc_routes *routes, struct nc_route_use *use)
{
	uint64_t memo = atomic_load_explicit(&routes->memos[use->cookie % NC_ROUTE_MEMOS],
					     memory_order_relaxed);

	if (!use->cookie || memo >> 16 != use->cookie)
		return false;
	use->route = &routes->table[memo & MEMO_INDEX];
	use->number = atomic_load_explicit(&use->route->number, memory_order_relaxed);
	use->local = memo & MEMO_LOCAL;
	use->unbounded = !(memo & MEMO_BOUNDED);
	use->strange = memo & MEMO_STRANGE;
	return (use->number & MEMO_NUMBER_MAX) == (memo >> 9 & MEMO_NUMBER_MAX);
}

#define NOTE_THERE 0x8000u
#define NOTE_SHIFT 7u /* of the number */
static_assert(MEMO_NUMBER_MAX << NOTE_SHIFT < NOTE_THERE, "a number fits a note");

uint32_t nc_route_note(const struct nc_routes *routes, const struct nc_route_use *use)
{
	if (!use->route)
		return 0;
	return NOTE_THERE | (use->number & MEMO_NUMBER_MAX) << NOTE_SHIFT |
	       (use->local ? MEMO_LOCAL : 0) | (uint32_t)(use->route - routes->table);
}

bool nc_route_noted(struct nc_routes *routes, uint32_t note, struct nc_route_use *use)
{
	if (!(note & NOTE_THERE))
		return false;
	*use = (struct nc_route_use){.route = &routes->table[note & MEMO_INDEX],
				     .local = note & MEMO_LOCAL};
	use->number = atomic_load_explicit(&use->route->number, memory_order_relaxed);
	return (use->number & MEMO_NUMBER_MAX) == (note >> NOTE_SHIFT & MEMO_NUMBER_MAX);
}

int nc_route_find(struct nc_routes *routes, int socket, struct nc_route_use *use)
{
	socklen_t length = sizeof(use->cookie);
	struct key key;

	*use = (struct nc_route_use){0};
	if (getsockopt(socket, SOL_SOCKET, SO_COOKIE, &use->cookie, &length) < 0) {
		if (errno != ENOPROTOOPT)
			return -errno;
		use->cookie = 0;
	}
	if (recall(routes, use))
		return 0;
	use->route = NULL;
	use->strange = false;
	if (!ask(socket, &key))
		return 0;
	pthread_mutex_lock(&routes->lock);
	use->route = enter_locked(routes, &key);
	if (use->route)
		use->number = atomic_load_explicit(&use->route->number, memory_order_relaxed);
	pthread_mutex_unlock(&routes->lock);
	use->local = key.local;
	use->unbounded = key.family != AF_UNIX;
	remember(routes, use);
	return 0;
}

void nc_route_bounded(struct nc_routes *routes, const struct nc_route_use *use)
{
	struct nc_route_use bounded = *use;

	bounded.unbounded = false;
	remember(routes, &bounded);
}

void nc_route_estranged(struct nc_routes *routes, struct nc_route_use *use)
{
	use->strange = true;
	remember(routes, use);
}

/* --- learning ------------------------------------------------------------- */

static uint32_t refusals(uint32_t level)
{
	return NC_ROUTE_SAMPLE << level;
}

static bool trial_due(struct nc_trial *trial, bool sampled)
{
	uint32_t level = atomic_load_explicit(&trial->level, memory_order_relaxed);

	if (level == 0)
		return true;
	if (!sampled ||
	    atomic_fetch_add_explicit(&trial->since, NC_ROUTE_SAMPLE, memory_order_relaxed) +
			    NC_ROUTE_SAMPLE <
		    refusals(level))
		return false;
	atomic_store_explicit(&trial->since, 0, memory_order_relaxed);
	return true;
}

/* From one level to another, unless somebody was quicker. */
static void trial_ends(struct nc_trial *trial, uint32_t from, uint32_t to)
{
	if (from != to && to <= LEVEL_MAX)
		(void)atomic_compare_exchange_strong_explicit(
			&trial->level, &from, to, memory_order_relaxed, memory_order_relaxed);
}

bool nc_route_tries(const struct nc_route_use *use, enum NC_method method, unsigned class,
		    bool sampled)
{
	return !use->route || trial_due(&use->route->taken[method][class], sampled);
}

bool nc_route_tries_zerocopy(const struct nc_route_use *use, bool sampled)
{
	return use->route && !use->local && trial_due(&use->route->copied, sampled);
}

/* Bytes a call from which on a method is cheaper than a copy. */
static size_t worth(enum NC_method method)
{
	return method == NC_METHOD_ZEROCOPY ? 2 * NC_ROUTE_CLASS_MIN : NC_ROUTE_CLASS_MIN;
}

void nc_route_took(const struct nc_route_use *use, enum NC_method method, size_t offered,
		   size_t taken)
{
	struct nc_trial *trial;
	uint32_t level, calls;
	uint64_t bytes;

	if (!use->route)
		return;
	trial = &use->route->taken[method][nc_route_class(offered)];
	level = atomic_load_explicit(&trial->level, memory_order_relaxed);
	/* A trial speaks for itself; otherwise the average of a window does. */
	bytes = atomic_fetch_add_explicit(&trial->bytes, taken, memory_order_relaxed) + taken;
	calls = atomic_fetch_add_explicit(&trial->calls, 1, memory_order_relaxed) + 1;
	if (calls < (level ? 1 : WINDOW))
		return;
	atomic_store_explicit(&trial->calls, 0, memory_order_relaxed);
	atomic_store_explicit(&trial->bytes, 0, memory_order_relaxed);
	/* One good trial is a hint, not a proof: sockets differ. */
	trial_ends(trial, level, bytes / calls >= worth(method) ? level / 2 : level + 1);
}

uint32_t nc_route_level(const struct nc_route_use *use)
{
	return use->route ? atomic_load_explicit(&use->route->copied.level, memory_order_relaxed)
			  : 0;
}

/* Whether the entry is still what it was when the send began. */
static bool still_there(const struct nc_route_use *use)
{
	return use->route &&
	       atomic_load_explicit(&use->route->number, memory_order_relaxed) == use->number;
}

void nc_route_notified(const struct nc_route_use *use, uint32_t level, bool copied)
{
	if (!still_there(use))
		return;
	add(copied ? &use->route->copied_count : &use->route->kept, 1);
	trial_ends(&use->route->copied, level, copied ? level + 1 : 0);
}

void nc_route_refused(const struct nc_route_use *use, uint32_t level)
{
	if (still_there(use))
		trial_ends(&use->route->copied, level, level + 1);
}

/* --- for people ----------------------------------------------------------- */

/* Which sizes a method is not tried for at present, as bits of classes. */
static unsigned avoided(const struct nc_route *route, enum NC_method method)
{
	unsigned classes = 0;

	for (unsigned class = 0; class < NC_ROUTE_CLASSES; class ++)
		if (atomic_load_explicit(&route->taken[method][class].level, memory_order_relaxed))
			classes |= 1u << class;
	return classes;
}

static void explain(const struct nc_route *route, struct NC_route *told, bool zerocopy)
{
	uint32_t level = atomic_load_explicit(&route->copied.level, memory_order_relaxed);
	const unsigned large = 1u << (NC_ROUTE_CLASSES - 1);
	const char *copied;
	char text[32];

	told->method = atomic_load_explicit(&route->fixed, memory_order_relaxed);
	if (told->method != NC_ROUTE_LEARN) {
		told->recycled =
			told->method == NC_METHOD_SPLICE || told->method == NC_METHOD_KERNEL
				? NC_METHOD_COPY
				: (enum NC_method)told->method;
		told->lasting = (enum NC_method)told->method;
		snprintf(told->why, sizeof(told->why), "fixed");
		return;
	}
	if (!zerocopy)
		copied = "no io_uring";
	else if (route->local)
		copied = "stays on this machine";
	else if (level) {
		copied = text;
		snprintf(text, sizeof(text), "the kernel copies, %u to go",
			 refusals(level) -
				 atomic_load_explicit(&route->copied.since, memory_order_relaxed));
	} else
		copied = told->kept ? "not copied" : "not known yet";
	zerocopy &= !route->local && !level && !(avoided(route, NC_METHOD_ZEROCOPY) & large);
	told->recycled = zerocopy ? NC_METHOD_ZEROCOPY : NC_METHOD_COPY;
	told->lasting =
		avoided(route, NC_METHOD_SPLICE) & large ? told->recycled : NC_METHOD_SPLICE;
	snprintf(told->why, sizeof(told->why), "%s%s", copied,
		 avoided(route, NC_METHOD_SPLICE) || avoided(route, NC_METHOD_ZEROCOPY)
			 ? "; sockets take little at a time"
			 : "");
}

static void tell(const struct nc_route *route, struct NC_route *told, bool zerocopy)
{
	*told = (struct NC_route){.family = route->family, .local = route->local};
	if (route->family == AF_INET)
		memcpy(told->octets, route->address + sizeof(mapped), 4);
	else
		memcpy(told->octets, route->address, sizeof(told->octets));
	if (route->family == AF_UNIX)
		snprintf(told->address, sizeof(told->address), "unix");
	else
		inet_ntop(route->family, told->octets, told->address, sizeof(told->address));
	for (unsigned i = 0; i < NC_ROUTE_SHARDS; i++) {
		for (unsigned method = 0; method < NC_METHODS; method++) {
			told->sends[method] += get(&route->counts[i].sends[method]);
			told->bytes[method] += get(&route->counts[i].bytes[method]);
		}
		told->partial += get(&route->counts[i].partial);
	}
	told->kept = get(&route->kept);
	told->copied = get(&route->copied_count);
	explain(route, told, zerocopy);
}

unsigned nc_routes_tell(struct nc_routes *routes, struct NC_route *list, unsigned count,
			bool zerocopy)
{
	unsigned found = 0;

	pthread_mutex_lock(&routes->lock);
	for (unsigned i = 0; i < NC_ROUTES; i++) {
		if (routes->table[i].family == AF_UNSPEC)
			continue;
		if (found < count)
			tell(&routes->table[i], &list[found], zerocopy);
		found++;
	}
	pthread_mutex_unlock(&routes->lock);
	return found;
}

static bool parse(const char *address, struct key *key)
{
	struct sockaddr_storage storage = {0};

	if (strcmp(address, "unix") == 0)
		storage.ss_family = AF_UNIX;
	else if (inet_pton(AF_INET, address, &((struct sockaddr_in *)(void *)&storage)->sin_addr) ==
		 1)
		storage.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, address,
			   &((struct sockaddr_in6 *)(void *)&storage)->sin6_addr) == 1)
		storage.ss_family = AF_INET6;
	else
		return false;
	return key_of(&storage, key);
}

static void fix(struct nc_route *route, int method)
{
	atomic_store_explicit(&route->fixed, method, memory_order_relaxed);
	if (method == NC_ROUTE_LEARN)
		forget_all(route);
}

static int fix_locked(struct nc_routes *routes, const struct key *key, int method)
{
	bool any = false, fixed = false;

	/* Before there is traffic, or after its entry was given away. */
	if (key && method != NC_ROUTE_LEARN) {
		bool there = false;

		for (unsigned i = 0; i < NC_ROUTES; i++)
			there |= same_address(&routes->table[i], key);
		if (!there && !enter_locked(routes, key))
			return -ENOSPC;
	}
	if (!key)
		routes->fixed = method;
	for (unsigned i = 0; i < NC_ROUTES; i++) {
		struct nc_route *route = &routes->table[i];

		if (route->family == AF_UNSPEC)
			continue;
		if (!key || same_address(route, key))
			fix(route, method);
		any |= atomic_load_explicit(&route->fixed, memory_order_relaxed) != NC_ROUTE_LEARN;
	}
	fixed = any || routes->fixed != NC_ROUTE_LEARN;
	atomic_store_explicit(&routes->any_fixed, fixed, memory_order_relaxed);
	return 0;
}

int nc_routes_fix(struct nc_routes *routes, const char *address, int method)
{
	bool all = strcmp(address, "*") == 0;
	struct key key;
	int error;

	if (!all && !parse(address, &key))
		return -EINVAL;
	pthread_mutex_lock(&routes->lock);
	error = fix_locked(routes, all ? NULL : &key, method);
	pthread_mutex_unlock(&routes->lock);
	return error;
}
