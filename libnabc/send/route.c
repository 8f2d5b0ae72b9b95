/* SPDX-License-Identifier: MIT */
/*
 * route.c - the table of routes; see route.h.
 *
 * An entry that is reused for another route gets a new number.  Memos and sends
 * that still have the old number are ignored, or look the route up again.  Their
 * counters may go to the wrong entry; that affects only statistics.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include "send/route-internal.h"
#include "send/route.h"

/*
 * A memo: cookie << 17 | number << 10 | large << 9 | refused << 8 | bounded << 7 | local << 6 |
 * index.
 */
#define MEMO_COOKIE 17u /* shifts it */
#define MEMO_NUMBER 10u
#define MEMO_COOKIE_MAX (UINT64_MAX >> MEMO_COOKIE)
#define MEMO_NUMBER_MAX 0x7fu
#define MEMO_LARGE 0x200u
#define MEMO_REFUSED 0x100u
#define MEMO_BOUNDED 0x80u
#define MEMO_LOCAL 0x40u
#define MEMO_INDEX 0x3fu
static_assert(NC_ROUTES == MEMO_INDEX + 1, "an index fits a memo");

static const unsigned char mapped[NC_ROUTE_MAPPED] = {[10] = 0xff, [11] = 0xff};

void nc_routes_init(struct nc_routes *routes)
{
	memset(routes, 0, sizeof(*routes));
	routes->fixed = NC_ROUTE_LEARN;
	pthread_mutex_init(&routes->lock, NULL);
}

void nc_routes_fini(struct nc_routes *routes)
{
	for (unsigned i = 0; i < NC_ROUTES; i++) {
		free(routes->table[i].counts);
		free(routes->table[i].choices);
	}
	pthread_mutex_destroy(&routes->lock);
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
		nc_route_add(&counts->sends[i], (uint64_t)tally->sends[i] * weight);
		nc_route_add(&counts->bytes[i], tally->bytes[i] * weight);
	}
	nc_route_add(&counts->partial, (uint64_t)tally->partial * weight);
}

static uint64_t uses(const struct nc_route *route)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < NC_ROUTE_SHARDS; i++)
		for (unsigned method = 0; method < NC_METHODS; method++)
			sum += nc_route_get(&route->counts[i].sends[method]);
	return sum;
}

/* --- entries -------------------------------------------------------------- */

static void forget(struct nc_trial *trial)
{
	atomic_store_explicit(&trial->level, 0, memory_order_relaxed);
	atomic_store_explicit(&trial->since, 0, memory_order_relaxed);
	atomic_store_explicit(&trial->run, 0, memory_order_relaxed);
}

static void forget_choices(struct nc_choice *choices)
{
	for (unsigned class = 0; class < NC_ROUTE_CLASSES; class ++)
		nc_choice_forget(&choices[class]);
}

/* Sends of the entry's last route may still be counted. */
static void forget_counts(struct nc_route *route)
{
	for (unsigned i = 0; i < NC_ROUTE_SHARDS; i++) {
		struct nc_route_counts *counts = &route->counts[i];

		for (unsigned method = 0; method < NC_METHODS; method++) {
			atomic_store_explicit(&counts->sends[method], 0, memory_order_relaxed);
			atomic_store_explicit(&counts->bytes[method], 0, memory_order_relaxed);
		}
		atomic_store_explicit(&counts->partial, 0, memory_order_relaxed);
	}
}

void nc_route_forget_all(struct nc_route *route)
{
	forget(&route->copied);
	atomic_store_explicit(&route->device, NC_ROUTE_UNKNOWN, memory_order_relaxed);
	forget_choices(route->choices->recycled);
	forget_choices(route->choices->lasting);
	forget_choices(route->choices->registered);
}

/* Returns an empty entry, or the one least used since the last aging; NULL: all are fixed. */
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
	/* Halve the weight of earlier uses at regular intervals. */
	if (++routes->replaced % NC_ROUTES == 0)
		for (unsigned i = 0; i < NC_ROUTES; i++)
			routes->table[i].mark +=
				(uses(&routes->table[i]) - routes->table[i].mark) / 2;
	return least;
}

bool nc_route_same_address(const struct nc_route *route, const struct nc_route_key *key)
{
	return route->family == key->family &&
	       memcmp(route->address, key->address, sizeof(key->address)) == 0;
}

static struct nc_route *find_locked(struct nc_routes *routes, const struct nc_route_key *key)
{
	for (unsigned i = 0; i < NC_ROUTES; i++)
		if (routes->table[i].local == key->local &&
		    nc_route_same_address(&routes->table[i], key))
			return &routes->table[i];
	return NULL;
}

struct nc_route *nc_routes_enter_locked(struct nc_routes *routes, const struct nc_route_key *key)
{
	struct nc_route *route = find_locked(routes, key);
	int fixed = routes->fixed;

	if (route)
		return route;
	/* An address has one fixed method, for all peers. */
	for (unsigned i = 0; i < NC_ROUTES; i++)
		if (nc_route_same_address(&routes->table[i], key))
			fixed = atomic_load_explicit(&routes->table[i].fixed, memory_order_relaxed);
	route = vacate_locked(routes);
	if (route && !route->counts)
		route->counts = aligned_alloc(alignof(struct nc_route_counts),
					      NC_ROUTE_SHARDS * sizeof(*route->counts));
	if (route && !route->choices)
		route->choices = calloc(1, sizeof(*route->choices));
	if (!route || !route->counts || !route->choices)
		return NULL;
	forget_counts(route);
	memcpy(route->address, key->address, sizeof(route->address));
	route->family = key->family;
	route->local = key->local;
	route->mark = 0;
	atomic_store_explicit(&route->kept, 0, memory_order_relaxed);
	atomic_store_explicit(&route->copied_count, 0, memory_order_relaxed);
	nc_route_forget_all(route);
	atomic_store_explicit(&route->fixed, fixed, memory_order_relaxed);
	atomic_fetch_add_explicit(&route->number, 1, memory_order_relaxed);
	return route;
}

