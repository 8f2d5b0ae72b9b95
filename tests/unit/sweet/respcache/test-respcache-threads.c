/* SPDX-License-Identifier: MIT */
/*
 * test-respcache-threads.c - many threads request a few URLs, respond, purge and
 * destroy.  The application increments the version of a URL before it purges it; each
 * later request must get that version or a newer one.
 */
#include <nabc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "http/request.h"
#include "respcache/respcache.h"

#include "loop-fixture.h"
#include "respcache-fixture.h"
#include "suite.h"
#include "unit-holds.h"

#define THREADS 4
#define URLS 8
#define ROUNDS 20000

static _Atomic uint64_t versions[URLS]; /* of the application */
static _Atomic uint64_t purged[URLS];	/* the minimum that each request must get */
static _Atomic uint64_t waits, got;

struct player {
	struct respcache_ask ask; /* must be first */
	pthread_t thread;
	uint64_t random;
	unsigned number;
	_Atomic bool answered;
};

/* The current response of the application: a unit that contains number and version. */
static struct NC_range make_page(unsigned url, uint64_t version)
{
	uint64_t page[2] = {url, version};
	struct NC_range range = {.length = sizeof(page)};
	NC_handle handle;

	expect(NC_alloc(&handle, sizeof(page), 0) == 0);
	expect(NC_write(&handle, page, sizeof(page), 0) == sizeof(page));
	expect(NC_insert(&handle) == 0);
	range.id = NC_cache_id(&handle);
	expect(hold_id(NULL, range.id) == 0);
	expect(NC_free(&handle) == 0);
	return range;
}

static void end_flight(struct player *player, unsigned url, uint64_t version)
{
	struct respcache_flight *flight = player->ask.flight;
	char lines[128];
	struct NC_range range;

	if (random_next(&player->random) % 8 == 0) {
		respcache_give_up(flight, RESPCACHE_LOST, BEGIN);
		return;
	}
	snprintf(lines, sizeof(lines), KEEP_10 "X-NABC-Tag: t%u other\r\n", url);
	range = make_page(url, version);
	(void)answer_with(flight, lines, &range, 1, true, BEGIN);
	expect(release_id(NULL, range.id) == 0);
}

static void check_page(struct player *player, unsigned url, uint64_t least)
{
	const struct respcache_view *view = respcache_view(player->ask.entry);
	const struct NC_range *range = view->ranges;
	uint64_t page[2];
	const void *bytes;
	size_t run;

	bytes = NC_data(&view->holds[0], &run, 0);
	expect(bytes && run >= sizeof(page));
	memcpy(page, bytes, sizeof(page));
	expect(page[0] == url);
	expect(page[1] >= least);
	if (random_next(&player->random) % 64 == 0)
		(void)NC_destroy(NULL, range->id);
	respcache_put(player->ask.entry);
	atomic_fetch_add(&got, 1);
}

static void player_answered(struct respcache_ask *ask)
{
	struct player *player = (struct player *)ask;

	EVENT(atomic_store(&player->answered, true));
}

static void purge_url(struct player *player, unsigned url)
{
	uint64_t before, version;
	char what[32];

	switch (random_next(&player->random) % 4) {
	case 0:
		snprintf(what, sizeof(what), "t%u", url);
		break;
	case 1:
		snprintf(what, sizeof(what), "http://a/%u", url);
		break;
	case 2:
		snprintf(what, sizeof(what), "/%u", url);
		break;
	default:
		snprintf(what, sizeof(what), "/%u*", url);
	}
	version = atomic_fetch_add(&versions[url], 1) + 1;
	expect(respcache_purge(responses, (struct slice){what, strlen(what)}, false) >= 0);
	before = atomic_load(&purged[url]);
	while (before < version && !atomic_compare_exchange_weak(&purged[url], &before, version))
		;
}

static void play(struct player *player)
{
	unsigned url = (unsigned)(random_next(&player->random) % URLS);
	struct request request;
	enum respcache_verdict verdict;
	char head[64];
	uint64_t least;

	if (random_next(&player->random) % 16 == 0)
		purge_url(player, url);
	snprintf(head, sizeof(head), "GET /%u HTTP/1.1\r\nHost: a\r\n\r\n", url);
	expect(request_parse(&request, head, strlen(head)) == 0);
	player->ask = (struct respcache_ask){.answered = player_answered,
					     .loop = runners[player->number % LOOPS].loop};
	atomic_store(&player->answered, false);
	least = atomic_load(&purged[url]);
	verdict = respcache_look_up(responses, &player->ask, &request, by_response, BEGIN);
	if (verdict == RESPCACHE_WAIT) {
		atomic_fetch_add(&waits, 1);
		AWAIT(atomic_load(&player->answered));
		verdict = player->ask.verdict;
	}
	if (verdict == RESPCACHE_HIT) {
		check_page(player, url, least);
	} else if (verdict == RESPCACHE_FETCH) {
		uint64_t version = atomic_load(&versions[url]);

		/* The application is slow. */
		if (random_next(&player->random) % 4 == 0)
			sched_yield();
		end_flight(player, url, version);
	} else {
		expect(verdict == RESPCACHE_PASS || verdict == RESPCACHE_AGAIN);
	}
}

static void *run_player(void *argument)
{
	struct player *player = argument;

	for (unsigned i = 0; i < scaled(ROUNDS); i++)
		play(player);
	return NULL;
}

START_TEST(test_threads)
{
	static struct player players[THREADS];
	struct respcache_stat stat;

	open_all(_i ? 4096 : URLS / 2, 1 << 20);
	for (unsigned i = 0; i < THREADS; i++) {
		players[i].number = i;
		players[i].random = 1000 + i;
		ck_assert_int_eq(pthread_create(&players[i].thread, NULL, run_player, &players[i]),
				 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(players[i].thread, NULL);
	stat = stat_now();
	ck_assert_uint_le(stat.entries, URLS);
	ck_assert_uint_gt(stat.stored, 0);
	ck_assert_uint_gt(stat.purged, 0);
	ck_assert_uint_gt(atomic_load(&got), 0);
	ck_assert_uint_eq(stat.collapsed, atomic_load(&waits));
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	/* With enough memory, in shards; with too little. */
	tcase_add_loop_test(tcase, test_threads, 0, 2);
}

RUN_SUITE("respcache-threads", fill)
