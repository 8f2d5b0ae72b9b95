/* SPDX-License-Identifier: MIT */
/*
 * test-card-limits.c - zero-copy sends of libnabc through a network card where something
 * is missing: memory that may be locked, or a card that sends packets of several pieces.
 * The peer receives the right bytes, sent by the next best method; one line names what is
 * exhausted, and in the end as much is pinned as before.
 */
#include <grp.h>
#include <nabc.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "card.h"
#include "guest.h"
#include "library.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
/* Enough sends of a unit until its memory is registered; see nabc(7). */
#define ROUNDS 60

/*
 * Of the units, in turn.  The kernel locks two pages more than a send has: from 64 KiB, one
 * unit of the first size may be in flight, and nothing larger.
 */
static const size_t sizes[] = {40 * KIB, 250 * KIB};
static size_t ids[2];

static size_t size_of(unsigned int round)
{
	return sizes[round % 2];
}

static unsigned int lines, about_sends, about_memory;

static void hear(void *context, int level, const char *line)
{
	(void)context;
	(void)level;
	lines++;
	about_sends += strstr(line, "memory for zero-copy sends cannot be locked") != NULL;
	about_memory += strstr(line, "no more memory may be locked") != NULL;
}

/*
 * So small that a large unit has a segment of its own, which is registered after few sends; but
 * before Linux 6.14, an eighth of the cache is registered at most.
 */
static NC_cache *open_cache(int method)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .max_unit = MIB / 4,
				      .flags = NC_CACHE_NO_KERNEL | NC_CACHE_NO_HUGE, .log = hear);
	NC_cache *cache = NC_cache_open(&options);

	must(cache != NULL);
	must(NC_route_set(NULL, "*", method) == 0);
	for (unsigned int i = 0; i < 2; i++)
		ids[i] = library_unit(i, sizes[i], NC_KIND_APPENDED);
	return cache;
}

static int receive_all(void *context)
{
	const int *socket = context;

	for (unsigned int round = 0; round < ROUNDS; round++)
		if (!guest_receive(*socket, round % 2, 0, size_of(round)))
			return 1;
	return 0;
}

static void send_all(int socket)
{
	for (unsigned int round = 0; round < ROUNDS; round++)
		card_send(socket, ids[round % 2], size_of(round), 0);
}

static const char *name_of(int method)
{
	return method == NC_METHOD_ZEROCOPY ? "fixed" : "learning";
}

/* --- locked memory ------------------------------------------------------------------ */

struct poverty {
	struct guest_pair pair;
	rlim_t limit;
	int method;
};

