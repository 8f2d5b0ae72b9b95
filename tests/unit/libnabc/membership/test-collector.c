/* SPDX-License-Identifier: MIT */
/*
 * test-collector.c - unit tests of collector.c and maintenance.c: due work is
 * announced and done by the loop of the caller, other work costs nothing.  Owns a
 * cache.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <nabc.h>

#include "collector-fixture.h"
#include "nabc-fixture.h"
#include "suite.h"
#include "unit-holds.h"

static void dispatch_all(void)
{
	while (readable(NC_cache_fd(cache)))
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
}

static bool named(size_t id)
{
	if (hold_id(NULL, id) < 0)
		return false;
	ck_assert_int_eq(release_id(NULL, id), 0);
	return true;
}

/* Nothing is due: the descriptor is not readable, whatever was done before. */
START_TEST(test_quiet)
{
	size_t ids[64];

	open_with((struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB,
								 .flags = NC_CACHE_NO_THREAD));
	dispatch_all();
	for (unsigned i = 0; i < 64; i++)
		ids[i] =
			insert_kind(i, 4096 + i * 700, i % 3 ? NC_KIND_APPENDED : NC_KIND_RECYCLED);
	for (unsigned i = 0; i < 64; i += 2)
		ck_assert_int_eq(NC_destroy(NULL, ids[i]), 0);
	ck_assert(!readable(NC_cache_fd(cache)));
	close_cache();
}
END_TEST

/*
 * Above the high watermark the descriptor is readable, and units are evicted down to
 * the low one.
 */
START_TEST(test_watermarks)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB, .high_water = 75, .low_water = 50,
				      .flags = NC_CACHE_NO_THREAD);
	struct NC_cache_stat stat;
	size_t ids[48];

	open_with(options);
	/* Nothing happens up to three quarters. */
	for (unsigned i = 0; i < 48; i++)
		ids[i] = insert_kind(i, 128 << 10, NC_KIND_APPENDED);
	ck_assert_uint_eq(stat_now().used, 6 * MIB);
	ck_assert(!readable(NC_cache_fd(cache)));
	(void)insert_kind(99, 1000, NC_KIND_APPENDED);
	ck_assert(readable(NC_cache_fd(cache)));
	ck_assert_uint_eq(stat_now().evictions, 0);
	dispatch_all();
	stat = stat_now();
	ck_assert_uint_le(stat.used, 4 * MIB);
	ck_assert_uint_ge(stat.used, 4 * MIB - (512 << 10));
	ck_assert_uint_gt(stat.cleaned, 0);
	ck_assert_uint_gt(stat.evictions, 0);
	for (unsigned i = 0; i < 48; i++)
		if (named(ids[i]))
			check_bytes(ids[i], i, 128 << 10);
	close_cache();
}
END_TEST

/* At most one empty segment is kept for new units. */
START_TEST(test_empty_segments)
{
	size_t ids[300];

	open_with((struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB,
								 .flags = NC_CACHE_NO_THREAD));
	for (unsigned i = 0; i < 300; i++)
		ids[i] = insert_kind(i, 10000, NC_KIND_RECYCLED);
	ck_assert_uint_ge(stat_now().used, 3 * MIB);
	for (unsigned i = 0; i < 300; i++)
		ck_assert_int_eq(NC_destroy(NULL, ids[i]), 0);
	dispatch_all();
	ck_assert_uint_eq(stat_now().used, 256 << 10);
	close_cache();
}
END_TEST

