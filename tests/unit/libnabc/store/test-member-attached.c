/* SPDX-License-Identifier: MIT */
/*
 * test-member-attached.c - unit tests of member.c: an attached process, and what the
 * owner writes into its table.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <nabc.h>

#include "base/extent.h"
#include "os/segment.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#include "member-fixture.h"
#include "suite.h"

#define SLOTS 64u

static void join(size_t pages, unsigned generation)
{
	struct nc_segment segment;

	ck_assert_int_eq(nc_segment_create(&segment, pages * PAGE, false, true), 0);
	ck_assert_int_eq(nc_member_init_attached(&member, 5, &segment, PAGE, SLOTS, generation), 0);
}

static void owner_writes(const struct nc_unit *unit, unsigned generation, unsigned state)
{
	atomic_store(&member.shared[unit->slot].word, nc_shared_word(generation, state));
}

static uint64_t shared(const struct nc_unit *unit)
{
	return atomic_load(&member.shared[unit->slot].word);
}

START_TEST(test_attached_publishes)
{
	struct nc_unit_shared *entry;
	unsigned generation;
	struct nc_unit *unit;

	join(32, 50);
	unit = must_fill(5000, NC_KIND_RECYCLED);
	entry = &member.shared[unit->slot];
	ck_assert_uint_eq(atomic_load(&entry->word), 0);
	ck_assert_int_eq(nc_member_insert(&member, unit, NULL), 0);
	generation = nc_word_generation(nc_unit_word(unit));
	ck_assert_uint_eq(generation, 50);
	ck_assert_uint_eq(shared(unit), nc_shared_word(50, NC_SHARED_LIVE));
	ck_assert_uint_eq(atomic_load(&entry->at), PAGE);
	ck_assert_uint_eq(atomic_load(&entry->size), 5000);
	ck_assert_uint_eq(atomic_load(&entry->fraglen), PAGE);
	/* Unused: destroying takes effect at once. */
	ck_assert_int_eq(nc_member_destroy(&member, unit, generation), 0);
	ck_assert_uint_eq(shared(unit), nc_shared_word(50, NC_SHARED_FREE));
	ck_assert_uint_eq(member.stores->extent.used, 0);
	nc_member_fini(&member);
}
END_TEST

/* Destroyed while the owner uses it: the memory waits for the owner's release. */
START_TEST(test_attached_busy)
{
	unsigned generation;
	struct nc_unit *unit, *other;

	join(4, 1);
	unit = must_insert(2 * PAGE, NC_KIND_RECYCLED, &generation);
	owner_writes(unit, generation, NC_SHARED_BUSY);
	ck_assert_int_eq(nc_member_destroy(&member, unit, generation), 0);
	ck_assert_uint_eq(shared(unit), nc_shared_word(generation, NC_SHARED_UNLINKED));
	ck_assert(!live(unit, generation));
	ck_assert_int_eq(nc_member_hold(&member, unit, generation, true), -ENOENT);
	ck_assert_int_eq(try_alloc(2 * PAGE, NC_KIND_RECYCLED, &other), -ENOMEM);
	ck_assert_uint_eq(pattern_match(nc_unit_base(unit), unit->slot, 0, 2 * PAGE), 2 * PAGE);
	owner_writes(unit, generation, NC_SHARED_DROPPED);
	ck_assert_int_eq(try_alloc(2 * PAGE, NC_KIND_RECYCLED, &other), 0);
	nc_member_fini(&member);
}
END_TEST

/* The owner drops it: reclaimed when memory is needed, not before its holder releases it. */
START_TEST(test_attached_dropped)
{
	unsigned generation;
	struct nc_unit *unit, *other;

	join(4, 1);
	unit = must_insert(3 * PAGE, NC_KIND_RECYCLED, &generation);
	owner_writes(unit, generation, NC_SHARED_DROPPED);
	unit = must_insert(3 * PAGE, NC_KIND_RECYCLED, &generation);
	ck_assert_uint_eq(unit->slot, 0);
	ck_assert_uint_eq(generation, 2);
	ck_assert_int_eq(nc_member_hold(&member, unit, generation, false), 0);
	owner_writes(unit, generation, NC_SHARED_DROPPED);
	ck_assert_int_eq(try_alloc(PAGE, NC_KIND_RECYCLED, &other), -ENOMEM);
	ck_assert_int_eq(nc_member_hold(&member, unit, generation, false), -ENOENT);
	ck_assert_int_eq(nc_member_release(&member, unit, generation), 0);
	ck_assert_int_eq(try_alloc(3 * PAGE, NC_KIND_RECYCLED, &other), 0);
	nc_member_fini(&member);
}
END_TEST

/* A word of an earlier generation, or an invalid one, reclaims nothing. */
START_TEST(test_attached_stale_word)
{
	unsigned generation;
	struct nc_unit *unit, *other;

	join(4, 10);
	unit = must_insert(3 * PAGE, NC_KIND_RECYCLED, &generation);
	owner_writes(unit, generation - 1, NC_SHARED_DROPPED);
	ck_assert_int_eq(try_alloc(PAGE, NC_KIND_RECYCLED, &other), -ENOMEM);
	owner_writes(unit, generation + 1, NC_SHARED_DROPPED);
	ck_assert_int_eq(try_alloc(PAGE, NC_KIND_RECYCLED, &other), -ENOMEM);
	owner_writes(unit, generation, 15);
	ck_assert_int_eq(try_alloc(PAGE, NC_KIND_RECYCLED, &other), -ENOMEM);
	ck_assert(live(unit, generation));
	nc_member_fini(&member);
}
END_TEST

/*
 * The oldest units stay forever, and memory is sufficient: slots behind them that the
 * owner dropped must be found all the same.
 */
START_TEST(test_attached_slots_behind_kept_units)
{
	unsigned generation;

	join(1024, 1);
	for (unsigned i = 0; i < 40; i++)
		(void)must_insert(1, NC_KIND_RECYCLED, &generation);
	for (unsigned i = 0; i < 500; i++) {
		struct nc_unit *unit = must_insert(1, NC_KIND_RECYCLED, &generation);

		owner_writes(unit, generation, NC_SHARED_DROPPED);
	}
	nc_member_fini(&member);
}
END_TEST

START_TEST(test_attached_table_full)
{
	struct nc_unit *unit[SLOTS], *more;
	unsigned generation[SLOTS];
	uint32_t used;

	join(1024, 1);
	for (unsigned i = 0; i < SLOTS; i++)
		unit[i] = must_insert(1, NC_KIND_RECYCLED, &generation[i]);
	used = member.stores->extent.used;
	ck_assert_int_eq(try_alloc(1, NC_KIND_RECYCLED, &more), -ENOMEM);
	ck_assert_uint_eq(member.stores->extent.used, used);
	ck_assert_int_eq(nc_member_destroy(&member, unit[30], generation[30]), 0);
	ck_assert_int_eq(try_alloc(1, NC_KIND_RECYCLED, &more), 0);
	nc_member_fini(&member);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_attached_publishes);
	tcase_add_test(tcase, test_attached_busy);
	tcase_add_test(tcase, test_attached_dropped);
	tcase_add_test(tcase, test_attached_stale_word);
	tcase_add_test(tcase, test_attached_slots_behind_kept_units);
	tcase_add_test(tcase, test_attached_table_full);
}

RUN_SUITE("member-attached", fill)
