/* SPDX-License-Identifier: MIT */
/*
 * test-transmit-learn.c - unit tests of transmit-plan.c: which methods it offers to
 * which socket, what it learns from the results, and what an operator may fix.  Each
 * test owns its cache and its threads.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "os/ring.h"
#include "send/choice.h"
#include "send/route.h"
#include "send/transmit.h"
#include "send/zerocopy.h"

#include "by-method.h"
#include "suite.h"
#include "transmit-fixture.h"
#include "transmit-learn-fixture.h"

static struct NC_route only_route(void)
{
	struct NC_route route;

	ck_assert_int_eq(nc_transmit_routes(&transmit, &route, 1), 1);
	return route;
}

/* --- families --------------------------------------------------------------------- */

struct source {
	const int *pair;
	struct NC_send message;
	size_t total;
	ssize_t result;
};

static void *send_whole(void *context)
{
	struct source *source = context;

	while (source->message.skip < source->total) {
		source->result = nc_transmit_send(&transmit, source->pair[0], &source->message);
		if (source->result <= 0)
			break;
		source->message.skip += (size_t)source->result;
	}
	return NULL;
}

/* Every kind of memory over every kind of stream, larger than any buffer. */
START_TEST(test_families)
{
	static const int families[] = {AF_INET, AF_INET6, AF_UNIX};
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED, NC_KIND_SEALED};
	static const unsigned flags[] = {0, NC_SEND_MORE, NC_SEND_CLOSE};
	enum NC_kind kind = kinds[_i % 3];
	size_t size = 3 * MIB;

	for (unsigned i = 0; i < 9; i++) {
		struct NC_range range = {.length = size};
		struct source source = {.message = {.header = "head",
						    .header_length = 4,
						    .ranges = &range,
						    .range_count = 1,
						    .flags = flags[i % 3]},
					.total = size + 4};
		pthread_t thread;
		char *got;
		int pair[2];

		if (!pair_of(families[i / 3], pair))
			continue;
		open_cache(16 * MIB, NC_CACHE_NO_URING);
		range.id = insert(i, size, 0, kind);
		source.pair = pair;
		got = must_alloc(size + 4);
		ck_assert_int_eq(pthread_create(&thread, NULL, send_whole, &source), 0);
		read_exactly(pair[1], got, size + 4);
		pthread_join(thread, NULL);
		ck_assert_uint_eq(pattern_match(got + 4, i, 0, size), size);
		ck_assert_uint_eq(statistics().by_splice.sends > 0, kind != NC_KIND_RECYCLED);
		ck_assert_uint_eq(all_statistics().copies_avoided, statistics().by_splice.sends);
		ck_assert_uint_eq(holds_of(range.id), 0);
		free(got);
		close_pair(pair);
		close_cache();
	}
}
END_TEST

static void on_alarm(int number)
{
	(void)number;
}

/* An interrupting signal does not end a message before all bytes are sent. */
START_TEST(test_signals)
{
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED};
	/* Every 500 us; more often, slow programs would do nothing else. */
	const suseconds_t us = 10000000 / (suseconds_t)scaled(20000);
	struct itimerval often = {{0, us}, {0, us}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
	size_t size = 2 * MIB;

	for (unsigned i = 0; i < 2; i++) {
		struct NC_range range = {.length = size};
		struct source source = {.message = {.ranges = &range, .range_count = 1},
					.total = size};
		char *got = must_alloc(size);
		pthread_t thread;
		int pair[2];
		sigset_t block;

		open_cache(16 * MIB, NC_CACHE_NO_URING);
		range.id = insert(i, size, 0, kinds[i]);
		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4608, 4096);
		source.pair = pair;
		ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
		ck_assert_int_eq(pthread_create(&thread, NULL, send_whole, &source), 0);
		/* All signals go to the sender. */
		sigemptyset(&block);
		sigaddset(&block, SIGALRM);
		pthread_sigmask(SIG_BLOCK, &block, NULL);
		setitimer(ITIMER_REAL, &often, NULL);
		read_exactly(pair[1], got, size);
		pthread_join(thread, NULL);
		setitimer(ITIMER_REAL, &never, NULL);
		ck_assert_int_gt(source.result, 0);
		ck_assert_uint_eq(pattern_match(got, i, 0, size), size);
		free(got);
		close_pair(pair);
		close_cache();
	}
}
END_TEST