/* --- from a socket to its route -------------------------------------------- */

bool nc_route_key_of(const struct sockaddr_storage *from, struct nc_route_key *key)
{
	*key = (struct nc_route_key){.family = from->ss_family};
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

static bool ask(int socket, struct nc_route_key *key)
{
	struct sockaddr_storage here, there;
	socklen_t here_length = sizeof(here), there_length = sizeof(there);
	struct nc_route_key peer;

	if (getsockname(socket, (struct sockaddr *)&here, &here_length) < 0 ||
	    getpeername(socket, (struct sockaddr *)&there, &there_length) < 0 ||
	    !nc_route_key_of(&here, key) || !nc_route_key_of(&there, &peer))
		return false;
	if (memcmp(key->address, peer.address, sizeof(key->address)) == 0)
		key->local = true;
	return true;
}

/* The module's limit is an MTU of 4000 bytes (kernel-shim/egress.c). */
static bool has_large_segments(int socket)
{
	int bytes;
	socklen_t length = sizeof(bytes);

	return getsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &bytes, &length) == 0 && bytes >= 3900;
}

static uint64_t memo_of(const struct nc_routes *routes, const struct nc_route_use *use)
{
	return use->cookie << MEMO_COOKIE |
	       (uint64_t)(use->number & MEMO_NUMBER_MAX) << MEMO_NUMBER |
	       (use->large ? MEMO_LARGE : 0) | (use->kernel_refused ? MEMO_REFUSED : 0) |
	       (use->unbounded ? 0 : MEMO_BOUNDED) | (use->local ? MEMO_LOCAL : 0) |
	       (uint64_t)(use->route - routes->table);
}

static void remember(struct nc_routes *routes, const struct nc_route_use *use)
{
	if (use->route && use->cookie && use->cookie <= MEMO_COOKIE_MAX)
		/* Who finds the memo finds the entry made.  Pairs with the acquire in recall(). */
		atomic_store_explicit(&routes->memos[use->cookie % NC_ROUTE_MEMOS],
				      memo_of(routes, use), memory_order_release);
}

static bool recall(struct nc_routes *routes, struct nc_route_use *use)
{
	uint64_t memo = atomic_load_explicit(&routes->memos[use->cookie % NC_ROUTE_MEMOS],
					     memory_order_acquire);

	if (!use->cookie || memo >> MEMO_COOKIE != use->cookie)
		return false;
	use->route = &routes->table[memo & MEMO_INDEX];
	use->number = atomic_load_explicit(&use->route->number, memory_order_relaxed);
	use->local = memo & MEMO_LOCAL;
	use->unbounded = !(memo & MEMO_BOUNDED);
	use->kernel_refused = memo & MEMO_REFUSED;
	use->large = memo & MEMO_LARGE;
	return (use->number & MEMO_NUMBER_MAX) == (memo >> MEMO_NUMBER & MEMO_NUMBER_MAX);
}

#define NOTE_THERE 0x8000u
#define NOTE_SHIFT 7u /* shifts the number */
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

/* Returns 0, or -errno; a cookie of 0: the kernel gives none. */
static int cookie_of(int socket, uint64_t *known, uint64_t *cookie)
{
	socklen_t length = sizeof(*cookie);

	if (known && *known) {
		*cookie = *known;
		return 0;
	}
	if (getsockopt(socket, SOL_SOCKET, SO_COOKIE, cookie, &length) < 0) {
		if (errno == EBADF || errno == ENOTSOCK)
			return -errno;
		/* Other systems that run Linux programs have none, and say so in other ways. */
		*cookie = 0;
	}
	if (known)
		*known = *cookie;
	return 0;
}

int nc_route_find(struct nc_routes *routes, int socket, uint64_t *cookie, struct nc_route_use *use)
{
	struct nc_route_key key;
	int error;

	*use = (struct nc_route_use){0};
	error = cookie_of(socket, cookie, &use->cookie);
	if (error)
		return error;
	if (recall(routes, use))
		return 0;
	use->route = NULL;
	use->kernel_refused = use->large = false;
	if (!ask(socket, &key))
		return 0;
	pthread_mutex_lock(&routes->lock);
	use->route = nc_routes_enter_locked(routes, &key);
	if (use->route)
		use->number = atomic_load_explicit(&use->route->number, memory_order_relaxed);
	pthread_mutex_unlock(&routes->lock);
	if (use->route && !key.local)
		nc_route_ask_device(use, socket);
	use->local = key.local;
	use->unbounded = key.family != AF_UNIX;
	use->large = routes->sums && has_large_segments(socket);
	remember(routes, use);
	return 0;
}

void nc_route_bounded(struct nc_routes *routes, const struct nc_route_use *use, bool bounded)
{
	struct nc_route_use changed = *use;

	changed.unbounded = !bounded;
	remember(routes, &changed);
}

void nc_route_kernel_refused(struct nc_routes *routes, struct nc_route_use *use)
{
	use->kernel_refused = true;
	remember(routes, use);
}
