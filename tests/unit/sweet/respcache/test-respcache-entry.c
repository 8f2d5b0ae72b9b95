/* SPDX-License-Identifier: MIT */
/*
 * test-respcache-entry.c - unit tests of respcache-entry.c: what an entry copies of a
 * response, which requests it matches, which entry is evicted for another, and the
 * holds of its units.
 */
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/list.h"
#include "base/slice.h"
#include "http/request.h"
#include "program/cacheable.h"
#include "program/cgihead.h"
#include "respcache/respcache-internal.h"
#include "respcache/respcache.h"

#include "respcache-fixture.h"
#include "suite.h"
#include "unit-holds.h"

#define HASH 5u /* of all keys: one shard */

/* An entry with that key and these lines; NULL if it is refused. */
static struct respcache_entry *make(const char *key, const char *head, const char *lines,
				    const struct NC_range *ranges, unsigned count)
{
	struct NC_hold holds[RESPCACHE_RANGES_MAX + 1] = {0};
	struct respcache_answer answer = {.lines = {lines, strlen(lines)},
					  .terms = {.fresh = 10, .stale = 5, .age = 3},
					  .ranges = ranges,
					  .holds = holds,
					  .range_count = count};
	struct respcache_key whole = {
		.text = {key, strlen(key)}, .url_length = strlen(key), .hash = HASH};
	struct request request = parse(head);
	struct respcache_flight *flight =
		respcache_flight_new(responses, respcache_copy_new(&request, false), &whole);
	struct respcache_entry *entry;
	struct cacheable said;
	struct cgihead parsed;

	for (unsigned i = 0; i < count; i++)
		holds[i] = hold_of_id(NULL, ranges[i].id);
	ck_assert_ptr_nonnull(flight);
	ck_assert_ptr_null(cgihead_parse(&parsed, answer.lines));
	cacheable_read(&said, &parsed);
	answer.said = &said;
	entry = respcache_entry_new(flight, &answer, BEGIN);
	respcache_flight_release(flight);
	return entry;
}

START_TEST(test_copies)
{
	struct respcache_entry *entry;
	struct NC_range ranges[2];

	open_all(10, 1 << 20);
	ranges[0] = make_unit('a', 100);
	ranges[1] = make_unit('b', 50);
	entry = make("/a", GET("/a", ""),
		     "A: b\nAge: 3\r\nContent-Type: x/y\r\nContent-Length: 7\r\nContent-Location: "
		     "/c\r\nETag: \"e\"\r\n",
		     ranges, 2);
	ck_assert_ptr_nonnull(entry);
	/*
	 * Without fields that are written for each response; and for 304 without those of a body.
	 */
	ck_assert(slice_is(entry->view.head, "A: b\r\nContent-Type: x/y\r\nContent-Location: "
					     "/c\r\nETag: \"e\"\r\n"));
	ck_assert(slice_is(entry->view.lean, "A: b\r\nContent-Location: /c\r\nETag: \"e\"\r\n"));
	ck_assert(slice_is(entry->view.etag, "\"e\""));
	ck_assert(slice_is(entry->key.text, "/a"));
	ck_assert_uint_eq(entry->view.length, 150);
	ck_assert_uint_eq(entry->fresh_ns, BEGIN + 10 * SECOND);
	ck_assert_uint_eq(entry->stale_ns, BEGIN + 15 * SECOND);
	/* All units, or none. */
	ck_assert(respcache_entry_hold(entry));
	respcache_entry_ref(entry);
	respcache_put(entry);
	ck_assert_int_eq(NC_destroy(NULL, ranges[1].id), 0);
	ck_assert_int_eq(release_id(NULL, ranges[1].id), 0);
	ck_assert(!respcache_entry_hold(entry));
	ck_assert_int_eq(release_id(NULL, ranges[0].id), 0);
	ck_assert_int_eq(release_id(NULL, ranges[0].id), -1);
	respcache_entry_unref(entry);
	close_all();
}
END_TEST

START_TEST(test_answers)
{
	struct respcache_entry *entry;
	struct request same, other;

	open_all(10, 1 << 20);
	entry = make("/a", GET("/a", "X-A: 1\r\n"), "Vary: X-A\r\n", NULL, 0);
	same = parse(GET("/a", "X-A: 1\r\n"));
	other = parse(GET("/a", "X-A: 2\r\n"));
	ck_assert(respcache_entry_answers(entry, &same, false));
	ck_assert(!respcache_entry_answers(entry, &other, false));
	/* Unless it is public. */
	ck_assert(!respcache_entry_answers(entry, &same, true));
	entry->shared = true;
	ck_assert(respcache_entry_answers(entry, &same, true));
	ck_assert(respcache_key_has_url(&entry->key, HASH, (struct slice){"/a", 2}));
	ck_assert(!respcache_key_has_url(&entry->key, HASH, (struct slice){"/b", 2}));
	ck_assert(!respcache_key_has_url(&entry->key, HASH, (struct slice){"/aa", 3}));
	ck_assert(!respcache_key_has_url(&entry->key, HASH, (struct slice){"/", 1}));
	respcache_entry_unref(entry);
	close_all();
}
END_TEST

/* SIEVE: evicts the oldest that was not used since the hand passed it, and never the new one. */
START_TEST(test_victims)
{
	static const char *const keys[] = {"/0", "/1", "/2", "/3", "/4"};
	struct respcache_entry *entries[5];
	struct list dropped = {0};

	open_all(3, 1 << 20);
	for (unsigned i = 0; i < 5; i++)
		entries[i] = make(keys[i], GET("/a", ""), "X-NABC-Tag: t\r\n", NULL, 0);
	for (unsigned i = 0; i < 3; i++)
		respcache_link_locked(responses, entries[i], &dropped);
	ck_assert(list_is_empty(&dropped));
	atomic_store(&entries[0]->used, true);
	respcache_link_locked(responses, entries[3], &dropped);
	ck_assert_ptr_eq(list_first(&dropped, struct respcache_entry, node), entries[1]);
	ck_assert(!entries[1]->linked);
	ck_assert(!atomic_load(&entries[0]->used));
	/* The hand continues from there. */
	respcache_link_locked(responses, entries[4], &dropped);
	ck_assert_ptr_eq(list_first(&dropped, struct respcache_entry, node), entries[2]);
	ck_assert_ptr_eq(list_next(&dropped, entries[2], node), entries[1]);
	ck_assert_uint_eq(stat_now().entries, 3);
	ck_assert_uint_eq(stat_now().dropped, 2);
	respcache_drop(&dropped);
	close_all();
}
END_TEST

/* All others were used: the hand skips the new one, and starts another round. */
START_TEST(test_new_one_is_spared)
{
	static const char *const keys[] = {"/0", "/1", "/2"};
	struct respcache_entry *entries[3];
	struct list dropped = {0};

	open_all(2, 1 << 20);
	for (unsigned i = 0; i < 3; i++) {
		entries[i] = make(keys[i], GET("/a", ""), "A: b\r\n", NULL, 0);
		atomic_store(&entries[i]->used, i < 2);
		respcache_link_locked(responses, entries[i], &dropped);
	}
	ck_assert_ptr_eq(list_first(&dropped, struct respcache_entry, node), entries[0]);
	ck_assert_ptr_null(list_next(&dropped, entries[0], node));
	ck_assert(entries[2]->linked);
	respcache_drop(&dropped);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_copies);
	tcase_add_test(tcase, test_answers);
	tcase_add_test(tcase, test_victims);
	tcase_add_test(tcase, test_new_one_is_spared);
}

RUN_SUITE("respcache-entry", fill)
