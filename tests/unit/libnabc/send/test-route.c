/* SPDX-License-Identifier: MIT */
/*
 * test-route.c - unit tests of route.c on sockets of this machine: whose route
 * a socket has, what is learnt, forgotten, fixed and told.  Single-threaded
 * but for the last.
 */
#include <pthread.h>
#include <sys/un.h>

#include "send/route.h"

#include "by-method.h"
#include "suite.h"

static struct nc_routes routes;

static void open_routes(void)
{
	nc_routes_init(&routes);
}

static void close_routes(void)
{
	nc_routes_fini(&routes);
}

static struct nc_route_use use_between(const char *from, const char *to)
{
	struct nc_route_use use;
	int pair[2];

	tcp_pair_between(pair, from, to, 0, 0);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &use), 0);
	ck_assert_ptr_nonnull(use.route);
	close_pair(pair);
	return use;
}

/* What the table says of an address; fails the test if it says nothing. */
static struct NC_route told(const char *address, int local)
{
	struct NC_route list[NC_ROUTES];
	unsigned count = nc_routes_list(&routes, list, NC_ROUTES, true);

	for (unsigned i = 0; i < count; i++)
		if (strcmp(list[i].address, address) == 0 && list[i].local == local)
			return list[i];
	ck_abort_msg("no route %s", address);
}

START_TEST(test_keys)
{
	struct nc_route_use local, remote, again, other, unix_one;
	int pair[2];

	open_routes();
	local = use_between("127.0.0.1", "127.0.0.1");
	remote = use_between("127.0.0.1", "127.0.0.2");
	again = use_between("127.0.0.1", "127.0.0.3");
	other = use_between("127.0.0.2", "127.0.0.1");
	ck_assert_ptr_ne(local.route, remote.route);
	ck_assert_ptr_eq(remote.route, again.route);
	ck_assert_ptr_ne(remote.route, other.route);
	ck_assert(local.local);
	ck_assert(!remote.local);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &unix_one), 0);
	ck_assert(unix_one.local);
	ck_assert(!unix_one.unbounded);
	ck_assert_int_eq(nc_route_find(&routes, pair[1], &again), 0);
	ck_assert_ptr_eq(unix_one.route, again.route);
	ck_assert_uint_eq(nc_routes_list(&routes, NULL, 0, true), 4);
	/* Nothing is tried without a copy inside this machine. */
	ck_assert(!nc_route_tries_zerocopy(&local, true));
	ck_assert(!nc_route_tries_zerocopy(&unix_one, true));
	ck_assert(nc_route_tries_zerocopy(&remote, false));
	close_pair(pair);
	close_routes();
}
END_TEST

START_TEST(test_no_route)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), ends[2];
	struct nc_route_use use;
	struct nc_route_tally tally = {.sends = {1}};

	open_routes();
	/* Not connected: a socket without a route, of which nothing is learnt. */
	ck_assert_int_eq(nc_route_find(&routes, fd, &use), 0);
	ck_assert_ptr_null(use.route);
	ck_assert(!use.unbounded);
	ck_assert(!nc_route_tries_zerocopy(&use, true));
	ck_assert(nc_route_tries(&use, NC_METHOD_SPLICE, 3, true));
	ck_assert_int_eq(nc_route_fixed(&use), NC_ROUTE_LEARN);
	nc_route_took(&use, NC_METHOD_SPLICE, 1 << 20, 0);
	nc_route_notified(&use, nc_route_level(&use), true);
	nc_route_refused(&use, 0);
	nc_route_count(&use, &tally, 1);
	close(fd);
	ck_assert_int_eq(nc_route_find(&routes, fd, &use), -EBADF);
	ck_assert_int_eq(nc_route_find(&routes, -1, &use), -EBADF);
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(nc_route_find(&routes, ends[1], &use), -ENOTSOCK);
	close_pair(ends);
	ck_assert_uint_eq(nc_routes_list(&routes, NULL, 0, true), 0);
	close_routes();
}
END_TEST

