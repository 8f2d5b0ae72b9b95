/* SPDX-License-Identifier: MIT */
/*
 * test-route.c - unit tests of route.c on sockets of this machine: which route a
 * socket has, what is learnt and forgotten.  Single-threaded except the last test.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc.h>

#include "send/choice.h"
#include "send/route.h"

#include "by-method.h"
#include "route-fixture.h"
#include "suite.h"

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
	ck_assert_int_eq(nc_route_find(&routes, pair[0], NULL, &unix_one), 0);
	ck_assert(unix_one.local);
	ck_assert(!unix_one.unbounded);
	ck_assert_int_eq(nc_route_find(&routes, pair[1], NULL, &again), 0);
	ck_assert_ptr_eq(unix_one.route, again.route);
	ck_assert_uint_eq(nc_routes_list(&routes, NULL, 0, true), 4);
	ck_assert(nc_route_tries_zerocopy(&local, false));
	ck_assert(nc_route_tries_zerocopy(&remote, false));
	close_pair(pair);
	close_routes();
}
END_TEST

/* An accepted connection says what the device can do, others do not. */
START_TEST(test_device)
{
	struct nc_route_use connected, accepted, local;
	int pair[2];

	open_routes();
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", 0, 0);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], NULL, &connected), 0);
	ck_assert_int_eq(nc_route_find(&routes, pair[1], NULL, &accepted), 0);
	ck_assert_int_eq(connected.route->device, NC_ROUTE_UNKNOWN);
	ck_assert_int_eq(accepted.route->device, NC_ROUTE_OFFLOADS);
	ck_assert(!nc_route_reads(connected.route) && !nc_route_reads(accepted.route));
	accepted.route->device = NC_ROUTE_READS;
	ck_assert(nc_route_reads(accepted.route));
	ck_assert_str_eq(route_stat("127.0.0.2", 0).why, "the device does not offload checksums");
	ck_assert_int_eq(route_stat("127.0.0.2", 0).lasting, NC_METHOD_COPY);
	ck_assert_int_eq(route_stat("127.0.0.1", 0).lasting, NC_METHOD_ZEROCOPY);
	/* Asked again, by the next connection, after everything was forgotten. */
	ck_assert_int_eq(nc_routes_fix(&routes, "127.0.0.2", NC_ROUTE_LEARN), 0);
	ck_assert_int_eq(accepted.route->device, NC_ROUTE_UNKNOWN);
	close_pair(pair);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", 0, 0);
	ck_assert_int_eq(nc_route_find(&routes, pair[1], NULL, &accepted), 0);
	ck_assert_int_eq(accepted.route->device, NC_ROUTE_OFFLOADS);
	close_pair(pair);
	/* Within this machine no device matters. */
	tcp_pair(pair);
	ck_assert_int_eq(nc_route_find(&routes, pair[1], NULL, &local), 0);
	ck_assert_int_eq(local.route->device, NC_ROUTE_UNKNOWN);
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
	/* Not connected: a socket without a route, from which nothing is learnt. */
	ck_assert_int_eq(nc_route_find(&routes, fd, NULL, &use), 0);
	ck_assert_ptr_null(use.route);
	ck_assert(!use.unbounded);
	ck_assert(!nc_route_tries_zerocopy(&use, true));
	ck_assert_ptr_null(nc_route_choice(&use, true, 3));
	ck_assert_ptr_null(nc_route_registered(&use, 3));
	ck_assert_int_eq(nc_route_fixed(&use), NC_ROUTE_LEARN);
	nc_route_notified(&use, nc_route_level(&use), true);
	nc_route_refused(&use, 0);
	nc_route_count(&use, &tally, 1);
	close(fd);
	ck_assert_int_eq(nc_route_find(&routes, fd, NULL, &use), -EBADF);
	ck_assert_int_eq(nc_route_find(&routes, -1, NULL, &use), -EBADF);
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(nc_route_find(&routes, ends[1], NULL, &use), -ENOTSOCK);
	close_pair(ends);
	ck_assert_uint_eq(nc_routes_list(&routes, NULL, 0, true), 0);
	close_routes();
}
END_TEST

/* With the connection's cookie, the kernel is asked only once. */
START_TEST(test_cookie)
{
	struct nc_route_use use, again;
	uint64_t cookie = 0, kernels = 0;
	socklen_t length = sizeof(kernels);
	int pair[2];

	open_routes();
	tcp_pair(pair);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &cookie, &use), 0);
	ck_assert_int_eq(getsockopt(pair[0], SOL_SOCKET, SO_COOKIE, &kernels, &length), 0);
	ck_assert_uint_eq(cookie, kernels);
	close_pair(pair);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &cookie, &again), 0);
	ck_assert_ptr_eq(again.route, use.route);
	ck_assert_uint_eq(again.cookie, cookie);
	/* Nothing is kept of what is no socket. */
	cookie = 0;
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &cookie, &again), -EBADF);
	ck_assert_uint_eq(cookie, 0);
	close_routes();
}
END_TEST

