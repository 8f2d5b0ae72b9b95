/* SPDX-License-Identifier: MIT */
/*
 * test-store.c - unit tests of store.c: memory of both kinds, the list of a store's
 * units, what is writable when.  Owns its stores; single-threaded.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <nabc.h>

#include "base/extent.h"
#include "base/fragment.h"
#include "os/segment.h"
#include "store/store.h"
#include "store/unit.h"

#include "suite.h"

#define PAGE ((size_t)4096)

static struct nc_units units;

static struct nc_unit *enter(struct nc_store *store, size_t size, int64_t expected)
{
	struct nc_unit *unit;
	struct nc_layout layout;
	int64_t at;

	ck_assert_int_eq(nc_layout_init(&layout, size, 0), 0);
	at = nc_store_take(store, layout.extent);
	ck_assert_int_eq(at, expected);
	if (at < 0)
		return NULL;
	unit = nc_units_take(&units);
	ck_assert_ptr_nonnull(unit);
	unit->layout = layout;
	nc_store_enter(store, &units, unit, (uint64_t)at);
	return unit;
}

static void leave(struct nc_store *store, struct nc_unit *unit)
{
	nc_store_leave(store, &units, unit);
	nc_units_give(&units, unit);
}

/* The list must be the same from the oldest to the newest and back. */
static void check_list(const struct nc_store *store, struct nc_unit *const *expected,
		       uint32_t count)
{
	uint32_t slot = store->oldest, at = 0;

	ck_assert_uint_eq(store->count, count);
	for (; slot != NC_UNIT_NONE; slot = nc_units_at(&units, slot)->previous) {
		ck_assert_uint_lt(at, count);
		ck_assert_ptr_eq(nc_units_at(&units, slot), expected[at++]);
	}
	ck_assert_uint_eq(at, count);
	for (slot = store->newest; slot != NC_UNIT_NONE; slot = nc_units_at(&units, slot)->next) {
		ck_assert_uint_gt(at, 0);
		ck_assert_ptr_eq(nc_units_at(&units, slot), expected[--at]);
	}
	ck_assert_uint_eq(at, 0);
}

START_TEST(test_recycled)
{
	struct nc_unit *unit[4], *again;
	struct nc_store *store;
	int error;

	ck_assert_int_eq(nc_units_init(&units, 100, 1), 0);
	store = nc_store_create(NC_KIND_RECYCLED, 16 * PAGE, false, false, &error);
	ck_assert_ptr_nonnull(store);
	unit[0] = enter(store, 1, 0);
	unit[1] = enter(store, 4 * PAGE, (int64_t)PAGE);
	unit[2] = enter(store, 5000, 5 * (int64_t)PAGE);
	unit[3] = enter(store, 9 * PAGE, 7 * (int64_t)PAGE);
	ck_assert_ptr_null(enter(store, 1, -ENOMEM));
	ck_assert_ptr_eq(nc_unit_base(unit[1]), store->segment.base + PAGE);
	check_list(store, unit, 4);
	leave(store, unit[1]);
	check_list(store, (struct nc_unit *[]){unit[0], unit[2], unit[3]}, 3);
	ck_assert_ptr_null(enter(store, 4 * PAGE + 1, -ENOMEM));
	/* The same memory again, and writable as before. */
	again = enter(store, 3 * PAGE, (int64_t)PAGE);
	ck_assert_int_eq(nc_store_protect(store, again, false), 0);
	ck_assert(writable(nc_unit_base(again)));
	check_list(store, (struct nc_unit *[]){unit[0], unit[2], unit[3], again}, 4);
	leave(store, unit[0]);
	leave(store, again);
	leave(store, unit[2]);
	leave(store, unit[3]);
	check_list(store, NULL, 0);
	ck_assert_uint_eq(store->extent.used, 0);
	nc_store_close(store);
	nc_units_fini(&units);
}
END_TEST

