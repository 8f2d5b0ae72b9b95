/* SPDX-License-Identifier: MIT */
/*
 * test-route-table.c - unit tests of route.c: a full table, methods that an operator
 * fixes, and the list of routes.  Single-threaded.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc.h>

#include "send/route.h"

#include "route-fixture.h"
#include "suite.h"

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
	ck_assert_int_eq(nc_route_find(&routes, pair[0], NULL, &old), 0);
	ck_assert_int_eq(nc_routes_fix(&routes, "127.0.0.9", NC_METHOD_COPY), 0);
	crowd(0, 3 * NC_ROUTES, 10);
	ck_assert_uint_eq(nc_routes_list(&routes, NULL, 0, true), NC_ROUTES);
	/* The busy one and the fixed one stay; the idle one was evicted first. */
	ck_assert_uint_eq(route_stat("127.0.0.1", 0).by_copy.sends, 1000);
	ck_assert_int_eq(route_stat("127.0.0.9", 0).method, NC_METHOD_COPY);
	fixed = use_between("127.0.0.9", "127.0.0.1");
	ck_assert_int_eq(nc_route_fixed(&fixed), NC_METHOD_COPY);
	/* A user of the evicted entry does not change the new one. */
	ck_assert_uint_ne(atomic_load(&old.route->number), old.number);
	nc_route_notified(&old, 0, true);
	nc_route_refused(&old, 0);
	ck_assert_uint_eq(atomic_load(&old.route->copied.level), 0);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], NULL, &old), 0);
	ck_assert_uint_eq(atomic_load(&old.route->number), old.number);
	(void)route_stat("127.0.0.3", 0);
	/* An entry that was busy long ago becomes idle. */
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
	/* Setting an unknown route to learn changes nothing. */
	ck_assert_int_eq(nc_routes_fix(&routes, "10.0.1.1", NC_ROUTE_LEARN), 0);
	/* An additional route is simply not in the table. */
	tcp_pair(pair);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], NULL, &use), 0);
	ck_assert_ptr_null(use.route);
	ck_assert_int_eq(nc_routes_fix(&routes, "10.0.0.7", NC_ROUTE_LEARN), 0);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], NULL, &use), 0);
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
	/* A setting for the address applies to all peers, also future ones. */
	local = use_between("127.0.0.1", "127.0.0.1");
	ck_assert_int_eq(nc_route_fixed(&local), NC_METHOD_ZEROCOPY);
	ck_assert_int_eq(route_stat("127.0.0.1", 1).recycled, NC_METHOD_ZEROCOPY);
	ck_assert_str_eq(route_stat("127.0.0.1", 1).why, "fixed");
	ck_assert_int_eq(nc_routes_fix(&routes, "127.0.0.1", NC_METHOD_SPLICE), 0);
	ck_assert_int_eq(route_stat("127.0.0.1", 1).recycled, NC_METHOD_COPY);
	ck_assert_int_eq(route_stat("127.0.0.1", 1).lasting, NC_METHOD_SPLICE);
	/* To all of them, and to future routes. */
	ck_assert_int_eq(nc_routes_fix(&routes, "*", NC_METHOD_COPY), 0);
	ck_assert_int_eq(nc_route_fixed(&local), NC_METHOD_COPY);
	ck_assert_int_eq(nc_route_fixed(&other), NC_METHOD_COPY);
	other = use_between("127.0.0.4", "127.0.0.2");
	ck_assert_int_eq(nc_route_fixed(&other), NC_METHOD_COPY);
	/* The last setting wins. */
	ck_assert_int_eq(nc_routes_fix(&routes, "127.0.0.4", NC_ROUTE_LEARN), 0);
	ck_assert_int_eq(nc_route_fixed(&other), NC_ROUTE_LEARN);
	ck_assert(atomic_load(&routes.any_fixed));
	nc_route_refused(&other, nc_route_level(&other));
	ck_assert_uint_eq(nc_route_level(&other), 1);
	ck_assert_int_eq(nc_routes_fix(&routes, "*", NC_ROUTE_LEARN), 0);
	ck_assert(!atomic_load(&routes.any_fixed));
	ck_assert_int_eq(nc_route_fixed(&local), NC_ROUTE_LEARN);
	/* Learning starts again. */
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
	ck_assert_int_eq(route_stat("unix", 1).family, AF_UNIX);
	ck_assert_int_eq(route_stat("::1", 0).family, AF_INET6);
	ck_assert_int_eq(route_stat("::1", 0).octets[15], 1);
	/* Mapped addresses are listed as IPv4. */
	ck_assert_int_eq(route_stat("127.0.0.1", 0).family, AF_INET);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], NULL, &use), 0);
	ck_assert_int_eq(nc_route_fixed(&use), NC_METHOD_COPY);
	ck_assert_uint_eq(nc_routes_list(&routes, NULL, 0, true), 3);
	close_pair(pair);
	close_routes();
}
END_TEST

/* The list ends exactly where the caller's memory ends. */
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
	/* Without io_uring there is only one method, and the list says so. */
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
	ck_assert_int_eq(nc_route_find(&routes, fd, NULL, &mapped), 0);
	plain = use_between("127.0.0.1", "127.0.0.2");
	ck_assert_ptr_nonnull(mapped.route);
	ck_assert_ptr_eq(plain.route, mapped.route);
	close(fd);
	close(listener);
	close_routes();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_full_of_fixed);
	tcase_add_test(tcase, test_fix);
	tcase_add_test(tcase, test_addresses);
	tcase_add_test(tcase, test_list);
	tcase_add_test(tcase, test_mapped);
}

RUN_SUITE("route-table", fill)
