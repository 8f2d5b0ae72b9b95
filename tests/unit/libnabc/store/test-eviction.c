/* SPDX-License-Identifier: MIT */
/*
 * test-eviction.c - unit tests of eviction.c, compaction.c and page-window.c, through
 * member.c: windows of pages, requests that cannot succeed, which units compaction
 * keeps and where it puts them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <nabc.h>

#include "store/eviction.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#include "member-fixture.h"
#include "suite.h"

#define SEGMENT ((size_t)256 << 10)
#define PAGES (SEGMENT / PAGE)

static struct nc_unit *unit[1024];
static unsigned generation[1024];

static void insert(unsigned number, size_t size, enum NC_kind kind)
{
	unit[number] = must_insert(size, kind, &generation[number]);
}

static void hold(unsigned number)
{
	ck_assert_int_eq(nc_member_hold(&member, unit[number], generation[number], false), 0);
}

static void release(unsigned number)
{
	ck_assert_int_eq(nc_member_release(&member, unit[number], generation[number]), 0);
}

/* Checks for a unit without a use: the order stays. */
static bool stands(unsigned number)
{
	uint64_t word = nc_unit_word(unit[number]);

	return nc_word_generation(word) == generation[number] &&
	       nc_word_state(word) == NC_UNIT_LIVE;
}

static unsigned count_standing(unsigned from, unsigned end)
{
	unsigned count = 0;

	for (; from < end; from++)
		count += stands(from);
	return count;
}

static void open_member(size_t budget, enum NC_policy policy)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.policy = policy);

	ck_assert_int_eq(nc_member_init_owner(&member, budget, false), 0);
	ck_assert_int_eq(nc_member_configure(&member, &options), 0);
	ck_assert_uint_eq(member.segment_size, SEGMENT);
}

/* Eight pages of small units: eight are evicted, and none of them is held. */
START_TEST(test_window)
{
	struct nc_unit *more;

	open_member(MIB, NC_POLICY_SIEVE);
	for (unsigned i = 0; i < 4 * PAGES; i++)
		insert(i, 100, NC_KIND_RECYCLED);
	/* Only one window of eight has no held unit. */
	for (unsigned i = 0; i < 4 * PAGES; i++)
		if (i % 8 == 3 && i != 131)
			hold(i);
	ck_assert_int_eq(try_alloc(8 * PAGE, NC_KIND_RECYCLED, &more), 0);
	ck_assert_uint_eq(member.evictions, 8);
	for (unsigned i = 0; i < 4 * PAGES; i++)
		if (i % 8 == 3 && i != 131)
			ck_assert(stands(i));
	ck_assert(!stands(131));
	nc_member_abandon(&member, more);
	/* The window that fits evicts one unit: the coldest. */
	ck_assert_int_eq(try_alloc(8 * PAGE, NC_KIND_RECYCLED, &more), 0);
	ck_assert_int_eq(try_alloc(PAGE, NC_KIND_RECYCLED, &more), 0);
	ck_assert_uint_eq(member.evictions, 9);
	nc_member_fini(&member);
}
END_TEST

/* Larger and smaller neighbours of the victim, free pages among them. */
START_TEST(test_window_takes_the_fewest)
{
	struct nc_unit *more;

	open_member(MIB, NC_POLICY_SIEVE);
	for (unsigned i = 0; i < 4 * PAGES; i++)
		insert(i, 100, NC_KIND_RECYCLED);
	/* The oldest has free pages beside it, at its upper side. */
	for (unsigned i = 1; i < 4; i++)
		ck_assert_int_eq(nc_member_destroy(&member, unit[i], generation[i]), 0);
	ck_assert_int_eq(try_alloc(4 * PAGE, NC_KIND_RECYCLED, &more), 0);
	ck_assert_uint_eq(member.evictions, 1);
	ck_assert(!stands(0));
	ck_assert_uint_eq(count_standing(4, 4 * PAGES), 4 * PAGES - 4);
	nc_member_fini(&member);
}
END_TEST

/* No window and no segment can become free: nothing is evicted in vain. */
START_TEST(test_no_window)
{
	struct nc_unit *more;

	open_member(MIB, NC_POLICY_SIEVE);
	for (unsigned i = 0; i < 4 * PAGES; i++) {
		insert(i, 100, NC_KIND_RECYCLED);
		if (i % 8 == 3)
			hold(i);
	}
	ck_assert_int_eq(try_alloc(8 * PAGE, NC_KIND_RECYCLED, &more), -ENOMEM);
	ck_assert_int_eq(try_alloc(8 * PAGE, NC_KIND_APPENDED, &more), -ENOMEM);
	ck_assert_uint_eq(member.evictions, 0);
	ck_assert_uint_eq(count_standing(0, 4 * PAGES), 4 * PAGES);
	ck_assert_int_eq(try_alloc(7 * PAGE, NC_KIND_RECYCLED, &more), 0);
	ck_assert_uint_eq(member.evictions, 7);
	nc_member_fini(&member);
}
END_TEST