/* A socket is remembered by what it is, not by its number. */
START_TEST(test_memo)
{
	struct nc_route_use use, other;
	int pair[2], next[2], copy;

	open_routes();
	tcp_pair(pair);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &use), 0);
	ck_assert(use.unbounded);
	nc_route_bounded(&routes, &use);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &use), 0);
	ck_assert(!use.unbounded);
	ck_assert_ptr_nonnull(use.route);
	ck_assert(use.local);
	copy = dup(pair[0]);
	ck_assert_int_eq(nc_route_find(&routes, copy, &other), 0);
	ck_assert(!other.unbounded);
	close(copy);
	/* Another socket by the same number. */
	tcp_pair_between(next, "127.0.0.5", "127.0.0.6", 0, 0);
	ck_assert_int_eq(dup2(next[0], pair[0]), pair[0]);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &other), 0);
	ck_assert(other.unbounded);
	ck_assert(!other.local);
	ck_assert_ptr_ne(other.route, use.route);
	close_pair(pair);
	close_pair(next);
	close_routes();
}
END_TEST

/* Refusals until something is tried once more, one sampled call after the other. */
static unsigned refusals_of_zerocopy(const struct nc_route_use *use)
{
	unsigned refused = 0;

	while (!nc_route_tries_zerocopy(use, true)) {
		ck_assert(!nc_route_tries_zerocopy(use, false));
		refused += NC_ROUTE_SAMPLE;
		ck_assert_uint_lt(refused, 1u << 20);
	}
	return refused;
}

START_TEST(test_copied)
{
	struct nc_route_use use, other;
	unsigned before = 0;
	uint32_t level;

	open_routes();
	use = use_between("127.0.0.1", "127.0.0.2");
	other = use_between("127.0.0.3", "127.0.0.2");
	level = nc_route_level(&use);
	/* A burst of sends that were all under way counts once. */
	for (unsigned i = 0; i < 10; i++)
		nc_route_notified(&use, level, true);
	ck_assert_uint_eq(nc_route_level(&use), level + 1);
	for (unsigned i = 0; i < 8; i++) {
		unsigned refused = refusals_of_zerocopy(&use);

		/* Fewer and fewer trials as long as they fail. */
		ck_assert_uint_ge(refused, 2 * before);
		ck_assert_uint_gt(refused, 0);
		before = refused;
		nc_route_notified(&use, nc_route_level(&use), true);
	}
	ck_assert_int_eq(told("127.0.0.1", 0).recycled, NC_METHOD_COPY);
	ck_assert_ptr_nonnull(strstr(told("127.0.0.1", 0).why, "the kernel copies"));
	ck_assert_uint_eq(told("127.0.0.1", 0).copied, 18);
	/* One that succeeds brings it back at once; the others never lost it. */
	nc_route_notified(&use, nc_route_level(&use), false);
	ck_assert_uint_eq(refusals_of_zerocopy(&use), 0);
	ck_assert_uint_eq(told("127.0.0.1", 0).kept, 1);
	ck_assert_int_eq(told("127.0.0.1", 0).recycled, NC_METHOD_ZEROCOPY);
	ck_assert_str_eq(told("127.0.0.1", 0).why, "not copied");
	ck_assert_uint_eq(refusals_of_zerocopy(&other), 0);
	/* What cannot be had at all is put off in the same way, and is no copy. */
	nc_route_refused(&use, nc_route_level(&use));
	ck_assert_uint_gt(refusals_of_zerocopy(&use), 0);
	ck_assert_uint_eq(told("127.0.0.1", 0).copied, 18);
	close_routes();
}
END_TEST

/* However long it went badly, it is tried again some day. */
START_TEST(test_copied_for_long)
{
	struct nc_route_use use;

	open_routes();
	use = use_between("127.0.0.1", "127.0.0.2");
	for (unsigned i = 0; i < 100; i++)
		nc_route_notified(&use, nc_route_level(&use), true);
	ck_assert_uint_le(refusals_of_zerocopy(&use), 1u << 17);
	close_routes();
}
END_TEST

START_TEST(test_classes)
{
	ck_assert_uint_eq(nc_route_class(0), 0);
	ck_assert_uint_eq(nc_route_class(32767), 0);
	ck_assert_uint_eq(nc_route_class(32768), 1);
	ck_assert_uint_eq(nc_route_class(65535), 1);
	ck_assert_uint_eq(nc_route_class(65536), 2);
	ck_assert_uint_eq(nc_route_class(524287), NC_ROUTE_CLASSES - 2);
	ck_assert_uint_eq(nc_route_class(524288), NC_ROUTE_CLASSES - 1);
	ck_assert_uint_eq(nc_route_class(SIZE_MAX), NC_ROUTE_CLASSES - 1);
}
END_TEST

