/* SPDX-License-Identifier: MIT */
/*
 * test-route.c - unit tests of route.c on sockets of this machine: what counts
 * as local, and what is learnt per local address.  Single-threaded.
 */
#include <route.h>

#include "suite.h"

static bool zerocopy_between(struct nc_routes *routes, const char *from, const char *to,
			     unsigned *route)
{
	bool wanted;
	int pair[2];

	tcp_pair_between(pair, from, to, 0, 0);
	wanted = nc_route_zerocopy(routes, pair[0], route);
	close_pair(pair);
	return wanted;
}

START_TEST(test_local)
{
	struct nc_routes routes = {0};
	unsigned route;
	int pair[2];

	ck_assert(!zerocopy_between(&routes, "127.0.0.1", "127.0.0.1", &route));
	ck_assert(!zerocopy_between(&routes, "127.0.0.9", "127.0.0.9", &route));
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ck_assert(!nc_route_zerocopy(&routes, pair[0], &route));
	close_pair(pair);
}
END_TEST

START_TEST(test_no_socket)
{
	struct nc_routes routes = {0};
	unsigned route;
	int fd = socket(AF_INET, SOCK_STREAM, 0), ends[2];

	ck_assert(!nc_route_zerocopy(&routes, fd, &route));
	close(fd);
	ck_assert(!nc_route_zerocopy(&routes, fd, &route));
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert(!nc_route_zerocopy(&routes, ends[1], &route));
	close_pair(ends);
}
END_TEST

/* Two addresses are two machines, for all that can be seen from here. */
START_TEST(test_learns)
{
	struct nc_routes routes = {0};
	unsigned first, again, other;

	ck_assert(zerocopy_between(&routes, "127.0.0.1", "127.0.0.2", &first));
	ck_assert_uint_lt(first, NC_ROUTES);
	/* By local address, whoever the peer is. */
	ck_assert(zerocopy_between(&routes, "127.0.0.1", "127.0.0.3", &again));
	ck_assert_uint_eq(again, first);
	nc_route_copied(&routes, first);
	ck_assert(!zerocopy_between(&routes, "127.0.0.1", "127.0.0.3", &again));
	ck_assert(zerocopy_between(&routes, "127.0.0.2", "127.0.0.1", &other));
	ck_assert_uint_ne(other, first);
	/* A number from elsewhere must not reach outside. */
	nc_route_copied(&routes, UINT32_MAX);
}
END_TEST

/* IPv4 through an IPv6 socket is the same route. */
START_TEST(test_mapped)
{
	struct sockaddr_in6 there = {.sin6_family = AF_INET6};
	struct sockaddr_in6 here = {.sin6_family = AF_INET6};
	socklen_t length = sizeof(there);
	struct nc_routes routes = {0};
	unsigned plain, mapped;
	int listener = socket(AF_INET6, SOCK_STREAM, 0), fd;

	if (listener < 0) {
		printf("route: no IPv6 on this system\n");
		return;
	}
	ck_assert_int_eq(inet_pton(AF_INET6, "::ffff:127.0.0.2", &there.sin6_addr), 1);
	ck_assert_int_eq(inet_pton(AF_INET6, "::ffff:127.0.0.1", &here.sin6_addr), 1);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&there, sizeof(there)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&there, &length), 0);
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&here, sizeof(here)), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&there, sizeof(there)), 0);
	ck_assert(nc_route_zerocopy(&routes, fd, &mapped));
	ck_assert(zerocopy_between(&routes, "127.0.0.1", "127.0.0.2", &plain));
	ck_assert_uint_eq(plain, mapped);
	close(fd);
	close(listener);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_local);
	tcase_add_test(tcase, test_no_socket);
	tcase_add_test(tcase, test_learns);
	tcase_add_test(tcase, test_mapped);
}

RUN_SUITE("route", fill)
