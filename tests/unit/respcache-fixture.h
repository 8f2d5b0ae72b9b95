/* SPDX-License-Identifier: MIT */
/*
 * respcache-fixture.h - shared by the tests of respcache.h: a cache of units and
 * one of responses, loops, requests from text, and units filled with one letter.
 * The tests choose the times.
 */
#ifndef RESPCACHE_FIXTURE_H
#define RESPCACHE_FIXTURE_H

#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/slice.h"
#include "http/cachekey.h"
#include "http/request.h"
#include "program/cacheable.h"
#include "program/cgihead.h"
#include "respcache/respcache.h"

#include "loop-fixture.h"
#include "suite.h"
#include "unit-holds.h"

struct respcache_entry;
struct respcache_flight;

#define LOOPS 2
#define SECOND UINT64_C(1000000000)
#define BEGIN (1000 * SECOND)

/* Makes a request of that target and further fields. */
#define GET(target, fields) "GET " target " HTTP/1.1\r\nHost: a\r\n" fields "\r\n"

static const struct cacheable_rule by_response = {CACHEABLE_RESPONSE, 0};

static struct runner runners[LOOPS];
static struct respcache *responses;
static NC_cache *units;

static inline void open_all(unsigned entries, size_t bytes)
{
	struct respcache_options options = {.entries = entries, .bytes = bytes};

	units = NC_cache_open(NULL);
	ck_assert_ptr_nonnull(units);
	responses = respcache_open(&options);
	ck_assert_ptr_nonnull(responses);
	for (unsigned i = 0; i < LOOPS; i++)
		runner_start(&runners[i], any_kind());
}

/* No unit may be held any more, else the cache would not close. */
static inline void close_all(void)
{
	struct NC_cache_stat stat;

	respcache_close(responses);
	for (unsigned i = 0; i < LOOPS; i++)
		runner_stop(&runners[i]);
	ck_assert_int_eq(NC_cache_stat(units, &stat, sizeof(stat)), 0);
	ck_assert_int_eq(NC_cache_close(units), 0);
}

static inline struct respcache_stat stat_now(void)
{
	struct respcache_stat stat;

	respcache_stat(responses, &stat);
	return stat;
}

/* Makes a unit of that letter, with one hold. */
static inline struct NC_range make_unit(char letter, size_t size)
{
	char *bytes = must_alloc(size);
	struct NC_range range = {.length = size};
	NC_handle handle;

	memset(bytes, letter, size);
	ck_assert_int_eq(NC_alloc(&handle, size, 0), 0);
	ck_assert_int_eq(NC_write(&handle, bytes, size, 0), (ssize_t)size);
	ck_assert_int_eq(NC_insert(&handle), 0);
	range.id = NC_cache_id(&handle);
	ck_assert_int_eq(hold_id(NULL, range.id), 0);
	ck_assert_int_eq(NC_free(&handle), 0);
	free(bytes);
	return range;
}

static inline bool is_alive(size_t id)
{
	if (hold_id(NULL, id) < 0)
		return false;
	ck_assert_int_eq(release_id(NULL, id), 0);
	return true;
}

/* --- lookups -------------------------------------------------------------------------- */

/* The head must last as long as the request. */
static inline struct request parse(const char *head)
{
	struct request request;

	ck_assert_msg(request_parse(&request, head, strlen(head)) == 0, "%s", head);
	return request;
}

/* One request, on the test's thread; a loop calls answered(). */
struct asker {
	struct respcache_ask ask; /* must be first */
	struct cacheable_rule rule;
	unsigned answered; /* number of calls */
	bool elsewhere;	   /* called on another thread than its loop's */
	bool request_good;
};

static inline void was_answered(struct respcache_ask *ask)
{
	struct asker *asker = (struct asker *)ask;
	struct runner *runner = &runners[ask->loop != runners[0].loop];
	bool elsewhere = !pthread_equal(pthread_self(), runner->thread);
	bool good = ask->request && ask->request->path.at[0] == '/';

	EVENT({
		asker->elsewhere = elsewhere;
		asker->request_good = good;
		asker->answered++;
	});
}

/* Where the requests arrive. */
static struct cachekey_place here = {{"192.0.2.1:80", 12}, {"here", 4}};