/* --- fixed ------------------------------------------------------------------------- */

/*
 * Each case has a process of its own: the end of a ring, some time after it was closed, interrupts
 * the next sendfile().
 */
#define FIXED 10
START_TEST(test_fixed)
{
	static const struct {
		enum NC_kind kind;
		int method;
		size_t size;
		enum NC_method used;
	} cases[] = {
		{NC_KIND_APPENDED, NC_ROUTE_LEARN, 100 * KIB, NC_METHOD_SPLICE},
		{NC_KIND_APPENDED, NC_METHOD_COPY, 100 * KIB, NC_METHOD_COPY},
		{NC_KIND_APPENDED, NC_METHOD_SPLICE, 100, NC_METHOD_SPLICE},
		{NC_KIND_RECYCLED, NC_METHOD_SPLICE, 100 * KIB, NC_METHOD_COPY},
		{NC_KIND_RECYCLED, NC_METHOD_ZEROCOPY, 1000, NC_METHOD_ZEROCOPY},
		{NC_KIND_RECYCLED, NC_METHOD_ZEROCOPY, 100 * KIB, NC_METHOD_ZEROCOPY},
		{NC_KIND_APPENDED, NC_METHOD_ZEROCOPY, 100 * KIB, NC_METHOD_ZEROCOPY},
		{NC_KIND_SEALED, NC_METHOD_ZEROCOPY, 100 * KIB, NC_METHOD_ZEROCOPY},
		{NC_KIND_SEALED, NC_METHOD_SPLICE, 100, NC_METHOD_SPLICE},
		{NC_KIND_SEALED, NC_ROUTE_LEARN, 100 * KIB, NC_METHOD_SPLICE},
	};
	static_assert(sizeof(cases) / sizeof(cases[0]) == FIXED, "each is tested");
	struct NC_cache_stat stat;
	size_t id;
	int pair[2];

	open_cache(8 * MIB, 0);
	if (cases[_i].method == NC_METHOD_ZEROCOPY && !transmit.zerocopy.ring.usable) {
		ck_assert_int_eq(nc_transmit_route_set(&transmit, "*", NC_METHOD_ZEROCOPY),
				 -EOPNOTSUPP);
		close_cache();
		return;
	}
	ck_assert_int_eq(
		nc_transmit_route_set(&transmit, _i % 2 ? "*" : "127.0.0.1", cases[_i].method), 0);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", ROOM, ROOM);
	id = insert((uint64_t)_i, cases[_i].size, 0, cases[_i].kind);
	deliver(pair, id, (uint64_t)_i, cases[_i].size, 0);
	stat = all_statistics();
	for (unsigned method = 0; method < 4; method++)
		ck_assert_msg(BY_METHOD(stat, method).sends == (method == cases[_i].used),
			      "case %d: %lu by %u", _i, BY_METHOD(stat, method).sends, method);
	/* The table shows the same method for any size. */
	if (cases[_i].method != NC_ROUTE_LEARN || cases[_i].size > 32 * KIB) {
		struct NC_route list[2];
		int count = nc_transmit_routes(&transmit, list, 2);

		ck_assert_int_ge(count, 1);
		ck_assert_uint_eq(BY_METHOD(list[count - 1], cases[_i].used).sends, 1);
		ck_assert_uint_eq(BY_METHOD(list[count - 1], cases[_i].used).bytes, cases[_i].size);
		ck_assert_int_eq(list[count - 1].method, cases[_i].method);
	}
	settle();
	ck_assert_uint_eq(holds_of(id), 0);
	close_pair(pair);
	close_cache();
}
END_TEST