static unsigned refusals_of(const struct nc_route_use *use, enum NC_method method, size_t length)
{
	unsigned refused = 0;

	while (!nc_route_tries(use, method, nc_route_class(length), true)) {
		refused += NC_ROUTE_SAMPLE;
		ck_assert_uint_lt(refused, 1u << 20);
	}
	return refused;
}

/* A socket that takes little at a time is not worth the cost, for that class of sizes. */
START_TEST(test_taken)
{
	const size_t size = 100 << 10;
	struct nc_route_use use;
	unsigned first;

	open_routes();
	use = use_between("127.0.0.1", "127.0.0.1");
	for (unsigned i = 0; i < 200; i++)
		nc_route_took(&use, NC_METHOD_SPLICE, size, i % 2 ? size : 0);
	/* 50 KiB on average are enough for pages to move, */
	ck_assert_uint_eq(refusals_of(&use, NC_METHOD_SPLICE, size), 0);
	for (unsigned i = 0; i < 32; i++)
		nc_route_took(&use, NC_METHOD_ZEROCOPY, size, i % 2 ? size : 0);
	/* and too few for a notification each. */
	ck_assert_uint_gt(refusals_of(&use, NC_METHOD_ZEROCOPY, size), 0);
	for (unsigned i = 0; i < 23; i++)
		nc_route_took(&use, NC_METHOD_SPLICE, size, 4096);
	ck_assert_uint_eq(refusals_of(&use, NC_METHOD_SPLICE, size), 0);
	nc_route_took(&use, NC_METHOD_SPLICE, size, 4096);
	ck_assert_ptr_nonnull(strstr(told("127.0.0.1", 1).why, "little"));
	first = refusals_of(&use, NC_METHOD_SPLICE, size);
	ck_assert_uint_gt(first, 0);
	/* The other sizes go on. */
	ck_assert_uint_eq(refusals_of(&use, NC_METHOD_SPLICE, 40 << 10), 0);
	ck_assert_uint_eq(refusals_of(&use, NC_METHOD_SPLICE, 1 << 20), 0);
	/* Each trial speaks for itself: bad ones make them rarer, good ones end it. */
	nc_route_took(&use, NC_METHOD_SPLICE, size, 4096);
	ck_assert_uint_ge(refusals_of(&use, NC_METHOD_SPLICE, size), 2 * first);
	nc_route_took(&use, NC_METHOD_SPLICE, size, size);
	ck_assert_uint_le(refusals_of(&use, NC_METHOD_SPLICE, size), first);
	for (unsigned i = 0; i < 4; i++)
		nc_route_took(&use, NC_METHOD_SPLICE, size, size);
	ck_assert_uint_eq(refusals_of(&use, NC_METHOD_SPLICE, size), 0);
	/* The largest class is what the table shows. */
	ck_assert_int_eq(told("127.0.0.1", 1).lasting, NC_METHOD_SPLICE);
	for (unsigned i = 0; i < 32; i++)
		nc_route_took(&use, NC_METHOD_SPLICE, 1 << 20, 4096);
	ck_assert_int_eq(told("127.0.0.1", 1).lasting, NC_METHOD_COPY);
	close_routes();
}
END_TEST

START_TEST(test_counts)
{
	struct nc_route_tally tally = {
		.sends = {1, 2, 3, 4}, .bytes = {10, 20, 30, 40}, .partial = 5};
	struct nc_route_use use;
	struct NC_route route;

	open_routes();
	use = use_between("127.0.0.1", "127.0.0.1");
	nc_route_count(&use, &tally, 1);
	nc_route_count(&use, &tally, 64);
	route = told("127.0.0.1", 1);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_uint_eq(BY_METHOD(route, i).sends, 65 * (i + 1));
		ck_assert_uint_eq(BY_METHOD(route, i).bytes, 650 * (i + 1));
	}
	ck_assert_uint_eq(route.partial, 5 * 65);
	ck_assert_int_eq(route.family, AF_INET);
	ck_assert_int_eq(route.octets[0], 127);
	ck_assert_int_eq(route.octets[3], 1);
	ck_assert_int_eq(route.method, NC_ROUTE_LEARN);
	ck_assert_int_eq(route.recycled, NC_METHOD_COPY);
	ck_assert_int_eq(route.lasting, NC_METHOD_SPLICE);
	ck_assert_str_ne(route.why, "");
	close_routes();
}
END_TEST