/* Used units survive the compaction of their segment, at another place, with their bytes. */
START_TEST(test_hot_units_move)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB, .high_water = 60, .low_water = 55,
				      .policy = NC_POLICY_LRU, .flags = NC_CACHE_NO_THREAD);
	unsigned alive = 0, cold = 0;
	struct NC_cache_stat stat;
	size_t ids[320];

	open_with(options);
	for (unsigned i = 0; i < 320; i++) {
		ids[i] = insert_kind(i, 16 << 10, NC_KIND_APPENDED);
		for (unsigned j = 0; j <= i; j += 8)
			ck_assert(named(ids[j]));
		dispatch_all();
	}
	stat = stat_now();
	ck_assert_uint_gt(stat.cleaned, 3);
	ck_assert_uint_gt(stat.copied_units, 3);
	ck_assert_uint_eq(stat.copied_bytes, stat.copied_units * (16 << 10));
	for (unsigned i = 0; i < 320; i++) {
		if (!named(ids[i]))
			continue;
		check_bytes(ids[i], i, 16 << 10);
		if (i % 8 == 0)
			alive++;
		else
			cold++;
	}
	/* All used units, and as many of the others as fit. */
	ck_assert_uint_eq(alive, 40);
	ck_assert_uint_lt(cold, 280);
	close_cache();
}
END_TEST

/* All is held, so nothing can be evicted; the last release makes it possible and says so. */
START_TEST(test_last_holder_wakes)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB, .high_water = 50, .low_water = 40,
				      .flags = NC_CACHE_NO_THREAD);
	size_t ids[40];

	open_with(options);
	for (unsigned i = 0; i < 40; i++) {
		ids[i] = insert_kind(i, 120 << 10, NC_KIND_APPENDED);
		ck_assert_int_eq(hold_id(NULL, ids[i]), 0);
	}
	dispatch_all();
	ck_assert_uint_eq(stat_now().evictions, 0);
	ck_assert_uint_gt(stat_now().used, 4 * MIB);
	for (unsigned i = 0; i < 40; i++)
		ck_assert_int_eq(release_id(NULL, ids[i]), 0);
	ck_assert(readable(NC_cache_fd(cache)));
	dispatch_all();
	ck_assert_uint_le(stat_now().used, (8 * MIB) / 100 * 40 + (8 * MIB) % 100);
	close_cache();
}
END_TEST

START_TEST(test_lifetime)
{
	size_t brief, longer, held;

	open_with((struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB,
								 .flags = NC_CACHE_NO_THREAD));
	brief = insert_kind(1, 100, NC_KIND_RECYCLED);
	longer = insert_kind(2, 100, NC_KIND_APPENDED);
	held = insert_kind(3, 5000, NC_KIND_APPENDED);
	FAILS(NC_set_lifetime(cache, brief + 1, 10), ENOENT);
	FAILS(NC_set_lifetime(cache, brief, UINT64_C(366) * 24 * 3600 * 1000), EINVAL);
	ck_assert_int_eq(NC_set_lifetime(cache, longer, 3600 * 1000), 0);
	ck_assert_int_eq(NC_set_lifetime(cache, longer, 0), 0);
	ck_assert_int_eq(NC_set_lifetime(cache, longer, 3600 * 1000), 0);
	ck_assert_int_eq(hold_id(NULL, held), 0);
	ck_assert_int_eq(NC_set_lifetime(cache, held, 1), 0);
	ck_assert_int_eq(NC_set_lifetime(cache, brief, 1), 0);
	/* The end of a lifetime is an event; no call is needed. */
	while (stat_now().expired < 2) {
		await(NC_cache_fd(cache), POLLIN);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	}
	FAILS(hold_id(NULL, brief), ENOENT);
	FAILS(hold_id(NULL, held), ENOENT);
	FAILS(NC_destroy(NULL, brief), ENOENT);
	ck_assert(named(longer));
	ck_assert_uint_eq(stat_now().units, 1);
	ck_assert_uint_eq(stat_now().evictions + stat_now().destroys, 0);
	ck_assert_int_eq(release_id(NULL, held), 0);
	ck_assert_int_eq(NC_destroy(NULL, longer), 0);
	ck_assert_uint_eq(stat_now().units, 0);
	close_cache();
}
END_TEST