START_TEST(test_appended)
{
	struct nc_unit *unit[3];
	struct nc_store *store;
	int error;

	ck_assert_int_eq(nc_units_init(&units, 100, 1), 0);
	store = nc_store_create(NC_KIND_APPENDED, 8 * PAGE, false, false, &error);
	ck_assert_ptr_nonnull(store);
	unit[0] = enter(store, 2 * PAGE, 0);
	unit[1] = enter(store, 100, 2 * (int64_t)PAGE);
	unit[2] = enter(store, 4 * PAGE, 3 * (int64_t)PAGE);
	ck_assert_uint_eq(store->filling, 3);
	check_list(store, unit, 3);
	/* An inserted unit is read-only, its neighbours are not. */
	ck_assert_int_eq(nc_store_protect(store, unit[1], false), 0);
	ck_assert(!nc_store_filled(store));
	ck_assert_uint_eq(store->filling, 2);
	ck_assert(writable(nc_unit_base(unit[0]) + 2 * PAGE - 1));
	ck_assert(!writable(nc_unit_base(unit[1])));
	ck_assert(!writable(nc_unit_base(unit[1]) + PAGE - 1));
	ck_assert(writable(nc_unit_base(unit[2])));
	/* Written once: a place that was left is not used again. */
	leave(store, unit[1]);
	ck_assert_ptr_null(enter(store, PAGE + 1, -ENOMEM));
	unit[1] = enter(store, PAGE, 7 * (int64_t)PAGE);
	ck_assert_ptr_null(enter(store, 1, -ENOMEM));
	leave(store, unit[0]);
	leave(store, unit[1]);
	leave(store, unit[2]);
	ck_assert_uint_eq(store->count, 0);
	nc_store_close(store);
	nc_units_fini(&units);
}
END_TEST

/* The place of a unit that was never visible may be used again. */
START_TEST(test_retract)
{
	struct nc_unit *first, *second;
	struct nc_store *store;
	int error;

	ck_assert_int_eq(nc_units_init(&units, 100, 1), 0);
	store = nc_store_create(NC_KIND_APPENDED, 8 * PAGE, false, false, &error);
	ck_assert_ptr_nonnull(store);
	first = enter(store, 2 * PAGE, 0);
	second = enter(store, 3 * PAGE, 2 * (int64_t)PAGE);
	nc_store_retract(store, first);
	leave(store, first);
	ck_assert_uint_eq(store->filling, 1);
	ck_assert_uint_eq(store->appended, 5 * PAGE);
	nc_store_retract(store, second);
	leave(store, second);
	ck_assert_uint_eq(store->appended, 2 * PAGE);
	ck_assert_uint_eq(store->filling, 0);
	first = enter(store, 6 * PAGE, 0);
	second = enter(store, 2 * PAGE, 6 * (int64_t)PAGE);
	nc_store_retract(store, first);
	leave(store, first);
	first = enter(store, PAGE, 0);
	/* But not that of one that was. */
	(void)nc_store_filled(store);
	leave(store, first);
	first = enter(store, PAGE, (int64_t)PAGE);
	leave(store, first);
	leave(store, second);
	nc_store_close(store);
	nc_units_fini(&units);
}
END_TEST

START_TEST(test_refuses)
{
	struct nc_store *store;
	int error;

	store = nc_store_create(NC_KIND_RECYCLED, 4 * PAGE, false, false, &error);
	ck_assert_ptr_nonnull(store);
	ck_assert_int_eq(nc_store_take(store, 5 * PAGE), -ENOMEM);
	ck_assert_int_eq(nc_store_take(store, SIZE_MAX / PAGE * PAGE), -ENOMEM);
	ck_assert_int_eq(nc_store_take(store, ((size_t)UINT32_MAX + 2) * PAGE), -ENOMEM);
	store->full = true;
	ck_assert_int_eq(nc_store_take(store, PAGE), -ENOMEM);
	store->full = false;
	store->busy = true;
	ck_assert_int_eq(nc_store_take(store, PAGE), -ENOMEM);
	store->busy = false;
	ck_assert_int_eq(nc_store_take(store, PAGE), 0);
	nc_store_close(store);
	error = 0;
	ck_assert_ptr_null(
		nc_store_create(NC_KIND_APPENDED, SIZE_MAX / 2 / PAGE * PAGE, true, false, &error));
	ck_assert_int_lt(error, 0);
}
END_TEST

START_TEST(test_over)
{
	struct nc_segment segment;
	struct nc_store *store;
	int error;

	ck_assert_int_eq(nc_segment_create(&segment, 8 * PAGE, false, true), 0);
	store = nc_store_over(&segment, 3 * PAGE, &error);
	ck_assert_ptr_nonnull(store);
	ck_assert_int_eq(store->kind, NC_KIND_RECYCLED);
	ck_assert_int_eq(nc_store_take(store, 6 * PAGE), -ENOMEM);
	ck_assert_int_eq(nc_store_take(store, 2 * PAGE), 3 * PAGE);
	ck_assert_int_eq(nc_store_take(store, 3 * PAGE), 5 * PAGE);
	ck_assert_int_eq(nc_store_take(store, PAGE), -ENOMEM);
	nc_store_close(store);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_recycled);
	tcase_add_test(tcase, test_appended);
	tcase_add_test(tcase, test_retract);
	tcase_add_test(tcase, test_refuses);
	tcase_add_test(tcase, test_over);
}

RUN_SUITE("store", fill)