/* An ordinary user, since root has no limit. */
static int send_poorly(void *context)
{
	const struct poverty *poverty = context;
	const struct rlimit limit = {poverty->limit, poverty->limit};
	unsigned long before = card_pinned();
	struct NC_cache_stat stat;
	NC_cache *cache;

	must(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	must(setgroups(0, NULL) == 0);
	must(setgid(LIBRARY_USER) == 0 && setuid(LIBRARY_USER) == 0);
	cache = open_cache(poverty->method);
	send_all(poverty->pair.near);
	card_settle();
	stat = library_stat();
	must(strcmp(stat.uring, "used") == 0);
	must(stat.by_copy.sends + stat.by_splice.sends > 0 && stat.zerocopy_memory > 0);
	must(stat.registered_bytes == 0 && stat.registered_sends == 0);
	must(card_pinned() == before);
	if (poverty->method == NC_METHOD_ZEROCOPY) {
		must(stat.zerocopy_memory >= ROUNDS / 2);
		must((stat.by_zerocopy.sends > 0) == (poverty->limit > 0));
		must(stat.registrations_failed > 0);
	} else {
		/* The route is left at once, and nothing is registered that is not sent from. */
		must(stat.zerocopy_memory <= 3 && stat.zerocopy_learnt >= ROUNDS / 2);
		must(stat.registrations_failed == 0);
	}
	must(about_sends == 1);
	must(about_memory == (stat.registrations_failed > 0));
	must(lines == about_sends + about_memory);
	must(NC_cache_close(cache) == 0);
	must(card_pinned() == before);
	guest_tested("%llu KiB may be locked, %s route: %llu sends without a copy, %llu declined",
		     (unsigned long long)poverty->limit / KIB, name_of(poverty->method),
		     (unsigned long long)stat.by_zerocopy.sends,
		     (unsigned long long)stat.zerocopy_memory);
	return 0;
}

static void test_locked(rlim_t limit, int method)
{
	struct poverty poverty = {guest_connect_to(AF_INET, CARD_PEER), limit, method};
	pid_t reader = guest_fork(receive_all, &poverty.pair.far);

	guest_join(guest_fork(send_poorly, &poverty));
	guest_join(reader);
	guest_disconnect(&poverty.pair);
}

/* --- scatter-gather ------------------------------------------------------------------- */

/*
 * The kernel makes packets of pieces all the same, and copies these when it segments them or,
 * if they are small, makes each one piece.  Only the latter is reported as copied.
 */
static void test_no_scatter(int method)
{
	unsigned long before = card_pinned();
	struct NC_cache_stat stat;
	struct guest_pair pair;
	NC_cache *cache;
	pid_t reader;

	card_scatter(false);
	pair = guest_connect_to(AF_INET, CARD_PEER);
	reader = guest_fork(receive_all, &pair.far);
	cache = open_cache(method);
	send_all(pair.near);
	guest_join(reader);
	card_settle();
	stat = library_stat();
	must(stat.zerocopy_copied > 0);
	if (method == NC_METHOD_ZEROCOPY) {
		must(stat.by_zerocopy.sends >= ROUNDS && stat.registered_sends > 0);
		must(card_pinned() == before + stat.registered_bytes / KIB);
		must(card_pinned() > before);
	} else {
		must(stat.by_copy.sends > 0 && stat.zerocopy_learnt > 0);
	}
	must(lines == 0);
	guest_disconnect(&pair);
	must(NC_cache_close(cache) == 0);
	card_await_pinned(before);
	card_scatter(true);
	guest_tested("no scatter-gather, %s route: %llu of %llu sends copied, %llu from registered "
		     "memory",
		     name_of(method), (unsigned long long)stat.zerocopy_copied,
		     (unsigned long long)stat.by_zerocopy.sends,
		     (unsigned long long)stat.registered_sends);
}

#define HELD 16

static int receive_held(void *context)
{
	const int *socket = context;

	for (unsigned int round = 0; round < HELD; round++)
		if (!guest_receive(*socket, 1, 0, sizes[1]))
			return 1;
	return 0;
}

/*
 * Scatter-gather is switched off under a connection that has begun without a copy: its socket
 * is full of pieces, which the card no longer takes as they are.
 */
static void test_scatter_lost(void)
{
	struct guest_pair pair = guest_connect_to(AF_INET, CARD_PEER);
	NC_cache *cache = open_cache(NC_METHOD_ZEROCOPY);
	unsigned long before = card_pinned();
	struct NC_cache_stat stat;
	unsigned int round = 0;
	size_t done = 0;
	pid_t reader;

	while (round < HELD && (done = card_send_some(pair.near, ids[1], sizes[1])) == sizes[1])
		round++;
	must(round < HELD);
	card_scatter(false);
	reader = guest_fork(receive_held, &pair.far);
	card_send(pair.near, ids[1], sizes[1], done);
	while (++round < HELD)
		card_send(pair.near, ids[1], sizes[1], 0);
	guest_join(reader);
	card_settle();
	stat = library_stat();
	must(stat.by_zerocopy.sends >= HELD);
	must(lines == 0);
	guest_disconnect(&pair);
	must(NC_cache_close(cache) == 0);
	card_await_pinned(before);
	card_scatter(true);
	guest_tested("scatter-gather ends in mid-send: %llu sends, %llu of them copied",
		     (unsigned long long)stat.by_zerocopy.sends,
		     (unsigned long long)stat.zerocopy_copied);
}

int main(void)
{
	static const int methods[] = {NC_METHOD_ZEROCOPY, NC_ROUTE_LEARN};

	card_set_up();
	for (unsigned int i = 0; i < 2; i++) {
		test_locked(0, methods[i]);
		test_locked(64 * KIB, methods[i]);
		test_no_scatter(methods[i]);
	}
	test_scatter_lost();
	return 0;
}
