/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-send.c - unit tests of the public calls that send: every bad input has its
 * errno, sends nothing and changes nothing; the table of routes.  Each test owns its
 * cache.
 */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <nabc.h>

#include "nabc-fixture.h"
#include "suite.h"

static size_t id;

static void open_unit(void)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB, .flags = NC_CACHE_NO_URING);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	id = insert(1, 1000);
}

START_TEST(test_bad_input)
{
	struct NC_range range = {.length = 1};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	struct NC_cache_stat stat;
	struct NC_stat unit;
	int pair[2], ends[2];
	char byte[10];

	open_unit();
	range.id = id + 1;
	tcp_pair(pair);
	ck_assert_int_eq(pipe(ends), 0);
	FAILS(NC_socksend(-1, id, 0, 5), EBADF);
	FAILS(NC_socksend(INT_MAX, id, 0, 5), EBADF);
	FAILS(NC_socksend(ends[1], id, 0, 5), ENOTSOCK);
	FAILS(NC_socksend(pair[0], 0, 0, 5), ENOENT);
	FAILS(NC_socksend(pair[0], id + 1, 0, 5), ENOENT);
	FAILS(NC_socksend(pair[0], SIZE_MAX, 0, 5), ENOENT);
	FAILS(NC_socksend(pair[0], id, 0, 1001), ERANGE);
	FAILS(NC_socksend(pair[0], id, 1001, 0), ERANGE);
	FAILS(NC_socksend(pair[0], id, SIZE_MAX, SIZE_MAX), ERANGE);
	FAILS(NC_socksend(pair[0], id, 1, SIZE_MAX), ERANGE);
	FAILS(NC_socksend(pair[0], id, SIZE_MAX, 1), ERANGE);
	FAILS(NC_send(NULL, pair[0], NULL), EINVAL);
	FAILS(NC_send(NULL, pair[0], NULL), EINVAL);
	FAILS(NC_send(NULL, pair[0], &message), ENOENT);
	message.flags = ~0u;
	FAILS(NC_send(NULL, pair[0], &message), EINVAL);
	message.flags = NC_SEND_CLOSE;
	/* A refused message did not close the stream either. */
	FAILS(NC_send(NULL, pair[0], &message), ENOENT);
	FAILS(NC_routes(cache, NULL, 1, 1), EINVAL);
	FAILS(NC_route_set(cache, NULL, NC_METHOD_COPY), EINVAL);
	FAILS(NC_route_set(cache, "", NC_METHOD_COPY), EINVAL);
	FAILS(NC_route_set(cache, "*", 17), EINVAL);
	FAILS(NC_route_set(cache, "*", NC_METHOD_KERNEL), EOPNOTSUPP);
	FAILS(NC_route_set(cache, "*", NC_METHOD_ZEROCOPY), EOPNOTSUPP);
	ck_assert_int_eq(NC_routes(cache, NULL, 1, 0), 0);
	ck_assert_int_eq(NC_stat(NULL, id, &unit, sizeof(unit)), 0);
	ck_assert_uint_eq(unit.holds, 0);
	/* All works as before: nothing was sent, zero bytes send nothing, and five send five. */
	ck_assert(!readable(pair[1]));
	ck_assert_int_eq(NC_socksend(pair[0], id, 1000, 0), 0);
	ck_assert(!readable(pair[1]));
	ck_assert_int_eq(NC_socksend(pair[0], id, 0, 5), 5);
	read_exactly(pair[1], byte, 5);
	ck_assert_uint_eq(pattern_match(byte, 1, 0, 5), 5);
	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.by_copy.sends, 1);
	ck_assert_uint_eq(stat.sends_failed, 3);
	close_pair(pair);
	close_pair(ends);
	close_cache();
}
END_TEST

START_TEST(test_no_cache)
{
	struct NC_route route;

	setenv("NABC_CACHE", "/nonexistent/socket", 1);
	FAILS(NC_socksend(0, 1, 0, 1), ENOENT);
	FAILS(NC_send(NULL, 0, NULL), ENOENT);
	FAILS(NC_routes(NULL, &route, sizeof(route), 1), ENOENT);
	FAILS(NC_route_set(NULL, "*", NC_METHOD_COPY), ENOENT);
}
END_TEST

START_TEST(test_routes)
{
	struct NC_route routes[2];
	int pair[2];
	char got[1000];

	open_unit();
	tcp_pair(pair);
	/* Small messages use fixed routes as well. */
	ck_assert_int_eq(NC_route_set(NULL, "127.0.0.1", NC_METHOD_COPY), 0);
	ck_assert_int_eq(NC_socksend(pair[0], id, 0, 1000), 1000);
	read_exactly(pair[1], got, sizeof(got));
	ck_assert_int_eq(NC_routes(NULL, routes, sizeof(*routes), 2), 2);
	ck_assert_str_eq(routes[1].address, "127.0.0.1");
	ck_assert_int_eq(routes[1].local, 1);
	ck_assert_int_eq(routes[1].method, NC_METHOD_COPY);
	ck_assert_uint_eq(routes[1].by_copy.sends, 1);
	ck_assert_uint_eq(routes[1].by_copy.bytes, 1000);
	ck_assert_int_eq(NC_route_set(cache, "*", NC_ROUTE_LEARN), 0);
	ck_assert_int_eq(NC_routes(cache, routes, sizeof(*routes), 2), 2);
	ck_assert_int_eq(routes[1].method, NC_ROUTE_LEARN);
	close_pair(pair);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_bad_input);
	tcase_add_test(tcase, test_no_cache);
	tcase_add_test(tcase, test_routes);
}

RUN_SUITE("nabc-send", fill)
