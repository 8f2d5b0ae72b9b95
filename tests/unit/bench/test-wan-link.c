/* SPDX-License-Identifier: MIT */
/*
 * test-wan-link.c - unit tests of the model of a wide-area link (bench/wan-link.c),
 * with artificial times.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <wan-link.h>

#include "suite.h"

#define MS UINT64_C(1000000)

static struct wan_link wire;

static void begin(struct wan_settings settings)
{
	if (!settings.room)
		settings.room = 1 << 20;
	ck_assert_int_eq(wan_link_init(&wire, &settings), 0);
	ck_assert_uint_eq(wan_link_due(&wire), UINT64_MAX);
}

/* A packet that contains its number. */
static void put(uint64_t now, uint32_t number, size_t length)
{
	char *room = wan_link_room(&wire);

	pattern_fill(room, number, 0, length);
	wan_link_put(&wire, now, length);
}

static void expect_first(uint64_t now, uint32_t number, size_t length)
{
	size_t got = 0;
	const void *packet = wan_link_first(&wire, now, &got);

	expect(packet);
	expect(got == length);
	expect(pattern_match(packet, number, 0, length) == length);
	wan_link_drop(&wire);
}

static bool nothing_at(uint64_t now)
{
	size_t length;

	return !wan_link_first(&wire, now, &length);
}

START_TEST(test_delay)
{
	begin((struct wan_settings){.delay = 20 * MS});
	put(100 * MS, 1, 60);
	put(101 * MS, 2, 1500);
	put(101 * MS, 3, 1);
	ck_assert_uint_eq(wan_link_due(&wire), 120 * MS);
	ck_assert(nothing_at(120 * MS - 1));
	expect_first(120 * MS, 1, 60);
	ck_assert(nothing_at(120 * MS));
	ck_assert_uint_eq(wan_link_due(&wire), 121 * MS);
	expect_first(500 * MS, 2, 1500);
	expect_first(500 * MS, 3, 1);
	ck_assert(nothing_at(UINT64_MAX));
	ck_assert_uint_eq(wire.counts.packets, 3);
	ck_assert_uint_eq(wire.counts.delivered, 3);
	ck_assert_uint_eq(wire.counts.bytes, 1561);
	ck_assert_uint_eq(wire.counts.delivered_bytes, 1561);
	wan_link_fini(&wire);
}
END_TEST

static size_t length_of(uint32_t number)
{
	uint64_t mixed = number + 1;

	random_next(&mixed);
	return 1 + random_next(&mixed) % WAN_PACKET_MAX;
}

/* Of every length, many times around the ring, sometimes as many as fit. */
START_TEST(test_ring)
{
	const uint32_t count = scaled(200000);
	uint64_t random = 7;
	uint32_t out = 0, in = 0;

	begin((struct wan_settings){.delay = MS, .room = 50000});
	while (out < count) {
		uint64_t full = wire.counts.overflowed;

		while (random_next(&random) % 20 && wire.counts.overflowed == full) {
			put(in, in, length_of(in));
			in += wire.counts.overflowed == full;
		}
		while (random_next(&random) % 20 && out < in) {
			expect_first(UINT64_MAX - 1, out, length_of(out));
			out++;
		}
	}
	ck_assert_uint_gt(wire.counts.overflowed, 0);
	wan_link_fini(&wire);
}
END_TEST

START_TEST(test_loss)
{
	const uint32_t count = 200000;
	uint32_t next = 0;

	begin((struct wan_settings){.loss = 0.02, .seed = 42});
	for (uint32_t i = 0; i < count; i++) {
		put(i, i, 8);
		if (!nothing_at(i)) {
			expect_first(i, i, 8);
			next++;
		}
	}
	ck_assert_uint_eq(wire.counts.lost + next, count);
	ck_assert_uint_eq(wire.counts.delivered, next);
	/* Five standard deviations. */
	ck_assert_uint_ge(wire.counts.lost, 4000 - 5 * 63);
	ck_assert_uint_le(wire.counts.lost, 4000 + 5 * 63);
	wan_link_fini(&wire);
}
END_TEST