/* Its lifetime is over and no collector ran: the id is dead all the same. */
START_TEST(test_lifetime_uncollected)
{
	struct timespec pause = {.tv_nsec = 1000 * 1000};
	unsigned waited = 0;
	size_t id;

	open_with((struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB,
								 .flags = NC_CACHE_NO_THREAD));
	id = insert_kind(1, 100, NC_KIND_RECYCLED);
	ck_assert_int_eq(NC_set_lifetime(cache, id, 1), 0);
	await(NC_cache_fd(cache), POLLIN);
	/* The coarse clock may be one tick late. */
	while (named(id)) {
		ck_assert_uint_lt(waited++, 10000);
		nanosleep(&pause, NULL);
	}
	ck_assert_uint_eq(stat_now().expired, 0);
	FAILS(NC_set_lifetime(cache, id, 1000), ENOENT);
	FAILS(NC_destroy(NULL, id), ENOENT);
	ck_assert_uint_eq(stat_now().units, 0);
	dispatch_all();
	ck_assert_uint_eq(stat_now().expired, 1);
	close_cache();
}
END_TEST

/* LOW is evicted first, then NORMAL, then HIGH; PINNED stays, and is counted. */
START_TEST(test_priorities)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB, .flags = NC_CACHE_NO_THREAD);
	size_t ids[4][32];
	NC_handle handle;

	open_with(options);
	/* Recycled units in segments of 256 KiB are evicted one by one. */
	for (unsigned i = 0; i < 32; i++)
		for (unsigned priority = 0; priority < 4; priority++) {
			ids[priority][i] = insert_kind(i, 8 << 10, NC_KIND_RECYCLED);
			ck_assert_int_eq(NC_set_priority(cache, ids[priority][i],
							 (enum NC_priority)priority),
					 0);
		}
	ck_assert_uint_eq(stat_now().pinned, 32);
	FAILS(NC_set_priority(cache, ids[0][0], (enum NC_priority)4), EINVAL);
	FAILS(NC_set_priority(cache, ids[0][0], (enum NC_priority) - 1), EINVAL);
	FAILS(NC_set_priority(cache, 12345, NC_PRIORITY_LOW), ENOENT);
	for (unsigned i = 0; i < 96; i++) {
		size_t id = insert_kind(i, 8 << 10, NC_KIND_RECYCLED);
		unsigned left[4] = {0};

		ck_assert_int_eq(NC_set_priority(cache, id, NC_PRIORITY_PINNED), 0);
		for (unsigned priority = 0; priority < 4; priority++)
			for (unsigned j = 0; j < 32; j++)
				left[priority] += named(ids[priority][j]);
		ck_assert_uint_eq(left[0], i < 32 ? 31 - i : 0);
		ck_assert_uint_eq(left[1], i < 32 ? 32 : i < 64 ? 63 - i : 0);
		ck_assert_uint_eq(left[2], i < 64 ? 32 : 95 - i);
		ck_assert_uint_eq(left[3], 32);
	}
	/* Only pinned units are left. */
	ck_assert_uint_eq(stat_now().pinned, 128);
	FAILS(NC_unit_alloc(cache, &handle, 8 << 10, 0, NC_KIND_RECYCLED, 0), ENOMEM);
	FAILS(NC_unit_alloc(cache, &handle, 8 << 10, 0, NC_KIND_APPENDED, 0), ENOMEM);
	ck_assert_uint_eq(stat_now().evictions, 96);
	ck_assert_int_eq(NC_set_priority(cache, ids[3][5], NC_PRIORITY_NORMAL), 0);
	ck_assert_int_eq(NC_unit_alloc(cache, &handle, 8 << 10, 0, NC_KIND_RECYCLED, 0), 0);
	ck_assert(!named(ids[3][5]));
	ck_assert_int_eq(NC_free(&handle), 0);
	for (unsigned j = 0; j < 32; j++)
		if (j != 5)
			check_bytes(ids[3][j], j, 8 << 10);
	close_cache();
}
END_TEST