/* Fills the table with routes from 127.0.1.1 on. */
static void crowd(unsigned first, unsigned count, unsigned weight)
{
	struct nc_route_tally tally = {.sends = {1}};

	for (unsigned i = first; i < first + count; i++) {
		struct nc_route_use use;
		char address[32];

		snprintf(address, sizeof(address), "127.0.%u.%u", 1 + i / 200, 1 + i % 200);
		use = use_between(address, "127.0.0.1");
		nc_route_count(&use, &tally, weight);
	}
}

START_TEST(test_full)
{
	struct nc_route_tally tally = {.sends = {1}};
	struct nc_route_use busy, fixed, old;
	int pair[2];

	open_routes();
	busy = use_between("127.0.0.1", "127.0.0.2");
	nc_route_count(&busy, &tally, 1000);
	tcp_pair_between(pair, "127.0.0.3", "127.0.0.4", 0, 0);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &old), 0);
	ck_assert_int_eq(nc_routes_fix(&routes, "127.0.0.9", NC_METHOD_COPY), 0);
	crowd(0, 3 * NC_ROUTES, 10);
	ck_assert_uint_eq(nc_routes_list(&routes, NULL, 0, true), NC_ROUTES);
	/* The busy one and the fixed one stay; the idle one went first. */
	ck_assert_uint_eq(told("127.0.0.1", 0).by_copy.sends, 1000);
	ck_assert_int_eq(told("127.0.0.9", 0).method, NC_METHOD_COPY);
	fixed = use_between("127.0.0.9", "127.0.0.1");
	ck_assert_int_eq(nc_route_fixed(&fixed), NC_METHOD_COPY);
	/* Who still has the old entry in hand spoils nothing of the new one's. */
	ck_assert_uint_ne(atomic_load(&old.route->number), old.number);
	nc_route_notified(&old, 0, true);
	nc_route_refused(&old, 0);
	ck_assert_uint_eq(atomic_load(&old.route->copied.level), 0);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &old), 0);
	ck_assert_uint_eq(atomic_load(&old.route->number), old.number);
	(void)told("127.0.0.3", 0);
	/* What was busy long ago is idle in the end. */
	crowd(1000, 20 * NC_ROUTES, 10000);
	for (unsigned i = 0; i < NC_ROUTES; i++)
		ck_assert(memcmp(routes.table[i].address + 12, "\177\0\0\1", 4) != 0);
	close_pair(pair);
	close_routes();
}
END_TEST

START_TEST(test_full_of_fixed)
{
	struct nc_route_use use;
	char address[32];
	int pair[2];

	open_routes();
	for (unsigned i = 0; i < NC_ROUTES; i++) {
		snprintf(address, sizeof(address), "10.0.0.%u", i + 1);
		ck_assert_int_eq(nc_routes_fix(&routes, address, NC_METHOD_COPY), 0);
	}
	ck_assert_int_eq(nc_routes_fix(&routes, "10.0.1.1", NC_METHOD_COPY), -ENOSPC);
	/* To let what is not known learn is no change. */
	ck_assert_int_eq(nc_routes_fix(&routes, "10.0.1.1", NC_ROUTE_LEARN), 0);
	/* A route more is just not in the table. */
	tcp_pair(pair);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &use), 0);
	ck_assert_ptr_null(use.route);
	ck_assert_int_eq(nc_routes_fix(&routes, "10.0.0.7", NC_ROUTE_LEARN), 0);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &use), 0);
	ck_assert_ptr_nonnull(use.route);
	close_pair(pair);
	close_routes();
}
END_TEST