/* Which of 64 packets arrive. */
static uint64_t survivors(uint64_t seed)
{
	uint64_t mask = 0;

	begin((struct wan_settings){.loss = 0.5, .seed = seed});
	for (uint32_t i = 0; i < 64; i++) {
		put(i, i, 8);
		if (!nothing_at(i)) {
			expect_first(i, i, 8);
			mask |= UINT64_C(1) << i;
		}
	}
	wan_link_fini(&wire);
	return mask;
}

START_TEST(test_seed)
{
	ck_assert_uint_eq(survivors(1), survivors(1));
	ck_assert_uint_ne(survivors(1), survivors(2));
	ck_assert_uint_ne(survivors(2), survivors(3));
}
END_TEST

START_TEST(test_all_or_none_lost)
{
	begin((struct wan_settings){.loss = 1});
	for (uint32_t i = 0; i < 1000; i++)
		put(i, i, 8);
	ck_assert_uint_eq(wire.counts.lost, 1000);
	ck_assert(nothing_at(UINT64_MAX));
	wan_link_fini(&wire);
	begin((struct wan_settings){.loss = 0});
	for (uint32_t i = 0; i < 1000; i++)
		put(i, i, 8);
	ck_assert_uint_eq(wire.counts.lost, 0);
	wan_link_fini(&wire);
}
END_TEST

/* 1,250 bytes at 10 Mbit/s are a millisecond. */
START_TEST(test_rate)
{
	begin((struct wan_settings){.rate = 10000000, .queue = 100000, .delay = 5 * MS});
	for (uint32_t i = 0; i < 4; i++)
		put(100 * MS, i, 1250);
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert(nothing_at((106 + i) * MS - 1));
		expect_first((106 + i) * MS, i, 1250);
	}
	/* The link was idle for a while, which saves no capacity for later. */
	put(200 * MS, 9, 1250);
	put(200 * MS, 10, 625);
	ck_assert_uint_eq(wan_link_due(&wire), 206 * MS);
	expect_first(206 * MS, 9, 1250);
	ck_assert_uint_eq(wan_link_due(&wire), 206 * MS + MS / 2);
	wan_link_fini(&wire);
}
END_TEST

/* Packets beyond the queue are dropped; a later packet finds it shorter. */
START_TEST(test_queue)
{
	uint32_t out = 0;

	begin((struct wan_settings){.rate = 10000000, .queue = 10 * 1250});
	for (uint32_t i = 0; i < 100; i++)
		put(MS, i, 1250);
	/* Ten before it, and the packet itself. */
	ck_assert_uint_eq(wire.counts.overflowed, 100 - 11);
	for (uint32_t i = 0; i < 11; i++)
		expect_first(13 * MS, i, 1250);
	ck_assert(nothing_at(UINT64_MAX));
	/* A second at twice the rate: half of it passes, and the queue. */
	for (uint32_t i = 0; i < 2000; i++) {
		put(100 * MS + i * MS / 2, i, 1250);
		while (!nothing_at(100 * MS + i * MS / 2)) {
			wan_link_drop(&wire);
			out++;
		}
	}
	ck_assert_uint_ge(out, 998);
	ck_assert_uint_le(out, 1000);
	ck_assert_uint_eq(wire.counts.packets, wire.counts.overflowed + wire.counts.delivered + 11);
	wan_link_fini(&wire);
}
END_TEST

START_TEST(test_full_memory)
{
	uint64_t kept;

	begin((struct wan_settings){.delay = MS, .room = 100000});
	for (uint32_t i = 0; i < 1000; i++)
		put(i, i, 1500);
	kept = 1000 - wire.counts.overflowed;
	ck_assert_uint_ge(kept, 60);
	ck_assert_uint_lt(kept, 67);
	for (uint32_t i = 0; i < kept; i++)
		expect_first(2 * MS, i, 1500);
	ck_assert(nothing_at(UINT64_MAX));
	put(3 * MS, 1, 1500);
	expect_first(4 * MS, 1, 1500);
	wan_link_fini(&wire);
}
END_TEST