START_TEST(test_fixed_refused)
{
	struct NC_route route;

	open_cache(MIB, NC_CACHE_NO_URING);
	ck_assert_int_eq(nc_transmit_route_set(&transmit, NULL, NC_METHOD_COPY), -EINVAL);
	ck_assert_int_eq(nc_transmit_route_set(&transmit, "nowhere", NC_METHOD_COPY), -EINVAL);
	ck_assert_int_eq(nc_transmit_route_set(&transmit, "*", -2), -EINVAL);
	ck_assert_int_eq(nc_transmit_route_set(&transmit, "*", 4), -EINVAL);
	ck_assert_int_eq(nc_transmit_route_set(&transmit, "*", NC_METHOD_KERNEL), -EOPNOTSUPP);
	ck_assert_int_eq(nc_transmit_route_set(&transmit, "*", NC_METHOD_ZEROCOPY), -EOPNOTSUPP);
	ck_assert_int_eq(nc_transmit_routes(&transmit, NULL, 1), -EINVAL);
	ck_assert_int_eq(nc_transmit_routes(&transmit, NULL, 0), 0);
	ck_assert_int_eq(nc_transmit_routes(&transmit, &route, 1), 0);
	close_cache();
}
END_TEST

/* --- learnt ------------------------------------------------------------------------ */

/* Small messages do not look up the route, except for a sample of them. */
START_TEST(test_sample)
{
	int pair[2];
	size_t id;

	open_cache(MIB, NC_CACHE_NO_URING);
	tcp_pair(pair);
	id = insert(1, 1000, 0, NC_KIND_AUTO);
	for (unsigned i = 0; i < 640; i++)
		deliver(pair, id, 1, 1000, 0);
	ck_assert_uint_eq(only_route().by_copy.sends, 640);
	ck_assert_uint_eq(only_route().by_copy.bytes, 640000);
	ck_assert_str_eq(only_route().address, "127.0.0.1");
	close_pair(pair);
	close_cache();
}
END_TEST

/* Returns false, with a line, where zero-copy sends are impossible. */
static bool open_with_ring(void)
{
	open_cache(8 * MIB, 0);
	if (transmit.zerocopy.ring.usable)
		return true;
	printf("transmit-learn: io_uring %s\n", transmit.zerocopy.ring.why);
	close_cache();
	return false;
}

/*
 * A kernel that copies gets zero-copy sends more and more rarely; the rest is copied,
 * and correct.
 */
START_TEST(test_copied)
{
	unsigned tried, messages = 600;
	struct NC_cache_stat stat;
	int pair[2];
	size_t id;

	if (!open_with_ring())
		return;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", ROOM, ROOM);
	id = insert(1, 100 * KIB, 0, NC_KIND_RECYCLED);
	for (unsigned i = 0; i < messages; i++) {
		deliver(pair, id, 1, 100 * KIB, 0);
		settle();
	}
	stat = all_statistics();
	tried = (unsigned)stat.by_zerocopy.sends;
	/*
	 * 4 in a row are believed; 1 again after 16, 32, 64, 128, 256 (each rounded up by the
	 * sampling), of which a trial of its cost may still want some.
	 */
	ck_assert_uint_ge(tried, 5);
	ck_assert_uint_le(tried, 10);
	ck_assert_uint_eq(stat.zerocopy_copied, tried);
	ck_assert_uint_eq(stat.zerocopy_kept, 0);
	ck_assert_uint_eq(stat.copies_avoided, 0);
	ck_assert_uint_eq(stat.zerocopy_learnt, messages - tried);
	ck_assert_uint_eq(only_route().copied, tried);
	ck_assert_uint_eq(only_route().by_zerocopy.sends, tried);
	ck_assert_int_eq(only_route().recycled, NC_METHOD_COPY);
	close_pair(pair);
	close_cache();
}
END_TEST