/* Pinned units of the log stay while all units around them are evicted. */
START_TEST(test_pinned_in_the_log)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .flags = NC_CACHE_NO_THREAD);
	size_t pinned[8];

	open_with(options);
	for (unsigned i = 0; i < 1000; i++) {
		size_t id = insert_kind(i, 20 << 10, NC_KIND_APPENDED);

		if (i < 8) {
			ck_assert_int_eq(NC_set_priority(cache, id, NC_PRIORITY_PINNED), 0);
			pinned[i] = id;
		}
		if (i % 2)
			dispatch_all();
		ck_assert_uint_le(stat_now().used, 4 * MIB);
	}
	for (unsigned i = 0; i < 8; i++)
		check_bytes(pinned[i], i, 20 << 10);
	ck_assert_uint_gt(stat_now().copied_units, 0);
	ck_assert_uint_eq(stat_now().failures, 0);
	close_cache();
}
END_TEST

/* --- the scrubber --------------------------------------------------------------- */

/* Changes one byte, even if it is protected. */
static void spoil(size_t id, size_t offset)
{
	size_t run;
	unsigned char *at, *page;

	ck_assert_int_eq(hold_id(NULL, id), 0);
	at = (unsigned char *)(uintptr_t)data_of_id(cache, id, offset, &run);
	ck_assert_ptr_nonnull(at);
	page = at - (uintptr_t)at % 4096;
	ck_assert_int_eq(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
	*at ^= 0x40;
	ck_assert_int_eq(release_id(NULL, id), 0);
}

START_TEST(test_scrubber)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB, .scrub_rate = 64 * MIB,
				      .flags = NC_CACHE_NO_THREAD);
	size_t recycled, log, intact[2], gone;
	uint64_t before;

	open_with(options);
	intact[0] = insert_kind(1, 50000, NC_KIND_RECYCLED);
	recycled = insert_kind(2, 300000, NC_KIND_RECYCLED);
	intact[1] = insert_kind(3, 90000, NC_KIND_APPENDED);
	log = insert_kind(4, 200000, NC_KIND_APPENDED);
	gone = insert_kind(5, 4096, NC_KIND_RECYCLED);
	/* A complete round finds no error. */
	while (stat_now().scrubbed < 2 * 644096) {
		await(NC_cache_fd(cache), POLLIN);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	}
	ck_assert_uint_eq(stat_now().corrupt, 0);
	spoil(recycled, 299999);
	spoil(log, 4097);
	ck_assert_int_eq(NC_destroy(NULL, gone), 0);
	while (stat_now().corrupt < 2) {
		await(NC_cache_fd(cache), POLLIN);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	}
	FAILS(hold_id(NULL, recycled), ENOENT);
	FAILS(hold_id(NULL, log), ENOENT);
	check_bytes(intact[0], 1, 50000);
	check_bytes(intact[1], 3, 90000);
	before = stat_now().scrubbed;
	while (stat_now().scrubbed < before + 500000) {
		await(NC_cache_fd(cache), POLLIN);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	}
	ck_assert_uint_eq(stat_now().corrupt, 2);
	ck_assert_uint_eq(stat_now().units, 2);
	close_cache();
}
END_TEST

static void scrub_until(uint64_t bytes)
{
	while (stat_now().scrubbed < bytes) {
		await(NC_cache_fd(cache), POLLIN);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	}
}

/*
 * What changed before the first round is unknown, unless the sums are those of the
 * bytes that were written.
 */
START_TEST(test_scrubber_computes)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB, .scrub_rate = 64 * MIB,
				      .flags = NC_CACHE_NO_THREAD);

	for (unsigned eager = 0; eager < 2; eager++) {
		size_t id;

		options.flags |= eager ? NC_CACHE_EAGER_SUMS : 0;
		open_with(options);
		id = insert_kind(1, 300000, NC_KIND_APPENDED);
		spoil(id, 4000);
		scrub_until(eager ? 1 : 2 * 300000);
		ck_assert_uint_eq(stat_now().corrupt, eager);
		if (!eager) {
			spoil(id, 299000);
			while (stat_now().corrupt == 0)
				scrub_until(stat_now().scrubbed + 1);
		}
		FAILS(hold_id(NULL, id), ENOENT);
		close_cache();
	}
}
END_TEST

