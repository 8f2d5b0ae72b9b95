/* SPDX-License-Identifier: MIT */
/*
 * test-client-limit.c - unit tests of client-limit.c with a clock set by the tests:
 * how much a bucket permits, which addresses are one client, the effect of a flood of
 * addresses; many threads at one counter.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "event/client-limit.h"

#include "suite.h"

#define SECOND UINT64_C(1000000000)
#define THREADS 4

static union {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
} address;

static const struct sockaddr *client(const char *text)
{
	memset(&address, 0, sizeof(address));
	if (inet_pton(AF_INET, text, &address.in.sin_addr) == 1) {
		address.in.sin_family = AF_INET;
	} else {
		address.in6.sin6_family = AF_INET6;
		ck_assert_int_eq(inet_pton(AF_INET6, text, &address.in6.sin6_addr), 1);
	}
	/* Ignored. */
	address.in.sin_port = (in_port_t)random();
	return &address.any;
}

START_TEST(test_rate)
{
	struct client_limits *limits = client_limits_open(64);
	struct rate_limit *rate = rate_new("a", 10, 3);
	struct client_address who;
	uint64_t now = 5 * SECOND;

	ck_assert_uint_eq(client_limits_take(limits, rate, client("192.0.2.1"), now), 0);
	ck_assert_uint_eq(client_limits_take(limits, rate, client("192.0.2.1"), now), 0);
	ck_assert_uint_eq(client_limits_take(limits, rate, client("192.0.2.1"), now), 0);
	ck_assert_uint_eq(client_limits_take(limits, rate, client("192.0.2.1"), now), SECOND / 10);
	/* A refusal does not delay further. */
	ck_assert_uint_eq(client_limits_take(limits, rate, client("192.0.2.1"), now), SECOND / 10);
	now += SECOND / 10 - 1;
	ck_assert_uint_eq(client_limits_take(limits, rate, client("192.0.2.1"), now), 1);
	now += 1;
	ck_assert_uint_eq(client_limits_take(limits, rate, client("192.0.2.1"), now), 0);
	ck_assert_uint_eq(client_limits_take(limits, rate, client("192.0.2.1"), now), SECOND / 10);
	/* After a pause the whole burst is available, not more. */
	now += 100 * SECOND;
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(client_limits_take(limits, rate, client("192.0.2.1"), now), 0);
	ck_assert_uint_ne(client_limits_take(limits, rate, client("192.0.2.1"), now), 0);
	who = client_address(client("192.0.2.1"));
	client_limits_put_back(limits, rate, &who);
	ck_assert_uint_eq(client_limits_take(limits, rate, client("192.0.2.1"), now), 0);
	ck_assert_uint_ne(client_limits_take(limits, rate, client("192.0.2.1"), now), 0);
	/* The clock of another thread may be behind. */
	ck_assert_uint_eq(client_limits_take(limits, rate, client("192.0.2.1"), now - 7),
			  SECOND / 10 + 7);
	/* Nothing was ever taken. */
	who = client_address(client("192.0.2.2"));
	client_limits_put_back(limits, rate, &who);
	ck_assert_uint_eq(client_limits_take(limits, rate, client("192.0.2.2"), now), 0);
	rate_free(rate);
	client_limits_close(limits);
	client_limits_close(NULL);
}
END_TEST

/* For any duration, at most the rate passes. */
START_TEST(test_steady)
{
	static const unsigned rates[] = {1, 3, 7, 1000, 1000000, 2000000000};
	struct client_limits *limits = client_limits_open(64);

	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct rate_limit *rate = rate_new("steady", rates[i], 1);
		uint64_t step = SECOND / rates[i] / 10, passed = 0;
		unsigned steps = scaled(10000);

		rate->scope = i;
		if (step == 0)
			step = 1;
		for (unsigned at = 0; at < steps; at++)
			passed += client_limits_take(limits, rate, client("192.0.2.1"),
						     SECOND + at * step) == 0;
		ck_assert_uint_ge(passed, rates[i] < SECOND ? steps / 11 : steps);
		ck_assert_uint_le(passed, rates[i] < SECOND ? steps / 10 + 1 : steps);
		rate_free(rate);
	}
	client_limits_close(limits);
}
END_TEST

START_TEST(test_who)
{
	static const struct {
		const char *one, *other;
		bool same;
	} cases[] = {
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "::ffff:192.0.2.2", false},
		{"2001:db8::1", "2001:db8::ffff:2:3:4", true},
		{"2001:db8:0:1::1", "2001:db8:0:2::1", false},
		/* The first half of this is 192.0.2.1 and zeros. */
		{"192.0.2.1", "c000:201::", false},
	};
	struct rate_limit *rate = rate_new("a", 1, 1), *other = rate_new("b", 1, 1);
	struct rate_limit *again = rate_new("a", 1, 1);

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct client_limits *limits = client_limits_open(64);
		struct limited_client *entered, *second;

		ck_assert_uint_eq(client_limits_take(limits, rate, client(cases[i].one), SECOND),
				  0);
		ck_assert((client_limits_take(limits, rate, client(cases[i].other), SECOND) != 0) ==
			  cases[i].same);
		/* Another scope, and the same one of another generation. */
		ck_assert_uint_eq(client_limits_take(limits, other, client(cases[i].one), SECOND),
				  0);
		ck_assert_uint_ne(client_limits_take(limits, again, client(cases[i].one), SECOND),
				  0);
		entered = client_limits_enter(limits, 0, client(cases[i].one), 1);
		ck_assert_ptr_nonnull(entered);
		second = client_limits_enter(limits, 0, client(cases[i].other), 1);
		ck_assert((second == NULL) == cases[i].same);
		client_limits_leave(limits, entered);
		if (second)
			client_limits_leave(limits, second);
		client_limits_close(limits);
	}
	rate_free(rate);
	rate_free(other);
	rate_free(again);
}
END_TEST

