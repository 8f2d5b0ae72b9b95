/* SPDX-License-Identifier: MIT */
/*
 * test-hash-table.c - unit tests of hash-table.c: against a plain array, with keys
 * that share a bucket, and walks that remove entries.  Single-threaded.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/hash-table.h"

#include "suite.h"

#define ENTRIES 3000u

static struct nc_hash_entry entries[ENTRIES];

START_TEST(test_empty)
{
	struct nc_hash_table table;

	nc_hash_table_init(&table);
	ck_assert_ptr_null(nc_hash_table_find(&table, 0));
	ck_assert_ptr_null(nc_hash_table_find(&table, UINT64_MAX));
	ck_assert_ptr_null(nc_hash_table_next(&table, NULL));
	nc_hash_table_fini(&table);
	/* Freed again, it is as new. */
	nc_hash_table_fini(&table);
	ck_assert_ptr_null(nc_hash_table_next(&table, NULL));
	nc_hash_table_enter(&table, &entries[0], 7);
	ck_assert_ptr_eq(nc_hash_table_find(&table, 7), &entries[0]);
	nc_hash_table_leave(&table, &entries[0]);
	ck_assert_uint_eq(table.count, 0);
	nc_hash_table_fini(&table);
}
END_TEST

/* Ids of one member, of one slot, or spread over all bits. */
static uint64_t key_of(unsigned kind, unsigned i)
{
	switch (kind) {
	case 0:
		return i;
	case 1:
		return (uint64_t)i << 28 | 1;
	case 2:
		return (uint64_t)i << 50 | 1;
	case 3:
		return UINT64_MAX - (uint64_t)i * 4096;
	default:
		return pattern_at(i, 0) | (uint64_t)i << 32;
	}
}

START_TEST(test_every_key)
{
	struct nc_hash_table table;

	for (unsigned kind = 0; kind < 5; kind++) {
		unsigned count = kind == 2 ? ENTRIES : ENTRIES - kind;

		nc_hash_table_init(&table);
		for (unsigned i = 0; i < count; i++) {
			expect(!nc_hash_table_find(&table, key_of(kind, i)));
			nc_hash_table_enter(&table, &entries[i], key_of(kind, i));
			expect(nc_hash_table_find(&table, key_of(kind, i)) == &entries[i]);
		}
		ck_assert_uint_eq(table.count, count);
		/* The table has grown. */
		ck_assert_uint_ge(table.mask + 1, count / 2);
		for (unsigned i = 0; i < count; i++) {
			expect(nc_hash_table_find(&table, key_of(kind, i)) == &entries[i]);
			expect(!nc_hash_table_find(&table, key_of(kind, i) ^ UINT64_C(1) << 63));
		}
		for (unsigned i = 0; i < count; i += 2)
			nc_hash_table_leave(&table, &entries[i]);
		for (unsigned i = 0; i < count; i++)
			expect(nc_hash_table_find(&table, key_of(kind, i)) ==
			       (i % 2 ? &entries[i] : NULL));
		nc_hash_table_fini(&table);
	}
}
END_TEST

/* A walk visits every entry once; the current one may be removed when its successor is known. */
START_TEST(test_walk)
{
	struct nc_hash_table table;
	struct nc_hash_entry *entry, *next;
	static bool met[ENTRIES];
	unsigned count = 0;

	nc_hash_table_init(&table);
	for (unsigned i = 0; i < ENTRIES; i++)
		nc_hash_table_enter(&table, &entries[i], key_of(4, i));
	memset(met, 0, sizeof(met));
	for (entry = nc_hash_table_next(&table, NULL); entry;
	     entry = nc_hash_table_next(&table, entry)) {
		expect(!met[entry - entries]);
		met[entry - entries] = true;
		count++;
	}
	ck_assert_uint_eq(count, ENTRIES);
	for (entry = nc_hash_table_next(&table, NULL); entry; entry = next) {
		next = nc_hash_table_next(&table, entry);
		if ((entry - entries) % 3)
			nc_hash_table_leave(&table, entry);
	}
	ck_assert_uint_eq(table.count, ENTRIES / 3);
	while ((entry = nc_hash_table_next(&table, NULL))) {
		expect((entry - entries) % 3 == 0);
		nc_hash_table_leave(&table, entry);
	}
	ck_assert_uint_eq(table.count, 0);
	nc_hash_table_fini(&table);
}
END_TEST

/* Long random use gives the same results as an array. */
START_TEST(test_model)
{
	static struct nc_hash_entry here[64];
	static bool in[64];
	struct nc_hash_table table;
	uint64_t state = 5;
	size_t count = 0;

	memset(in, 0, sizeof(in));
	nc_hash_table_init(&table);
	for (unsigned i = 0; i < scaled(200000); i++) {
		unsigned at = (unsigned)(random_next(&state) % 64);

		expect(nc_hash_table_find(&table, at * UINT64_C(0x100000000)) ==
		       (in[at] ? &here[at] : NULL));
		if (in[at])
			nc_hash_table_leave(&table, &here[at]);
		else
			nc_hash_table_enter(&table, &here[at], at * UINT64_C(0x100000000));
		in[at] = !in[at];
		count += in[at] ? 1 : (size_t)-1;
		expect(table.count == count);
	}
	nc_hash_table_fini(&table);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_empty);
	tcase_add_test(tcase, test_every_key);
	tcase_add_test(tcase, test_walk);
	tcase_add_test(tcase, test_model);
}

RUN_SUITE("hash-table", fill)
