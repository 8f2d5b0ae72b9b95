/* SPDX-License-Identifier: MIT */
/*
 * test-transmit-local.c - unit tests of transmit-plan.c: what is learned within this machine,
 * where the method that costs the least CPU time of the whole thread sends.  Each test owns its
 * cache.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "send/epoch.h"
#include "send/transmit.h"

#include "by-method.h"
#include "suite.h"
#include "transmit-fixture.h"
#include "transmit-learn-fixture.h"

/* Six epochs of each method. */
#define BEGINNING (12 * (NC_EPOCH_SETTLE + NC_EPOCH_LEAST))
#define NEAR (16 << 10) /* the limit of unsent bytes */

static void open_priced(uint64_t copy, uint64_t splice)
{
	open_cache(8 * MIB, NC_CACHE_NO_URING);
	transmit.cpu_ns = priced_ns;
	transmit.local_splice = 64 * KIB;
	price(copy, splice, 0);
}

/* Sends a whole unit over a socket that does not block, while the peer reads. */
static void send_whole(const int pair[2], size_t id, size_t length)
{
	struct NC_range range = {.id = id, .length = length};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	static char got[MIB];
	size_t have = 0;

	while (have < length) {
		ssize_t sent =
			message.skip < length ? nc_transmit_send(&transmit, pair[0], &message) : 0;

		ck_assert(sent >= 0 || sent == -EAGAIN);
		message.skip += sent > 0 ? (size_t)sent : 0;
		await(pair[1], POLLIN);
		have += (size_t)read(pair[1], got + have, length - have);
	}
	ck_assert_uint_eq(pattern_match(got, 1, 0, length), length);
}

/* Returns how many of the messages went by that method alone. */
static uint64_t send_many(const int pair[2], size_t id, size_t length, unsigned times,
			  enum NC_method method)
{
	uint64_t before = BY_METHOD(statistics(), method).bytes;

	for (unsigned i = 0; i < times; i++)
		send_whole(pair, id, length);
	return (BY_METHOD(statistics(), method).bytes - before) / length;
}

/* Whichever costs less, for sizes of both first guesses, over TCP and Unix sockets. */
#define CASES 8
START_TEST(test_cheapest)
{
	const enum NC_method used = _i & 1 ? NC_METHOD_SPLICE : NC_METHOD_COPY;
	const size_t length = _i & 2 ? 64 * KIB : 32 * KIB;
	int pair[2];
	size_t id;

	open_priced(used == NC_METHOD_COPY ? 10 : 13, used == NC_METHOD_SPLICE ? 10 : 13);
	ck_assert(pair_of(_i & 4 ? AF_UNIX : AF_INET, pair));
	set_nonblocking(pair[0]);
	id = insert(1, length, 0, NC_KIND_APPENDED);
	(void)send_many(pair, id, length, 3 * BEGINNING, used);
	ck_assert_uint_eq(send_many(pair, id, length, 500, used), 500);
	ck_assert_uint_eq(holds_of(id), 0);
	close_pair(pair);
	close_cache();
}
END_TEST

/* A message that its socket takes in parts counts as one of the method that began it. */
START_TEST(test_partial)
{
	const enum NC_method used = _i & 1 ? NC_METHOD_SPLICE : NC_METHOD_COPY;
	const size_t length = 256 * KIB;
	uint64_t partial;
	int pair[2];
	size_t id;

	open_priced(used == NC_METHOD_COPY ? 10 : 13, used == NC_METHOD_SPLICE ? 10 : 13);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 32 * KIB, 32 * KIB);
	set_nonblocking(pair[0]);
	id = insert(1, length, 0, NC_KIND_APPENDED);
	(void)send_many(pair, id, length, 3 * BEGINNING, used);
	partial = all_statistics().sends_partial;
	ck_assert_uint_eq(send_many(pair, id, length, 100, used), 100);
	ck_assert_uint_ge(all_statistics().sends_partial - partial, 100);
	close_pair(pair);
	close_cache();
}
END_TEST

/* What is learned is reported. */
START_TEST(test_report)
{
	struct NC_route route;
	int pair[2];
	size_t id;

	open_priced(13, 10);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", ROOM, ROOM);
	id = insert(1, 32 * KIB, 0, NC_KIND_SEALED);
	(void)send_many(pair, id, 32 * KIB, 2 * BEGINNING, NC_METHOD_COPY);
	ck_assert_int_eq(nc_transmit_routes(&transmit, &route, 1), 1);
	ck_assert_msg(strncmp(route.why, "32 KiB: copy 13", 15) == 0 &&
			      strstr(route.why, ", splice 10"),
		      "%s", route.why);
	/* A fixed method sends all, and what was learned is forgotten afterwards. */
	ck_assert_int_eq(nc_transmit_route_set(&transmit, "*", NC_METHOD_COPY), 0);
	ck_assert_uint_eq(send_many(pair, id, 32 * KIB, 100, NC_METHOD_COPY), 100);
	ck_assert_int_eq(nc_transmit_route_set(&transmit, "*", NC_ROUTE_LEARN), 0);
	ck_assert_int_eq(nc_transmit_routes(&transmit, &route, 1), 1);
	ck_assert_ptr_null(strstr(route.why, "copy"));
	close_pair(pair);
	close_cache();
}
END_TEST

/*
 * Lent pages limit the unsent bytes of their socket, a copy of the same size lifts that limit,
 * and the socket's program keeps one of its own.
 */
START_TEST(test_limit)
{
	const unsigned own = _i ? 5000 : 0;
	const size_t length = 128 * KIB;
	int pair[2];
	size_t id;

	open_priced(10, 13);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", ROOM, ROOM);
	set_nonblocking(pair[0]);
	if (own)
		ck_assert_int_eq(
			setsockopt(pair[0], IPPROTO_TCP, TCP_NOTSENT_LOWAT, &own, sizeof(own)), 0);
	id = insert(1, length, 0, NC_KIND_APPENDED);
	/* The first epoch splices, the second copies. */
	send_whole(pair, id, length);
	ck_assert_uint_eq(lowat(pair[0]), own ? own : NEAR);
	ck_assert_uint_eq(BY_METHOD(statistics(), NC_METHOD_COPY).sends, 0);
	for (unsigned i = 0; !BY_METHOD(statistics(), NC_METHOD_COPY).sends; i++) {
		ck_assert_uint_lt(i, 2 * (NC_EPOCH_SETTLE + NC_EPOCH_LEAST));
		send_whole(pair, id, length);
	}
	ck_assert_uint_eq(lowat(pair[0]), own);
	close_pair(pair);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_cheapest, 0, CASES);
	tcase_add_loop_test(tcase, test_partial, 0, 2);
	tcase_add_test(tcase, test_report);
	tcase_add_loop_test(tcase, test_limit, 0, 2);
}

RUN_SUITE("transmit-local", fill)