/* --- costs -------------------------------------------------------------------------- */

/* Delivers a unit many times; returns how many of them went by that method. */
static uint64_t deliver_many(const int pair[2], size_t id, size_t size, unsigned times,
			     enum NC_method method)
{
	uint64_t before = BY_METHOD(statistics(), method).sends;

	for (unsigned i = 0; i < times; i++)
		deliver(pair, id, 1, size, 0);
	return BY_METHOD(statistics(), method).sends - before;
}

/*
 * The method that costs the least sends nearly all, whatever a first guess would say, for each
 * route, class of sizes and kind of memory by itself.
 */
#define CHEAPEST 12 /* four cases with three sizes */
START_TEST(test_cheapest)
{
	static const struct {
		enum NC_kind kind;
		uint64_t copy, splice;
		enum NC_method used;
	} cases[] = {
		{NC_KIND_APPENDED, 10, 12, NC_METHOD_COPY},
		{NC_KIND_APPENDED, 12, 10, NC_METHOD_SPLICE},
		{NC_KIND_SEALED, 12, 10, NC_METHOD_SPLICE},
		{NC_KIND_RECYCLED, 12, 10, NC_METHOD_COPY},
	};
	static const size_t sizes[] = {16 * KIB, 100 * KIB, MIB};
	const size_t size = sizes[_i % 3];
	int pair[2];
	size_t id;

	open_cache(8 * MIB, NC_CACHE_NO_URING);
	transmit.cpu_ns = priced_ns;
	transmit.local_splice = 256 * KIB;
	price(cases[_i / 3].copy, cases[_i / 3].splice, 0);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", ROOM, ROOM);
	id = insert(1, size, 0, cases[_i / 3].kind);
	(void)deliver_many(pair, id, size, 40, NC_METHOD_COPY);
	ck_assert_uint_ge(deliver_many(pair, id, size, 200, cases[_i / 3].used), 190);
	ck_assert_int_eq(holds_of(id), 0);
	close_pair(pair);
	close_cache();
}
END_TEST

/*
 * If the kernel must read each byte for the device, all is copied, whatever calls cost; as before
 * once it is known that it need not.
 */
#define ALL_WAYS (1u << NC_METHOD_COPY | 1u << NC_METHOD_SPLICE | 1u << NC_METHOD_ZEROCOPY)
START_TEST(test_reads)
{
	const size_t size = 100 * KIB;
	struct nc_route_use use;
	int pair[2];
	size_t id;

	open_cache(8 * MIB, _i ? 0 : NC_CACHE_NO_URING);
	transmit.cpu_ns = priced_ns;
	price(12, 10, 11);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", ROOM, ROOM);
	id = insert(1, size, 0, NC_KIND_APPENDED);
	(void)deliver_many(pair, id, size, 40, NC_METHOD_COPY);
	for (unsigned i = 0; i < NC_ROUTES; i++)
		transmit.routes.table[i].device = NC_ROUTE_READS;
	ck_assert_uint_eq(deliver_many(pair, id, size, 200, NC_METHOD_COPY), 200);
	ck_assert_int_eq(only_route().lasting, NC_METHOD_COPY);
	ck_assert_int_eq(only_route().recycled, NC_METHOD_COPY);
	ck_assert_ptr_nonnull(strstr(only_route().why, "the device does not offload checksums"));
	ck_assert_uint_ge(all_statistics().splice_learnt, 200);
	ck_assert_int_eq(nc_route_find(&transmit.routes, pair[0], NULL, &use), 0);
	ck_assert_int_eq(nc_transmit_prefers(&transmit, &use, true, 3, ALL_WAYS), NC_METHOD_COPY);
	ck_assert(!nc_transmit_settled(&use, true, 3, NC_METHOD_COPY));
	for (unsigned i = 0; i < NC_ROUTES; i++)
		transmit.routes.table[i].device = NC_ROUTE_OFFLOADS;
	ck_assert_int_eq(nc_transmit_prefers(&transmit, &use, true, 3, ALL_WAYS), NC_METHOD_SPLICE);
	ck_assert_uint_ge(deliver_many(pair, id, size, 200, NC_METHOD_SPLICE), 180);
	settle();
	ck_assert_int_eq(holds_of(id), 0);
	close_pair(pair);
	close_cache();
}
END_TEST