/* A socket is recognised by its identity, not by its number. */
START_TEST(test_memo)
{
	struct nc_route_use use, other;
	int pair[2], next[2], copy;

	open_routes();
	tcp_pair(pair);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], NULL, &use), 0);
	ck_assert(use.unbounded);
	nc_route_bounded(&routes, &use, true);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], NULL, &use), 0);
	ck_assert(!use.unbounded);
	nc_route_bounded(&routes, &use, false);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], NULL, &use), 0);
	ck_assert(use.unbounded);
	nc_route_bounded(&routes, &use, true);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], NULL, &use), 0);
	ck_assert_ptr_nonnull(use.route);
	ck_assert(use.local);
	copy = dup(pair[0]);
	ck_assert_int_eq(nc_route_find(&routes, copy, NULL, &other), 0);
	ck_assert(!other.unbounded);
	close(copy);
	/* Another socket with the same number. */
	tcp_pair_between(next, "127.0.0.5", "127.0.0.6", 0, 0);
	ck_assert_int_eq(dup2(next[0], pair[0]), pair[0]);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], NULL, &other), 0);
	ck_assert(other.unbounded);
	ck_assert(!other.local);
	ck_assert_ptr_ne(other.route, use.route);
	close_pair(pair);
	close_pair(next);
	close_routes();
}
END_TEST

/* Counts refusals until the next trial, one sampled call after the other. */
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
	/* A burst of concurrent sends counts once. */
	for (unsigned i = 0; i < 10; i++)
		nc_route_notified(&use, level, true);
	ck_assert_uint_eq(nc_route_level(&use), level + 1);
	for (unsigned i = 0; i < 8; i++) {
		unsigned refused = refusals_of_zerocopy(&use);

		/* Trials become rarer as long as they fail. */
		ck_assert_uint_ge(refused, 2 * before);
		ck_assert_uint_gt(refused, 0);
		before = refused;
		nc_route_notified(&use, nc_route_level(&use), true);
	}
	ck_assert_int_eq(route_stat("127.0.0.1", 0).recycled, NC_METHOD_COPY);
	ck_assert_ptr_nonnull(strstr(route_stat("127.0.0.1", 0).why, "the kernel copies"));
	ck_assert_uint_eq(route_stat("127.0.0.1", 0).copied, 18);
	/* One success enables it at once; the other methods were enabled all the time. */
	nc_route_notified(&use, nc_route_level(&use), false);
	ck_assert_uint_eq(refusals_of_zerocopy(&use), 0);
	ck_assert_uint_eq(route_stat("127.0.0.1", 0).kept, 1);
	ck_assert_int_eq(route_stat("127.0.0.1", 0).recycled, NC_METHOD_ZEROCOPY);
	ck_assert_str_eq(route_stat("127.0.0.1", 0).why, "not copied");
	ck_assert_uint_eq(refusals_of_zerocopy(&other), 0);
	/* An unavailable method is delayed in the same way, and does not count as a copy. */
	nc_route_refused(&use, nc_route_level(&use));
	ck_assert_uint_gt(refusals_of_zerocopy(&use), 0);
	ck_assert_uint_eq(route_stat("127.0.0.1", 0).copied, 18);
	close_routes();
}
END_TEST

/* After any number of failures it is tried again eventually. */
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
	ck_assert_uint_eq(nc_route_class(16383), 0);
	ck_assert_uint_eq(nc_route_class(16384), 1);
	ck_assert_uint_eq(nc_route_class(32767), 1);
	ck_assert_uint_eq(nc_route_class(32768), 2);
	ck_assert_uint_eq(nc_route_class(65536), 3);
	ck_assert_uint_eq(nc_route_class(524287), NC_ROUTE_CLASSES - 2);
	ck_assert_uint_eq(nc_route_class(524288), NC_ROUTE_CLASSES - 1);
	ck_assert_uint_eq(nc_route_class(SIZE_MAX), NC_ROUTE_CLASSES - 1);
}
END_TEST