static inline enum respcache_verdict look_by(struct asker *asker, const char *head,
					     struct cacheable_rule rule, uint64_t now_ns)
{
	struct request request = parse(head);

	*asker = (struct asker){.ask = {.answered = was_answered,
					.loop = runners[0].loop,
					.place = here,
					.authorized = request_find(&request, "Authorization")},
				.rule = rule};
	return respcache_look_up(responses, &asker->ask, &request, rule, now_ns);
}

static inline enum respcache_verdict look(struct asker *asker, const char *head, uint64_t now_ns)
{
	return look_by(asker, head, by_response, now_ns);
}

static inline void release_entry(struct asker *asker)
{
	respcache_put(asker->ask.entry);
	asker->ask.entry = NULL;
}

/* Looks up, puts back the result, and returns the verdict; no flight may begin. */
static inline enum respcache_verdict peek(const char *head, uint64_t now_ns)
{
	struct asker asker;
	enum respcache_verdict verdict = look(&asker, head, now_ns);

	if (asker.ask.entry)
		release_entry(&asker);
	if (asker.ask.flight)
		respcache_give_up(asker.ask.flight, RESPCACHE_LOST, now_ns);
	ck_assert_int_ne(verdict, RESPCACHE_WAIT);
	return verdict;
}

/* --- responses ------------------------------------------------------------------------ */

/* Ends a flight with these lines and ranges; returns true if they are stored. */
static inline bool answer_with(struct respcache_flight *flight, const char *lines,
			       const struct NC_range *ranges, unsigned count, bool owned,
			       uint64_t now_ns)
{
	struct NC_hold holds[RESPCACHE_RANGES_MAX + 1] = {0};
	struct respcache_answer answer = {.lines = {lines, strlen(lines)},
					  .ranges = ranges,
					  .holds = holds,
					  .range_count = count,
					  .owned = owned ? UINT64_MAX : 0};
	struct cacheable said;
	struct cgihead head;
	const char *wrong = cgihead_parse(&head, answer.lines);

	for (unsigned i = 0; i < count; i++)
		holds[i] = hold_of_id(NULL, ranges[i].id);

	ck_assert_msg(!wrong, "%s: %s", lines, wrong);
	head.status = 200;
	cacheable_read(&said, &head);
	answer.said = &said;
	answer.terms =
		cacheable_judge(&said, by_response, respcache_flight_authorized(flight), 784111777);
	ck_assert_uint_gt(answer.terms.fresh, 0);
	return respcache_store(flight, &answer, now_ns);
}

#define KEEP_10 "Cache-Control: max-age=10\r\n"

/* Fetches a missing response: one unit of the letter, which the cache owns; returns its id. */
static inline size_t fetch(const char *head, const char *lines, char letter, uint64_t now_ns)
{
	struct asker asker;
	struct NC_range range = make_unit(letter, 100);

	ck_assert_int_eq(look(&asker, head, now_ns), RESPCACHE_FETCH);
	ck_assert_ptr_nonnull(asker.ask.flight);
	ck_assert(answer_with(asker.ask.flight, lines, &range, 1, true, now_ns));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	return range.id;
}

/* Returns true if a held body consists of the letter. */
static inline bool body_is(const struct respcache_entry *entry, char letter)
{
	const struct respcache_view *view = respcache_view(entry);

	for (unsigned i = 0; i < view->range_count; i++) {
		size_t run;
		const char *bytes = NC_data(&view->holds[i], &run, view->ranges[i].offset);

		if (!bytes || run < view->ranges[i].length)
			return false;
		for (size_t k = 0; k < view->ranges[i].length; k++)
			if (bytes[k] != letter)
				return false;
	}
	return true;
}

/* Returns true if there is a fresh entry with that letter. */
static inline bool hits(const char *head, char letter, uint64_t now_ns)
{
	struct asker asker;
	bool hit = look(&asker, head, now_ns) == RESPCACHE_HIT;

	if (asker.ask.flight)
		respcache_give_up(asker.ask.flight, RESPCACHE_LOST, now_ns);
	if (!asker.ask.entry)
		return false;
	hit = hit && body_is(asker.ask.entry, letter);
	release_entry(&asker);
	return hit;
}

#endif