START_TEST(test_fix)
{
	struct nc_route_use local, remote, other;

	open_routes();
	remote = use_between("127.0.0.1", "127.0.0.2");
	other = use_between("127.0.0.3", "127.0.0.2");
	ck_assert(!atomic_load(&routes.any_fixed));
	ck_assert_int_eq(nc_routes_fix(&routes, "127.0.0.1", NC_METHOD_ZEROCOPY), 0);
	ck_assert(atomic_load(&routes.any_fixed));
	ck_assert_int_eq(nc_route_fixed(&remote), NC_METHOD_ZEROCOPY);
	ck_assert_int_eq(nc_route_fixed(&other), NC_ROUTE_LEARN);
	/* The address's word holds for all peers, those to come included. */
	local = use_between("127.0.0.1", "127.0.0.1");
	ck_assert_int_eq(nc_route_fixed(&local), NC_METHOD_ZEROCOPY);
	ck_assert_int_eq(told("127.0.0.1", 1).recycled, NC_METHOD_ZEROCOPY);
	ck_assert_str_eq(told("127.0.0.1", 1).why, "fixed");
	ck_assert_int_eq(nc_routes_fix(&routes, "127.0.0.1", NC_METHOD_SPLICE), 0);
	ck_assert_int_eq(told("127.0.0.1", 1).recycled, NC_METHOD_COPY);
	ck_assert_int_eq(told("127.0.0.1", 1).lasting, NC_METHOD_SPLICE);
	/* All of them, and routes to come. */
	ck_assert_int_eq(nc_routes_fix(&routes, "*", NC_METHOD_COPY), 0);
	ck_assert_int_eq(nc_route_fixed(&local), NC_METHOD_COPY);
	ck_assert_int_eq(nc_route_fixed(&other), NC_METHOD_COPY);
	other = use_between("127.0.0.4", "127.0.0.2");
	ck_assert_int_eq(nc_route_fixed(&other), NC_METHOD_COPY);
	/* The last word wins. */
	ck_assert_int_eq(nc_routes_fix(&routes, "127.0.0.4", NC_ROUTE_LEARN), 0);
	ck_assert_int_eq(nc_route_fixed(&other), NC_ROUTE_LEARN);
	ck_assert(atomic_load(&routes.any_fixed));
	nc_route_notified(&other, nc_route_level(&other), true);
	ck_assert_uint_eq(nc_route_level(&other), 1);
	ck_assert_int_eq(nc_routes_fix(&routes, "*", NC_ROUTE_LEARN), 0);
	ck_assert(!atomic_load(&routes.any_fixed));
	ck_assert_int_eq(nc_route_fixed(&local), NC_ROUTE_LEARN);
	/* Learning begins anew. */
	ck_assert_uint_eq(nc_route_level(&other), 0);
	close_routes();
}
END_TEST

START_TEST(test_addresses)
{
	static const char *const wrong[] = {"",		 "unix ",     "127.0.0.1:80", "localhost",
					    "1.2.3",	 "::1%lo",    "[::1]",	      "**",
					    "256.0.0.1", " 127.0.0.1"};
	struct nc_route_use use;
	int pair[2];

	open_routes();
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_int_eq(nc_routes_fix(&routes, wrong[i], NC_METHOD_COPY), -EINVAL);
	ck_assert_uint_eq(nc_routes_list(&routes, NULL, 0, true), 0);
	ck_assert_int_eq(nc_routes_fix(&routes, "unix", NC_METHOD_COPY), 0);
	ck_assert_int_eq(nc_routes_fix(&routes, "::1", NC_METHOD_SPLICE), 0);
	ck_assert_int_eq(nc_routes_fix(&routes, "::ffff:127.0.0.1", NC_METHOD_COPY), 0);
	ck_assert_int_eq(told("unix", 1).family, AF_UNIX);
	ck_assert_int_eq(told("::1", 0).family, AF_INET6);
	ck_assert_int_eq(told("::1", 0).octets[15], 1);
	/* Mapped addresses are those of IPv4. */
	ck_assert_int_eq(told("127.0.0.1", 0).family, AF_INET);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &use), 0);
	ck_assert_int_eq(nc_route_fixed(&use), NC_METHOD_COPY);
	ck_assert_uint_eq(nc_routes_list(&routes, NULL, 0, true), 3);
	close_pair(pair);
	close_routes();
}
END_TEST