START_TEST(test_unix)
{
	struct client_limits *limits = client_limits_open(64);
	struct sockaddr local = {.sa_family = AF_UNIX};
	struct limited_client *entered = client_limits_enter(limits, 0, &local, 1);

	ck_assert_ptr_nonnull(entered);
	ck_assert_ptr_null(client_limits_enter(limits, 0, &local, 1));
	client_limits_leave(limits, entered);
	client_limits_close(limits);
}
END_TEST

START_TEST(test_connections)
{
	struct client_limits *limits = client_limits_open(0);
	struct limited_client *held[3], *other;

	ck_assert_ptr_null(client_limits_enter(limits, 0, client("192.0.2.1"), 0));
	for (unsigned i = 0; i < 3; i++) {
		held[i] = client_limits_enter(limits, 0, client("192.0.2.1"), 3);
		ck_assert_ptr_nonnull(held[i]);
	}
	ck_assert_ptr_null(client_limits_enter(limits, 0, client("192.0.2.1"), 3));
	other = client_limits_enter(limits, 0, client("192.0.2.2"), 3);
	ck_assert_ptr_nonnull(other);
	client_limits_leave(limits, other);
	client_limits_leave(limits, held[1]);
	held[1] = client_limits_enter(limits, 0, client("192.0.2.1"), 3);
	ck_assert_ptr_nonnull(held[1]);
	ck_assert_ptr_null(client_limits_enter(limits, 0, client("192.0.2.1"), 3));
	for (unsigned i = 0; i < 3; i++)
		client_limits_leave(limits, held[i]);
	/* Remaining ones are freed with the table. */
	ck_assert_ptr_nonnull(client_limits_enter(limits, 0, client("192.0.2.1"), 1));
	client_limits_close(limits);
}
END_TEST

/* More clients than chains, which connect and disconnect in different orders. */
START_TEST(test_many_connections)
{
	unsigned count = scaled(50000);
	struct limited_client **held = must_alloc(count * sizeof(*held));
	struct client_limits *limits = client_limits_open(0);
	struct sockaddr_in in = {.sin_family = AF_INET};

	for (unsigned i = 0; i < count; i++) {
		in.sin_addr.s_addr = htonl(0x0a000000 + i);
		held[i] = client_limits_enter(limits, 0, (struct sockaddr *)&in, 1);
		expect(held[i] != NULL);
		expect(client_limits_enter(limits, 0, (struct sockaddr *)&in, 1) == NULL);
	}
	for (unsigned i = 0; i < count; i++)
		client_limits_leave(limits, held[(size_t)i * 7919 % count]);
	for (unsigned i = 0; i < count; i++) {
		in.sin_addr.s_addr = htonl(0x0a000000 + i);
		held[i] = client_limits_enter(limits, 0, (struct sockaddr *)&in, 1);
		expect(held[i] != NULL);
		client_limits_leave(limits, held[i]);
	}
	free(held);
	client_limits_close(limits);
}
END_TEST

/* A flood of addresses, each with one request, does not give new tokens to a busy client. */
START_TEST(test_flood)
{
	struct client_limits *limits = client_limits_open(64);
	struct rate_limit *rate = rate_new("a", 1, 10);
	struct sockaddr_in in = {.sin_family = AF_INET};
	unsigned taken = 0;

	while (client_limits_take(limits, rate, client("192.0.2.1"), SECOND) == 0)
		taken++;
	ck_assert_uint_eq(taken, 10);
	for (unsigned i = 0; i < 100000; i++) {
		in.sin_addr.s_addr = htonl(0x0a000000 + i);
		expect(client_limits_take(limits, rate, (struct sockaddr *)&in, SECOND) == 0);
	}
	ck_assert_uint_ne(client_limits_take(limits, rate, client("192.0.2.1"), SECOND), 0);
	rate_free(rate);
	client_limits_close(limits);
}
END_TEST

static struct {
	struct client_limits *limits;
	struct rate_limit *rate;
	pthread_barrier_t barrier;
	_Atomic unsigned inside, most, taken;
} crowd;

static void *visitor(void *unused)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)};
	const struct sockaddr *who = (const struct sockaddr *)&in;

	(void)unused;
	pthread_barrier_wait(&crowd.barrier);
	for (unsigned i = 0; i < scaled(20000); i++) {
		struct limited_client *entered =
			client_limits_enter(crowd.limits, 0, who, THREADS - 1);
		unsigned inside;

		crowd.taken += client_limits_take(crowd.limits, crowd.rate, who, SECOND) == 0;
		if (!entered)
			continue;
		inside = ++crowd.inside;
		if (inside > crowd.most)
			crowd.most = inside;
		crowd.inside--;
		client_limits_leave(crowd.limits, entered);
	}
	return NULL;
}

START_TEST(test_threads)
{
	pthread_t threads[THREADS];

	crowd.limits = client_limits_open(64);
	crowd.rate = rate_new("a", 1, 100);
	pthread_barrier_init(&crowd.barrier, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, visitor, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&crowd.barrier);
	ck_assert_uint_le(crowd.most, THREADS - 1);
	ck_assert_uint_eq(crowd.taken, 100);
	rate_free(crowd.rate);
	client_limits_close(crowd.limits);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_rate);
	tcase_add_test(tcase, test_steady);
	tcase_add_test(tcase, test_who);
	tcase_add_test(tcase, test_unix);
	tcase_add_test(tcase, test_connections);
	tcase_add_test(tcase, test_many_connections);
	tcase_add_test(tcase, test_flood);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("client-limit", fill)