/* Choices are those of a route, a class and a kind of memory. */
START_TEST(test_choices)
{
	struct nc_route_use use, other;
	const unsigned class = nc_route_class(100 << 10), large = NC_ROUTE_CLASSES - 1;

	open_routes();
	use = use_between("127.0.0.1", "127.0.0.1");
	other = use_between("127.0.0.1", "127.0.0.2");
	ck_assert_ptr_ne(nc_route_choice(&use, true, class), nc_route_choice(&use, false, class));
	ck_assert_ptr_ne(nc_route_choice(&use, true, class), nc_route_choice(&use, true, large));
	ck_assert_ptr_ne(nc_route_choice(&use, true, class), nc_route_choice(&other, true, class));
	ck_assert_ptr_ne(nc_route_registered(&use, class), nc_route_registered(&other, class));
	(void)nc_choice_pick(nc_route_choice(&use, true, class), 7, 0);
	nc_choice_measured(nc_route_choice(&use, true, class), NC_METHOD_COPY, 10000, 100000,
			   100000);
	nc_choice_measured(nc_route_choice(&use, true, class), NC_METHOD_SPLICE, 7000, 100000,
			   100000);
	ck_assert_str_eq(route_stat("127.0.0.1", 1).why,
			 "64 KiB: copy 100, splice 70 ps/byte; stays on this machine");
	/* The table shows the method of the largest class. */
	ck_assert_int_eq(route_stat("127.0.0.1", 1).lasting, NC_METHOD_SPLICE);
	nc_choice_measured(nc_route_choice(&use, true, large), NC_METHOD_COPY, 1, 1 << 20, 1 << 20);
	ck_assert_int_eq(route_stat("127.0.0.1", 1).lasting, NC_METHOD_COPY);
	ck_assert_int_eq(route_stat("127.0.0.1", 0).lasting, NC_METHOD_ZEROCOPY);
	/* An operator lets the route learn again. */
	ck_assert_int_eq(nc_routes_fix(&routes, "127.0.0.1", NC_ROUTE_LEARN), 0);
	ck_assert_str_eq(route_stat("127.0.0.1", 1).why, "stays on this machine");
	ck_assert_int_eq(route_stat("127.0.0.1", 1).lasting, NC_METHOD_SPLICE);
	close_routes();
}
END_TEST

/* Sends that the kernel reports as copied although it kept them do not end zero-copy sends. */
START_TEST(test_joined)
{
	struct nc_route_use use;

	open_routes();
	use = use_between("127.0.0.1", "127.0.0.2");
	for (unsigned i = 0; i < 100; i++)
		nc_route_notified(&use, nc_route_level(&use), i % 4 != 0);
	ck_assert_uint_eq(nc_route_level(&use), 0);
	ck_assert(nc_route_tries_zerocopy(&use, false));
	nc_route_notified(&use, 0, false);
	for (unsigned i = 0; i < 4; i++)
		nc_route_notified(&use, nc_route_level(&use), true);
	ck_assert_uint_eq(nc_route_level(&use), 1);
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
	route = route_stat("127.0.0.1", 1);
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

		if (nc_route_find(&routes, pair[i % 2], NULL, &use) || !use.route) {
			atomic_fetch_add(&faults, 1);
			continue;
		}
		nc_route_count(&use, &tally, 1);
		if (nc_choice_pick(nc_route_choice(&use, i % 2, 3), 3, i % 2).measure)
			nc_choice_measured(nc_route_choice(&use, i % 2, 3), i % 2, 1000 + i,
					   1 << 17, 1 << 17);
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

/* All threads concurrently; for the thread checkers, and no count is lost. */
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
	ck_assert_uint_eq(route_stat("unix", 1).by_copy.sends, THREADS * scaled(20000));
	ck_assert_uint_eq(route_stat("unix", 1).by_copy.bytes,
			  THREADS * 100 * (uint64_t)scaled(20000));
	close_routes();
}
END_TEST

#define NO_COOKIE UINT64_MAX

static _Atomic uint64_t found_cookie;

static void *find_first(void *context)
{
	const int *pair = context;
	struct nc_route_use use;
	uint64_t cookie = 0;

	(void)nc_route_find(&routes, pair[0], &cookie, &use);
	/* Orders nothing: the memo alone must. */
	atomic_store_explicit(&found_cookie, cookie ? cookie : NO_COOKIE, memory_order_relaxed);
	return NULL;
}

/* A thread that has only the memo of another one finds the whole entry: TSan looks. */
START_TEST(test_memo_of_another_thread)
{
	struct nc_route_tally tally = {.sends = {1}, .bytes = {100}};
	struct nc_route_use use;
	pthread_t thread;
	uint64_t cookie;
	int pair[2];

	open_routes();
	tcp_pair(pair);
	atomic_store(&found_cookie, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, find_first, pair), 0);
	while (!(cookie = atomic_load_explicit(&found_cookie, memory_order_relaxed)))
		sched_yield();
	if (cookie == NO_COOKIE)
		puts("route: another thread's memo: skipped: sockets have no cookies here");
	ck_assert_int_eq(nc_route_find(&routes, pair[0], &cookie, &use), 0);
	ck_assert_ptr_nonnull(use.route);
	nc_route_count(&use, &tally, 1);
	ck_assert_ptr_nonnull(nc_route_choice(&use, false, 3));
	pthread_join(thread, NULL);
	ck_assert_uint_eq(route_stat("127.0.0.1", 1).by_copy.sends, 1);
	close_pair(pair);
	close_routes();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_keys);
	tcase_add_test(tcase, test_device);
	tcase_add_test(tcase, test_no_route);
	tcase_add_test(tcase, test_cookie);
	tcase_add_test(tcase, test_memo);
	tcase_add_test(tcase, test_copied);
	tcase_add_test(tcase, test_copied_for_long);
	tcase_add_test(tcase, test_classes);
	tcase_add_test(tcase, test_choices);
	tcase_add_test(tcase, test_joined);
	tcase_add_test(tcase, test_counts);
	tcase_add_test(tcase, test_threads);
	tcase_add_test(tcase, test_memo_of_another_thread);
}

RUN_SUITE("route", fill)