/* The list is cut where the caller's room ends, and not a byte later. */
START_TEST(test_list)
{
	struct NC_route list[3];

	open_routes();
	ck_assert_uint_eq(nc_routes_list(&routes, list, 3, true), 0);
	crowd(0, 5, 1);
	memset(list, 0x5a, sizeof(list));
	ck_assert_uint_eq(nc_routes_list(&routes, list, 2, true), 5);
	ck_assert_str_eq(list[0].address, "127.0.1.1");
	ck_assert_str_eq(list[1].address, "127.0.1.2");
	ck_assert_int_eq(list[2].address[0], 0x5a);
	/* Without io_uring there is but one answer, and it says so. */
	ck_assert_uint_eq(nc_routes_list(&routes, list, 1, false), 5);
	ck_assert_int_eq(list[0].recycled, NC_METHOD_COPY);
	ck_assert_ptr_nonnull(strstr(list[0].why, "io_uring"));
	close_routes();
}
END_TEST

/* IPv4 through an IPv6 socket is the same route. */
START_TEST(test_mapped)
{
	struct sockaddr_in6 there = {.sin6_family = AF_INET6};
	struct sockaddr_in6 here = {.sin6_family = AF_INET6};
	socklen_t length = sizeof(there);
	struct nc_route_use mapped, plain;
	int listener = socket(AF_INET6, SOCK_STREAM, 0), fd;

	if (listener < 0) {
		printf("route: no IPv6 on this system\n");
		return;
	}
	open_routes();
	ck_assert_int_eq(inet_pton(AF_INET6, "::ffff:127.0.0.2", &there.sin6_addr), 1);
	ck_assert_int_eq(inet_pton(AF_INET6, "::ffff:127.0.0.1", &here.sin6_addr), 1);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&there, sizeof(there)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&there, &length), 0);
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&here, sizeof(here)), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&there, sizeof(there)), 0);
	ck_assert_int_eq(nc_route_find(&routes, fd, &mapped), 0);
	plain = use_between("127.0.0.1", "127.0.0.2");
	ck_assert_ptr_nonnull(mapped.route);
	ck_assert_ptr_eq(plain.route, mapped.route);
	close(fd);
	close(listener);
	close_routes();
}
END_TEST

#define THREADS 4

static _Atomic unsigned faults;

static void *learn(void *context)
{
	unsigned number = (unsigned)(uintptr_t)context;
	struct nc_route_tally tally = {.sends = {1}, .bytes = {100}};
	struct nc_route_use use;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return NULL;
	for (unsigned i = 0; i < scaled(20000); i++) {
		struct NC_route list[4];

		if (nc_route_find(&routes, pair[i % 2], &use) || !use.route) {
			atomic_fetch_add(&faults, 1);
			continue;
		}
		nc_route_count(&use, &tally, 1);
		(void)nc_route_tries(&use, NC_METHOD_SPLICE, 3, i % 2);
		nc_route_took(&use, NC_METHOD_SPLICE, 1 << 20, i % 3 ? 100 : 1 << 20);
		nc_route_notified(&use, nc_route_level(&use), i % 5);
		if (i % 64 == number)
			(void)nc_routes_fix(&routes, i % 128 < 64 ? "unix" : "*",
					    i % 3 ? NC_METHOD_COPY : NC_ROUTE_LEARN);
		if (i % 16 == number)
			(void)nc_routes_list(&routes, list, 4, true);
	}
	close_pair(pair);
	return NULL;
}

/* Everyone at once; for the thread checkers, and no count is lost. */
START_TEST(test_threads)
{
	pthread_t threads[THREADS];

	open_routes();
	atomic_store(&faults, 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, learn, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(atomic_load(&faults), 0);
	ck_assert_uint_eq(told("unix", 1).by_copy.sends, THREADS * scaled(20000));
	ck_assert_uint_eq(told("unix", 1).by_copy.bytes, THREADS * 100 * (uint64_t)scaled(20000));
	close_routes();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_keys);
	tcase_add_test(tcase, test_no_route);
	tcase_add_test(tcase, test_memo);
	tcase_add_test(tcase, test_copied);
	tcase_add_test(tcase, test_copied_for_long);
	tcase_add_test(tcase, test_classes);
	tcase_add_test(tcase, test_taken);
	tcase_add_test(tcase, test_counts);
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_full_of_fixed);
	tcase_add_test(tcase, test_fix);
	tcase_add_test(tcase, test_addresses);
	tcase_add_test(tcase, test_list);
	tcase_add_test(tcase, test_mapped);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("route", fill)