/* Large units take several steps; meanwhile they end, others take their slot, or all ends. */
START_TEST(test_scrubber_interrupted)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB, .scrub_rate = 8 * MIB,
				      .flags = NC_CACHE_NO_THREAD);
	size_t id;

	open_with(options);
	id = insert_kind(1, 300000, NC_KIND_APPENDED);
	scrub_until(1);
	ck_assert_uint_lt(stat_now().scrubbed, 300000);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	/* More fragments than memory was allocated for (memory checkers). */
	id = insert_kind(2, MIB, NC_KIND_APPENDED);
	scrub_until(stat_now().scrubbed + 3 * MIB);
	ck_assert_int_eq(NC_verify(NULL, id), 0);
	ck_assert_uint_eq(stat_now().corrupt, 0);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	/* Another thread computes them between two steps. */
	id = insert_kind(3, MIB, NC_KIND_APPENDED);
	scrub_until(stat_now().scrubbed + 1);
	ck_assert_int_eq(NC_verify(NULL, id), 0);
	spoil(id, MIB - 1);
	while (stat_now().corrupt == 0)
		scrub_until(stat_now().scrubbed + 1);
	(void)insert_kind(4, MIB, NC_KIND_APPENDED);
	scrub_until(stat_now().scrubbed + 1);
	close_cache();
}
END_TEST

/* Without units to verify it sleeps, and an insert wakes it. */
START_TEST(test_scrubber_sleeps)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .scrub_rate = 64 * MIB,
				      .flags = NC_CACHE_NO_THREAD);
	struct pollfd wait = {.events = POLLIN};
	unsigned rounds = 0;
	size_t id;

	open_with(options);
	for (unsigned turn = 0; turn < 3; turn++) {
		id = insert_kind(turn, 10000, NC_KIND_RECYCLED);
		await(NC_cache_fd(cache), POLLIN);
		ck_assert_int_eq(NC_destroy(NULL, id), 0);
		wait.fd = NC_cache_fd(cache);
		/* It stops after one or two rounds without a unit; each round is an event. */
		while (poll(&wait, 1, 1000) == 1) {
			ck_assert_int_ge(NC_cache_dispatch(cache), 0);
			ck_assert_uint_lt(rounds++, 100);
		}
	}
	close_cache();
}
END_TEST

/* --- protection ------------------------------------------------------------------- */

START_TEST(test_protect)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB,
				      .flags = NC_CACHE_NO_THREAD | NC_CACHE_PROTECT);
	size_t id, run;
	char *at;

	open_with(options);
	for (unsigned i = 0; i < 20; i++) {
		id = insert_kind(i, 10000, NC_KIND_RECYCLED);
		ck_assert_int_eq(hold_id(NULL, id), 0);
		at = (char *)(uintptr_t)data_of_id(cache, id, 0, &run);
		ck_assert_ptr_nonnull(at);
		ck_assert(!writable(at));
		ck_assert(!writable(at + 9999));
		check_bytes(id, i, 10000);
		ck_assert_int_eq(release_id(NULL, id), 0);
		/* The same memory is used again, and is writable. */
		ck_assert_int_eq(NC_destroy(NULL, id), 0);
	}
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_quiet);
	tcase_add_test(tcase, test_watermarks);
	tcase_add_test(tcase, test_empty_segments);
	tcase_add_test(tcase, test_hot_units_move);
	tcase_add_test(tcase, test_last_holder_wakes);
	tcase_add_test(tcase, test_lifetime);
	tcase_add_test(tcase, test_lifetime_uncollected);
	tcase_add_test(tcase, test_priorities);
	tcase_add_test(tcase, test_pinned_in_the_log);
	tcase_add_test(tcase, test_scrubber);
	tcase_add_test(tcase, test_scrubber_computes);
	tcase_add_test(tcase, test_scrubber_interrupted);
	tcase_add_test(tcase, test_scrubber_sleeps);
	tcase_add_test(tcase, test_protect);
}

RUN_SUITE("collector", fill)