START_TEST(test_duplicates)
{
	begin((struct wan_settings){.delay = MS, .duplicate = 1});
	put(1 * MS, 1, 100);
	put(2 * MS, 2, 2000);
	expect_first(2 * MS, 1, 100);
	expect_first(2 * MS, 1, 100);
	ck_assert(nothing_at(2 * MS));
	expect_first(3 * MS, 2, 2000);
	expect_first(3 * MS, 2, 2000);
	ck_assert(nothing_at(UINT64_MAX));
	ck_assert_uint_eq(wire.counts.packets, 2);
	ck_assert_uint_eq(wire.counts.duplicated, 2);
	ck_assert_uint_eq(wire.counts.delivered, 4);
	wan_link_fini(&wire);
}
END_TEST

/* The share of late packets, each within its limit; the others keep their order. */
START_TEST(test_late)
{
	bool seen[1000] = {false};
	uint32_t last = 0, overtaken = 0;

	begin((struct wan_settings){.delay = 5 * MS, .reorder = 0.2, .late = 10 * MS});
	for (uint32_t i = 0, out = 0; out < 1000;) {
		uint64_t now = wan_link_due(&wire);
		const char *packet;
		size_t length;
		uint32_t number;

		if (i < 1000 && i * MS < now) {
			memcpy(wan_link_room(&wire), &i, sizeof(i));
			wan_link_put(&wire, i * MS, sizeof(i));
			i++;
			continue;
		}
		packet = wan_link_first(&wire, now, &length);
		expect(packet && length == sizeof(number));
		memcpy(&number, packet, sizeof(number));
		expect(!seen[number]);
		seen[number] = true;
		expect(now >= (number + 5) * MS && now <= (number + 15) * MS);
		overtaken += number < last;
		last = number > last ? number : last;
		wan_link_drop(&wire);
		out++;
	}
	ck_assert(nothing_at(UINT64_MAX));
	ck_assert_uint_ge(wire.counts.late, 150);
	ck_assert_uint_le(wire.counts.late, 250);
	ck_assert_uint_ge(overtaken, 100);
	ck_assert_uint_le(overtaken, wire.counts.late);
	wan_link_fini(&wire);
}
END_TEST

/* More than can be late at once are not: nothing is lost. */
START_TEST(test_all_late)
{
	begin((struct wan_settings){.reorder = 1, .late = 10 * MS, .seed = 3});
	for (uint32_t i = 0; i < 3 * WAN_LATE_MAX; i++)
		put(MS, i, 1500);
	ck_assert_uint_eq(wire.counts.late, WAN_LATE_MAX);
	for (uint32_t i = 0; i < 3 * WAN_LATE_MAX; i++) {
		ck_assert(!nothing_at(11 * MS));
		wan_link_drop(&wire);
	}
	ck_assert_uint_eq(wan_link_due(&wire), UINT64_MAX);
	ck_assert_uint_eq(wire.counts.delivered_bytes, 3 * WAN_LATE_MAX * 1500);
	wan_link_fini(&wire);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_delay);
	tcase_add_test(tcase, test_ring);
	tcase_add_test(tcase, test_loss);
	tcase_add_test(tcase, test_seed);
	tcase_add_test(tcase, test_all_or_none_lost);
	tcase_add_test(tcase, test_rate);
	tcase_add_test(tcase, test_queue);
	tcase_add_test(tcase, test_full_memory);
	tcase_add_test(tcase, test_duplicates);
	tcase_add_test(tcase, test_late);
	tcase_add_test(tcase, test_all_late);
}

RUN_SUITE("wan-link", fill)