/* If two segments are needed, the single possible one is not evicted. */
START_TEST(test_half_the_room)
{
	struct nc_unit *more;

	open_member(MIB, NC_POLICY_SIEVE);
	for (unsigned i = 0; i < 16; i++)
		insert(i, 64 << 10, NC_KIND_APPENDED);
	for (unsigned i = 4; i < 16; i += 4)
		hold(i);
	ck_assert_int_eq(try_alloc(2 * SEGMENT, NC_KIND_APPENDED, &more), -ENOMEM);
	ck_assert_uint_eq(member.evictions, 0);
	ck_assert_uint_eq(count_standing(0, 16), 16);
	release(8);
	ck_assert_int_eq(try_alloc(2 * SEGMENT, NC_KIND_APPENDED, &more), 0);
	ck_assert_uint_eq(member.evictions, 8);
	for (unsigned i = 0; i < 16; i++)
		ck_assert_int_eq(stands(i), i / 4 == 1 || i / 4 == 3);
	nc_member_fini(&member);
}
END_TEST

/* A pinned unit in a segment of its own frees nothing, and evicts no others. */
START_TEST(test_pinned_alone)
{
	struct nc_unit *more;

	open_member(MIB, NC_POLICY_SIEVE);
	insert(0, 3 * SEGMENT, NC_KIND_APPENDED);
	insert(1, 200 << 10, NC_KIND_SEALED);
	for (unsigned i = 0; i < 2; i++) {
		hold(i);
		ck_assert_int_eq(
			nc_member_set_priority(&member, unit[i],
					       i ? NC_PRIORITY_NORMAL : NC_PRIORITY_PINNED),
			0);
		release(i);
	}
	ck_assert_uint_eq(member.pinned, 1);
	ck_assert_int_eq(try_alloc(2 * SEGMENT, NC_KIND_APPENDED, &more), -ENOMEM);
	ck_assert(stands(0) && stands(1));
	ck_assert_int_eq(try_alloc(200 << 10, NC_KIND_APPENDED, &more), 0);
	ck_assert(stands(0) && !stands(1));
	nc_member_fini(&member);
}
END_TEST

/*
 * The best units of a segment are copied: to the newest segment, complete, read-only,
 * within the limit; before the log has used up the budget.
 */
START_TEST(test_cleaning_copies)
{
	size_t size = 16 << 10, count = 4 * MIB / size;
	unsigned hot = 0, cold = 0;

	open_member(4 * MIB, NC_POLICY_LRU);
	for (unsigned i = 0; i < count - 16; i++)
		insert(i, size, NC_KIND_APPENDED);
	/* One segment is left; every fourth unit is used. */
	ck_assert_uint_eq(member.used, 4 * MIB - SEGMENT);
	for (unsigned i = 0; i < count - 16; i += 4)
		ck_assert(live(unit[i], generation[i]));
	ck_assert_uint_eq(member.evictions, 0);
	insert(count - 16, size, NC_KIND_APPENDED);
	/* One was opened, and another one compacted into it: of 16 units 8 may be copied. */
	ck_assert_uint_eq(member.cleaned, 1);
	ck_assert_uint_eq(member.copied_units, 8);
	ck_assert_uint_eq(member.copied_bytes, 8 * size);
	ck_assert_uint_eq(member.evictions, 8);
	ck_assert_uint_eq(member.used, 4 * MIB - SEGMENT);
	for (unsigned i = 0; i < 16; i++) {
		if (!stands(i))
			continue;
		ck_assert_ptr_eq(unit[i]->store, member.appended);
		ck_assert(!writable(nc_unit_base(unit[i])));
		ck_assert(!writable(nc_unit_base(unit[i]) + size - 1));
		ck_assert_uint_eq(pattern_match(nc_unit_base(unit[i]), unit[i]->slot, 0, size),
				  size);
		if (i % 4)
			cold++;
		else
			hot++;
	}
	ck_assert_uint_eq(hot, 4);
	ck_assert_uint_eq(cold, 4);
	ck_assert_uint_eq(count_standing(16, count - 15), count - 31);
	nc_member_fini(&member);
}
END_TEST

