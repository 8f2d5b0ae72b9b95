/* SPDX-License-Identifier: MIT */
/*
 * test-resolver.c - unit tests of resolver.c: when it looks names up, what a failure and a lookup
 * that does not end change, and how many run at a time.  The lookup is the test's.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <glib.h>

#include "event/loop.h"
#include "upstream/name-lookup.h"
#include "upstream/resolver.h"

#include "suite.h"

#define LONG_MS 3600000u
#define SETTLE_MS 20000u

static struct loop *loop;
static struct resolver *resolver;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool open_gate; /* else lookups of "slow..." wait */
static unsigned waiting, waiting_most, ended;
static _Atomic unsigned lookups;
static const unsigned *answers; /* for each lookup, the last byte of the address; 0: it fails */

static void finish(void)
{
	pthread_mutex_lock(&lock);
	ended++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static bool look(const char *host, struct name_addresses *found, char *why, size_t why_size)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&found->all[0];
	unsigned number = atomic_fetch_add(&lookups, 1);
	unsigned last = answers ? answers[number] : 1;

	if (strncmp(host, "slow", 4) == 0) {
		pthread_mutex_lock(&lock);
		waiting++;
		waiting_most = MAX(waiting_most, waiting);
		pthread_cond_broadcast(&changed);
		while (!open_gate)
			pthread_cond_wait(&changed, &lock);
		waiting--;
		pthread_mutex_unlock(&lock);
	}
	snprintf(why, why_size, "the test says so");
	*in = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(0x7f000000 + last)};
	found->count = last ? 1 : 0;
	finish();
	return last > 0;
}

struct watch {
	struct resolver_watch watch; /* must be first */
	unsigned looked_up, stop_at; /* lookups */
	unsigned hurry_at;
	unsigned seen[8]; /* the last byte of the address after each; 0: none */
};

static unsigned last_of(const struct watch *watch)
{
	const struct name_addresses *found = resolver_addresses(&watch->watch);
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&found->all[0];

	return found->count ? ntohl(in->sin_addr.s_addr) & 0xff : 0;
}

static void looked_up(struct resolver_watch *watch)
{
	struct watch *own = (struct watch *)watch;

	ck_assert(resolver_has_looked(watch));
	own->seen[own->looked_up++] = last_of(own);
	if (own->looked_up == own->hurry_at) {
		resolver_hurry(watch);
		resolver_hurry(watch);
	}
	if (own->looked_up == own->stop_at)
		loop_stop(loop);
}

static void set_up(void)
{
	char why[128];

	loop = loop_open(LOOP_EPOLL, LOOP_FEW, why, sizeof(why));
	ck_assert_ptr_nonnull(loop);
	resolver = resolver_open(loop, look);
	open_gate = false;
	waiting = waiting_most = ended = 0;
	atomic_store(&lookups, 0);
	answers = NULL;
}

static void tear_down(void)
{
	resolver_close(resolver);
	loop_close(loop);
}

static void start(struct watch *watch, const char *host, unsigned interval_ms)
{
	*watch = (struct watch){.watch.looked_up = looked_up};
	resolver_watch_start(resolver, &watch->watch, host, interval_ms);
}

static void run_until(struct watch *watch, unsigned count)
{
	watch->stop_at = count;
	loop_run(loop);
	ck_assert_uint_eq(watch->looked_up, count);
}

START_TEST(test_first)
{
	struct watch one, same;

	start(&one, "app", LONG_MS);
	ck_assert(!resolver_has_looked(&one.watch));
	ck_assert_uint_eq(last_of(&one), 0);
	resolver_settle(resolver, SETTLE_MS);
	ck_assert(resolver_has_looked(&one.watch));
	ck_assert_uint_eq(one.looked_up, 1);
	ck_assert_uint_eq(last_of(&one), 1);
	/* Another one for the name has its addresses at once, also for another spelling. */
	start(&same, "APP", LONG_MS);
	ck_assert(resolver_has_looked(&same.watch));
	ck_assert_uint_eq(last_of(&same), 1);
	ck_assert_uint_eq(atomic_load(&lookups), 1);
	resolver_watch_stop(&one.watch);
	ck_assert_uint_eq(last_of(&same), 1);
	resolver_watch_stop(&same.watch);
}
END_TEST

/* A name that has an address keeps it when lookups fail, and gets the next one. */
START_TEST(test_again)
{
	static const unsigned sequence[] = {1, 2, 0, 3}, seen[] = {1, 2, 2, 3};
	struct watch one;

	answers = sequence;
	start(&one, "app", RESOLVER_AGAIN_MS);
	run_until(&one, 4);
	ck_assert_mem_eq(one.seen, seen, sizeof(seen));
	resolver_watch_stop(&one.watch);
}
END_TEST

/* After a failure it does not wait for the interval; nor if an address does not answer. */
START_TEST(test_soon)
{
	static const unsigned sequence[] = {0, 1, 2}, seen[] = {0, 1, 2};
	struct watch one;

	answers = sequence;
	start(&one, "app", LONG_MS);
	one.hurry_at = 2;
	run_until(&one, 3);
	ck_assert_mem_eq(one.seen, seen, sizeof(seen));
	ck_assert_uint_eq(atomic_load(&lookups), 3);
	resolver_watch_stop(&one.watch);
}
END_TEST

/* A name server that is silent: other names are looked up, and the end does not wait for it. */
START_TEST(test_silent)
{
	struct watch slow, other;

	start(&slow, "slow", LONG_MS);
	start(&other, "app", LONG_MS);
	run_until(&other, 1);
	ck_assert(!resolver_has_looked(&slow.watch));
	resolver_settle(resolver, 1);
	ck_assert(!resolver_has_looked(&slow.watch));
	resolver_watch_stop(&slow.watch);
	resolver_watch_stop(&other.watch);
}
END_TEST

/* The watch is gone when its lookup ends. */
START_TEST(test_unwanted)
{
	struct watch slow, again;

	start(&slow, "slow", LONG_MS);
	resolver_watch_stop(&slow.watch);
	start(&again, "slow", LONG_MS);
	pthread_mutex_lock(&lock);
	open_gate = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	run_until(&again, 1);
	ck_assert_uint_eq(slow.looked_up, 0);
	resolver_watch_stop(&again.watch);
}
END_TEST

START_TEST(test_many)
{
	struct watch watches[3 * RESOLVER_THREADS_MAX];
	char host[32];

	for (unsigned i = 0; i < G_N_ELEMENTS(watches); i++) {
		snprintf(host, sizeof(host), "slow%u", i);
		start(&watches[i], host, LONG_MS);
	}
	pthread_mutex_lock(&lock);
	while (waiting < RESOLVER_THREADS_MAX)
		pthread_cond_wait(&changed, &lock);
	open_gate = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	resolver_settle(resolver, SETTLE_MS);
	ck_assert_uint_le(waiting_most, RESOLVER_THREADS_MAX);
	for (unsigned i = 0; i < G_N_ELEMENTS(watches); i++) {
		ck_assert_uint_eq(watches[i].looked_up, 1);
		resolver_watch_stop(&watches[i].watch);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_first);
	tcase_add_test(tcase, test_again);
	tcase_add_test(tcase, test_soon);
	tcase_add_test(tcase, test_silent);
	tcase_add_test(tcase, test_unwanted);
	tcase_add_test(tcase, test_many);
}

RUN_SUITE("resolver", fill)
