/* SPDX-License-Identifier: MIT */
/*
 * test-file-cache-table.c - unit tests of file-cache-table.c: names that an attacker
 * chose to collide cost no more than others.
 */
#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "files/file-cache-internal.h"

#include "file-cache-fixture.h"
#include "suite.h"

#define BITS 14u
#define NAMES (1u << BITS)
#define NAME (2 * BITS + 2)

/*
 * "Az" and "BY" have the same hash if it multiplies by 33 and adds, as GLib's string
 * hash does; therefore each bit of the number doubles the names with one hash.
 */
static void name_of(char *name, unsigned number, bool chosen)
{
	name[0] = '/';
	for (unsigned i = 0; i < BITS; i++) {
		bool bit = number >> i & 1;

		memcpy(name + 1 + 2 * i, !bit ? "Az" : chosen ? "BY" : "Bz", 2);
	}
	name[NAME - 1] = '\0';
}

static void fill_table(bool chosen)
{
	char name[NAME];

	pthread_mutex_lock(&content->lock);
	for (unsigned i = 0; i < NAMES; i++) {
		struct file_cache_entry *entry;

		name_of(name, i, chosen);
		entry = file_cache_entry_new(content, name);
		entry->state = ENTRY_READY;
		ck_assert_ptr_null(file_cache_enter_locked(content, entry));
	}
	pthread_mutex_unlock(&content->lock);
}

/* Returns the CPU time of some successful lookups. */
static double look_up(bool chosen)
{
	struct timespec start, end;
	char name[NAME];

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	for (unsigned i = 0; i < NAMES; i += 16) {
		struct file_cache_entry *entry;

		name_of(name, i, chosen);
		entry = g_hash_table_lookup(content->table, name);
		ck_assert_ptr_nonnull(entry);
		ck_assert_str_eq(entry->path, name);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	return (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
}

START_TEST(test_chosen_names)
{
	double best[2] = {1e9, 1e9};
	char one[NAME], other[NAME];

	name_of(one, 1, true);
	name_of(other, 2, true);
	ck_assert_uint_eq(g_str_hash(one), g_str_hash(other));
	for (unsigned chosen = 0; chosen < 2; chosen++) {
		open_all(4 << 20, 1 << 20, 1, 0);
		fill_table(chosen);
		for (unsigned turn = 0; turn < 5; turn++) {
			double took = look_up(chosen);

			if (took < best[chosen])
				best[chosen] = took;
		}
		close_all();
	}
	ck_assert_msg(best[1] < 8 * best[0], "chosen names cost %.1f times as much as others",
		      best[1] / best[0]);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_chosen_names);
}

RUN_SUITE("file-cache-table", fill)