/* A pinned unit is copied at any size, and a held one keeps its segment. */
START_TEST(test_cleaning_spares)
{
	size_t size = 16 << 10;
	struct nc_store *store;

	open_member(4 * MIB, NC_POLICY_LRU);
	for (unsigned i = 0; i < 15 * 16; i++)
		insert(i, size, NC_KIND_APPENDED);
	for (unsigned i = 0; i < 12; i++) {
		hold(i);
		ck_assert_int_eq(nc_member_set_priority(&member, unit[i], NC_PRIORITY_PINNED), 0);
		release(i);
	}
	hold(16);
	store = unit[16]->store;
	for (unsigned i = 15 * 16; i < 600; i++)
		insert(i, size, NC_KIND_APPENDED);
	ck_assert_uint_eq(count_standing(0, 16), 12);
	for (unsigned i = 0; i < 12; i++)
		ck_assert_uint_eq(pattern_match(nc_unit_base(unit[i]), unit[i]->slot, 0, size),
				  size);
	ck_assert_uint_eq(count_standing(16, 32), 16);
	ck_assert_ptr_eq(unit[16]->store, store);
	ck_assert_uint_eq(member.failures, 0);
	ck_assert_uint_le(member.used, member.budget);
	nc_member_fini(&member);
}
END_TEST

/* In the segment where the log grows, a pinned unit has no other place; nothing is evicted. */
START_TEST(test_newest_is_not_copied_into_itself)
{
	bool freed;

	open_member(MIB, NC_POLICY_LRU);
	for (unsigned i = 0; i < 8; i++)
		insert(i, 16 << 10, NC_KIND_APPENDED);
	hold(3);
	ck_assert_int_eq(nc_member_set_priority(&member, unit[3], NC_PRIORITY_PINNED), 0);
	release(3);
	pthread_mutex_lock(&member.growing);
	nc_pool_lock(&member);
	freed = nc_eviction_ahead(&member);
	nc_pool_unlock(&member);
	pthread_mutex_unlock(&member.growing);
	ck_assert(!freed);
	ck_assert_uint_eq(count_standing(0, 8), 8);
	ck_assert_uint_eq(member.copied_units, 0);
	/* With another segment to grow in, it can be evicted. */
	for (unsigned i = 8; i < 20; i++)
		insert(i, 16 << 10, NC_KIND_APPENDED);
	pthread_mutex_lock(&member.growing);
	nc_pool_lock(&member);
	freed = nc_eviction_ahead(&member);
	nc_pool_unlock(&member);
	pthread_mutex_unlock(&member.growing);
	ck_assert(freed);
	ck_assert(stands(3));
	ck_assert_ptr_eq(unit[3]->store, member.appended);
	nc_member_fini(&member);
}
END_TEST

/* Memory changes from one kind to another on demand. */
START_TEST(test_kinds_change)
{
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED, NC_KIND_SEALED};

	open_member(4 * MIB, NC_POLICY_DEFAULT);
	for (unsigned turn = 0; turn < 6; turn++) {
		for (unsigned i = 0; i < 400; i++) {
			insert(i, 20 << 10, kinds[turn % 3]);
			ck_assert_uint_le(member.used, member.budget);
		}
		/* The newest are there, and use most of it. */
		for (unsigned i = 390; i < 400; i++)
			ck_assert(stands(i));
		ck_assert_uint_ge(count_standing(0, 400), 4 * MIB / (20 << 10) / 2);
	}
	ck_assert_uint_eq(member.failures, 0);
	nc_member_fini(&member);
}
END_TEST

/* The last slot: a unit is evicted for it. */
START_TEST(test_slots)
{
	struct nc_unit *more;

	open_member(4 * MIB, NC_POLICY_SIEVE);
	member.units.limit = 10;
	for (unsigned i = 0; i < 10; i++)
		insert(i, 100, NC_KIND_RECYCLED);
	ck_assert_int_eq(try_alloc(100, NC_KIND_RECYCLED, &more), 0);
	ck_assert_uint_eq(member.evictions, 1);
	ck_assert_int_eq(nc_member_insert(&member, more, NULL), 0);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(nc_member_hold(&member, nc_units_at(&member.units, i),
						nc_word_generation(nc_unit_word(
							nc_units_at(&member.units, i))),
						false),
				 0);
	ck_assert_int_eq(try_alloc(100, NC_KIND_RECYCLED, &more), -ENOMEM);
	ck_assert_int_eq(try_alloc(100, NC_KIND_SEALED, &more), -ENOMEM);
	ck_assert_int_eq(try_alloc(SEGMENT, NC_KIND_APPENDED, &more), -ENOMEM);
	ck_assert_uint_eq(member.failures_table, 3);
	ck_assert_uint_eq(member.used, SEGMENT);
	nc_member_fini(&member);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_window);
	tcase_add_test(tcase, test_window_takes_the_fewest);
	tcase_add_test(tcase, test_no_window);
	tcase_add_test(tcase, test_half_the_room);
	tcase_add_test(tcase, test_pinned_alone);
	tcase_add_test(tcase, test_cleaning_copies);
	tcase_add_test(tcase, test_cleaning_spares);
	tcase_add_test(tcase, test_newest_is_not_copied_into_itself);
	tcase_add_test(tcase, test_kinds_change);
	tcase_add_test(tcase, test_slots);
}

RUN_SUITE("eviction", fill)