/* Many short calls cost more than a few long ones: a client that reads little gets copies. */
START_TEST(test_little)
{
	const size_t size = 100 * KIB;
	struct NC_range range = {.length = size};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	char *got = must_alloc(size);
	int pair[2];

	open_cache(8 * MIB, NC_CACHE_NO_URING);
	transmit.cpu_ns = priced_ns;
	price(2, 1, 0);
	call_price = 50000;
	range.id = insert(1, size, 0, NC_KIND_APPENDED);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", 4608, 4096);
	set_nonblocking(pair[0]);
	for (unsigned i = 0; i < 40; i++) {
		size_t have = 0;

		message.skip = 0;
		while (message.skip < size) {
			ssize_t part = nc_transmit_send(&transmit, pair[0], &message);

			ck_assert(part > 0 || part == -EAGAIN);
			message.skip += part > 0 ? (size_t)part : 0;
			await(pair[1], POLLIN);
			have += (size_t)read(pair[1], got + have, size - have);
		}
		read_exactly(pair[1], got + have, size - have);
		ck_assert_uint_eq(pattern_match(got, 1, 0, size), size);
	}
	/* What a message costs counts all its calls. */
	ck_assert_uint_gt(all_statistics().sends_partial, 0);
	ck_assert_uint_gt(only_route().partial, 0);
	ck_assert_ptr_nonnull(strstr(only_route().why, "64 KiB: copy "));
	ck_assert_ptr_nonnull(strstr(only_route().why, ", splice "));
	ck_assert_uint_gt(all_statistics().splice_learnt, 0);
	free(got);
	close_pair(pair);
	close_cache();
}
END_TEST

/* Zero-copy sends are tried like the others, unless the kernel copies them. */
START_TEST(test_zerocopy_cost)
{
	int pair[2];
	size_t id;

	if (!open_with_ring())
		return;
	transmit.cpu_ns = priced_ns;
	price(10, 12, 14);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", ROOM, ROOM);
	id = insert(1, 100 * KIB, 0, NC_KIND_RECYCLED);
	for (unsigned i = 0; i < 40; i++) {
		/* As if a card had read the memory. */
		atomic_store(&transmit.routes.table[0].copied.run, 0);
		deliver(pair, id, 1, 100 * KIB, 0);
		settle();
	}
	ck_assert_uint_eq(nc_route_level(&(struct nc_route_use){.route = transmit.routes.table}),
			  0);
	ck_assert_uint_eq(statistics().by_zerocopy.sends, 6);
	ck_assert_int_eq(only_route().recycled, NC_METHOD_ZEROCOPY);
	/* Of zero-copy sends, memory that is not registered costs nothing more to compare. */
	ck_assert_uint_eq(nc_choice_turns(transmit.routes.table[0].choices->registered), 0);
	close_pair(pair);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_families, 0, 3);
	tcase_add_test(tcase, test_signals);
	tcase_add_loop_test(tcase, test_fixed, 0, FIXED);
	tcase_add_test(tcase, test_fixed_refused);
	tcase_add_test(tcase, test_sample);
	tcase_add_test(tcase, test_copied);
	tcase_add_loop_test(tcase, test_cheapest, 0, CHEAPEST);
	tcase_add_loop_test(tcase, test_reads, 0, 2);
	tcase_add_test(tcase, test_little);
	tcase_add_test(tcase, test_zerocopy_cost);
}

RUN_SUITE("transmit-learn", fill)
