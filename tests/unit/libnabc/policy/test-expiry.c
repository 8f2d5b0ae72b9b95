/* SPDX-License-Identifier: MIT */
/*
 * test-expiry.c - unit tests of expiry.c: ticks that wrap, the order of the
 * heap against a plain list, entries that are stale.  Single-threaded.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "policy/expiry.h"

#include "suite.h"

#define TICK (UINT64_C(1) << NC_TICK_SHIFT)
#define ENTRIES 500u

static uint32_t wanted[ENTRIES]; /* tick by slot; 0: stale */

static bool valid(const struct nc_expiring *entry, void *context)
{
	(void)context;
	return entry->generation == 1 && wanted[entry->slot] == entry->tick;
}

START_TEST(test_ticks)
{
	ck_assert_uint_eq(nc_tick_after(1), 1);
	ck_assert_uint_eq(nc_tick_after(TICK), 1);
	ck_assert_uint_eq(nc_tick_after(TICK + 1), 2);
	/* 0 means never, so no time is 0. */
	ck_assert_uint_eq(nc_tick_after(0), 1);
	ck_assert_uint_eq(nc_tick_after(TICK << 32), 1);
	/* Never early, at most a tick late. */
	for (uint64_t ns = 12345; ns < 100 * TICK; ns += 1234567) {
		uint32_t tick = nc_tick_after(ns);

		expect(!nc_tick_passed(tick, ns - 12345) || tick * TICK <= ns - 12345);
		expect(tick * TICK >= ns && tick * TICK < ns + TICK);
		expect(nc_tick_passed(tick, tick * TICK));
		expect(!nc_tick_passed(tick, tick * TICK - 1));
	}
	/* Across the end of 32 bits. */
	ck_assert(nc_tick_passed(UINT32_MAX, (TICK << 32) + 5 * TICK));
	ck_assert(!nc_tick_passed(5, (TICK << 32) - 1));
	ck_assert(nc_tick_passed(5, (TICK << 32) + 5 * TICK));
}
END_TEST

/* Every entry expires once, in order of time, whatever became stale meanwhile. */
static void check_random(uint64_t seed, uint64_t start)
{
	struct nc_expiry expiry = {0};
	uint64_t state = seed, now = start;
	uint32_t added[ENTRIES] = {0};
	unsigned left = 0;

	for (unsigned step = 0; step < scaled(20000); step++) {
		uint32_t slot = (uint32_t)(random_next(&state) % ENTRIES);
		struct nc_expiring entry = {.slot = slot, .generation = 1};
		uint32_t last = 0;

		if (random_next(&state) % 4 == 0) {
			if (wanted[slot]) {
				wanted[slot] = 0;
				left--;
				nc_expiry_forget(&expiry, valid, NULL);
			}
		} else {
			bool stale = wanted[slot] != 0;

			entry.tick = nc_tick_after(now + random_next(&state) % (1000 * TICK));
			if (entry.tick == added[slot])
				continue;
			ck_assert_int_eq(nc_expiry_add(&expiry, &entry), 0);
			left += !stale;
			wanted[slot] = added[slot] = entry.tick;
			if (stale)
				nc_expiry_forget(&expiry, valid, NULL);
		}
		/* Stale entries are never the majority for long. */
		expect(expiry.count <= 2 * left + 130);
		now += random_next(&state) % (3 * TICK);
		while (nc_expiry_pop(&expiry, now, valid, NULL, &entry)) {
			expect(nc_tick_passed(entry.tick, now));
			expect(!last || (int32_t)(entry.tick - last) >= 0);
			expect(wanted[entry.slot] == entry.tick);
			last = entry.tick;
			wanted[entry.slot] = 0;
			left--;
		}
		for (unsigned i = 0; i < ENTRIES; i++)
			expect(!wanted[i] || !nc_tick_passed(wanted[i], now));
		if (expiry.count)
			expect(nc_expiry_next(&expiry, now) > now);
		else
			expect(nc_expiry_next(&expiry, now) == 0);
	}
	memset(wanted, 0, sizeof(wanted));
	nc_expiry_fini(&expiry);
}

START_TEST(test_random)
{
	check_random(1, 0);
	check_random(2, (TICK << 32) - 300 * TICK);
	check_random(3, (TICK << 31) - 300 * TICK);
}
END_TEST

/* What is reserved can be added later, whatever was added or dropped meanwhile. */
START_TEST(test_reserved)
{
	const struct nc_expiring entry = {.tick = 1};
	struct nc_expiry expiry = {0};

	for (unsigned i = 0; i < ENTRIES; i++) {
		ck_assert_int_eq(nc_expiry_reserve(&expiry), 0);
		ck_assert_uint_ge(expiry.room, expiry.count + expiry.reserved);
		ck_assert_int_eq(nc_expiry_add(&expiry, &entry), 0);
		ck_assert_uint_ge(expiry.room, expiry.count + expiry.reserved);
	}
	for (unsigned i = 0; i < ENTRIES; i++) {
		const struct nc_expiring *heap = expiry.heap;

		nc_expiry_unreserve(&expiry);
		ck_assert_int_eq(nc_expiry_add(&expiry, &entry), 0);
		ck_assert_ptr_eq(expiry.heap, heap);
	}
	ck_assert_uint_eq(expiry.count, 2 * ENTRIES);
	nc_expiry_fini(&expiry);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_reserved);
	tcase_add_test(tcase, test_ticks);
	tcase_add_test(tcase, test_random);
}

RUN_SUITE("expiry", fill)
