/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-wait.c - allocations that wait for memory: what wakes them, in the owner and in a
 * member, and when they do not wait.
 */
#include <errno.h>
#include <nabc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "api/registry.h"
#include "cache/index.h"
#include "store/memory-wait.h"
#include "store/pool.h"

#include "grants-fixture.h"
#include "nabc-fixture.h"
#include "suite.h"

#define SIZE (100u << 10)
#define UNITS 64u

static size_t ids[UNITS];
static struct NC_hold holds[UNITS];
static unsigned count;

static int alloc_in(NC_cache *in, NC_handle *handle, int milliseconds)
{
	*handle = (NC_handle){{0}};
	return NC_unit_alloc_wait(in, handle, SIZE, 0, NC_KIND_RECYCLED, 0, milliseconds);
}

/* Fills the memory with units that holder holds. */
static void fill_up(NC_cache *in, NC_cache *holder)
{
	struct NC_insert_options options = NC_INSERT_OPTIONS_INIT(.flags = 0);
	NC_handle handle;

	for (count = 0; alloc_in(in, &handle, 0) == 0; count++) {
		ck_assert_uint_lt(count, UNITS);
		options.hold = in == holder ? &holds[count] : NULL;
		ck_assert_int_eq(NC_unit_insert_with(&handle, NC_WHOLE, &options), 0);
		ids[count] = NC_cache_id(&handle);
		ck_assert_int_eq(NC_free(&handle), 0);
		if (in != holder)
			ck_assert_int_eq(NC_hold(holder, ids[count], &holds[count]), 0);
	}
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert_uint_gt(count, 1);
}

/* Whether a thread that waits would be woken: the word is cleared before. */
static bool wakes(NC_cache *in)
{
	return atomic_load(in->index.own.waiting) == 0;
}

static void expect_memory(NC_cache *in)
{
	nc_memory_expect(in->index.own.waiting);
}

static void *wait_for_memory(void *in)
{
	NC_handle handle;

	if (alloc_in(in, &handle, -1) < 0)
		return strerror(errno);
	return NC_free(&handle) == 0 ? NULL : "not freed";
}

/* The thread gets memory, in whatever order the two come. */
static void check_waiter(NC_cache *in, int (*release)(void))
{
	pthread_t thread;
	void *complaint;

	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_memory, in), 0);
	while (atomic_load(in->index.own.waiting) == 0)
		sched_yield();
	ck_assert_int_eq(release(), 0);
	ck_assert_int_eq(pthread_join(thread, &complaint), 0);
	ck_assert_msg(!complaint, "%s", (const char *)complaint);
}

static int release_one(void)
{
	return NC_release(&holds[--count]);
}

START_TEST(test_owner)
{
	NC_handle handle;

	open_cache(MIB);
	fill_up(cache, cache);
	check_waiter(cache, release_one);
	/* The unit was evicted, and its memory is free. */
	ck_assert_int_eq(alloc_in(cache, &handle, -1), 0);
	expect_memory(cache);
	ck_assert_int_eq(NC_free(&handle), 0);
	ck_assert(wakes(cache));
	/* Each that can be evicted from now on, or was destroyed. */
	ck_assert_int_eq(alloc_in(cache, &handle, -1), 0);
	expect_memory(cache);
	ck_assert_int_eq(NC_insert(&handle), 0);
	ck_assert(wakes(cache));
	ck_assert_int_eq(NC_set_priority(cache, NC_cache_id(&handle), NC_PRIORITY_PINNED), 0);
	expect_memory(cache);
	ck_assert_int_eq(NC_set_priority(cache, NC_cache_id(&handle), NC_PRIORITY_LOW), 0);
	ck_assert(wakes(cache));
	expect_memory(cache);
	ck_assert_int_eq(NC_destroy(cache, NC_cache_id(&handle)), 0);
	ck_assert(wakes(cache));
	ck_assert_int_eq(NC_free(&handle), 0);
	/* The memory of a held one: with its last hold. */
	ck_assert_int_eq(alloc_in(cache, &handle, 0), 0);
	ck_assert_int_eq(NC_destroy(cache, ids[0]), 0);
	expect_memory(cache);
	ck_assert_int_eq(NC_release(&holds[0]), 0);
	ck_assert(wakes(cache));
	expect_memory(cache);
	ck_assert_int_eq(NC_release(&holds[1]), 0);
	ck_assert(wakes(cache));
	ck_assert_int_eq(NC_free(&handle), 0);
	close_cache();
}
END_TEST

/* A part that is given back is memory, too. */
START_TEST(test_trim)
{
	struct NC_hold hold;
	struct NC_insert_options options = NC_INSERT_OPTIONS_INIT(.hold = &hold);
	NC_handle handle = {{0}};

	open_cache(8 * MIB);
	ck_assert_int_eq(NC_unit_alloc(cache, &handle, MIB, 0, NC_KIND_RECYCLED, 0), 0);
	expect_memory(cache);
	ck_assert_int_eq(NC_unit_insert_with(&handle, 1, &options), 0);
	ck_assert(wakes(cache));
	close_cache();
}
END_TEST

static int destroy_and_release(void)
{
	count--;
	return NC_release(&holds[count]);
}

/* A member's memory is free when it has destroyed the unit, and the owner has released it. */
START_TEST(test_member)
{
	NC_cache *member;
	NC_handle handle;

	open_owners();
	member = join(0, 0);
	fill_up(member, cache);
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(NC_destroy(member, ids[i]), 0);
	FAILS(alloc_in(member, &handle, 0), ENOMEM);
	check_waiter(member, destroy_and_release);
	expect_memory(member);
	ck_assert_int_eq(NC_release(&holds[--count]), 0);
	ck_assert(wakes(member));
	/* Its own units, without the owner. */
	ck_assert_int_eq(alloc_in(member, &handle, -1), 0);
	ck_assert_int_eq(NC_insert(&handle), 0);
	expect_memory(member);
	ck_assert_int_eq(NC_destroy(member, NC_cache_id(&handle)), 0);
	ck_assert(wakes(member));
	while (count)
		ck_assert_int_eq(NC_release(&holds[--count]), 0);
	ck_assert_int_eq(NC_cache_close(member), 0);
	close_owners();
}
END_TEST

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

START_TEST(test_limits)
{
	NC_cache *member, *light;
	NC_handle handle = {{0}};
	uint64_t begin;

	open_owners();
	member = join(0, 0);
	light = join(0, NC_ATTACH_LIGHT);
	fill_up(member, cache);
	begin = now_ms();
	FAILS(alloc_in(member, &handle, 50), ETIMEDOUT);
	ck_assert_uint_ge(now_ms(), begin + 50);
	FAILS(alloc_in(member, &handle, 0), ENOMEM);
	/* What no release can change is not waited for. */
	FAILS(NC_unit_alloc_wait(member, &handle, 512 << 10, 0, NC_KIND_RECYCLED, 0, -1), ENOMEM);
	FAILS(NC_unit_alloc_wait(member, &handle, 2 * MIB, 0, NC_KIND_AUTO, 0, -1), EFBIG);
	FAILS(NC_unit_alloc_wait(cache, &handle, 2 * MIB, 0, NC_KIND_AUTO, 0, -1), EFBIG);
	FAILS(NC_unit_alloc_wait(cache, &handle, 0, 0, NC_KIND_AUTO, 0, -1), EINVAL);
	FAILS(NC_unit_alloc_wait(member, &handle, 1, 0, NC_KIND_APPENDED, 0, -1), ENOTSUP);
	FAILS(NC_unit_alloc_wait((NC_cache *)(void *)&handle, &handle, 1, 0, NC_KIND_AUTO, 0, -1),
	      EINVAL);
	ck_assert_int_eq(NC_unit_alloc_wait(light, &handle, SIZE, 0, NC_KIND_AUTO, 0, -1), 0);
	FAILS(NC_unit_alloc_wait(light, &handle, SIZE, 0, NC_KIND_AUTO, 0, -1), EBUSY);
	ck_assert_int_eq(NC_free(&handle), 0);
	while (count)
		ck_assert_int_eq(NC_release(&holds[--count]), 0);
	ck_assert_int_eq(NC_cache_close(light), 0);
	ck_assert_int_eq(NC_cache_close(member), 0);
	close_owners();
}
END_TEST

#define THREADS 6u
#define ROUNDS 300u

/* More threads than there is memory for: each gets some in the end. */
static void *use_memory(void *in)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct NC_hold hold;
		struct NC_insert_options options = NC_INSERT_OPTIONS_INIT(.hold = &hold);
		NC_handle handle;
		size_t id;

		if (alloc_in(in, &handle, -1) < 0)
			return strerror(errno);
		if (NC_unit_insert_with(&handle, NC_WHOLE, &options) < 0)
			return "not inserted";
		id = NC_cache_id(&handle);
		(void)NC_free(&handle);
		sched_yield();
		if (i % 2 && NC_destroy(in, id) < 0)
			return "not destroyed";
		if (NC_release(&hold) < 0)
			return "not released";
		/* In a member's segment, no unit is evicted. */
		if (i % 2 == 0 && NC_destroy(in, id) < 0 && errno != ENOENT)
			return "not destroyed at last";
	}
	return NULL;
}

START_TEST(test_threads)
{
	pthread_t threads[2][THREADS];
	NC_cache *caches[2];
	void *complaint;

	open_owners();
	caches[0] = cache;
	caches[1] = join(0, 0);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < THREADS; i++)
			ck_assert_int_eq(
				pthread_create(&threads[k][i], NULL, use_memory, caches[k]), 0);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < THREADS; i++) {
			ck_assert_int_eq(pthread_join(threads[k][i], &complaint), 0);
			ck_assert_msg(!complaint, "%s", (const char *)complaint);
		}
	ck_assert_int_eq(NC_cache_close(caches[1]), 0);
	close_owners();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_owner);
	tcase_add_test(tcase, test_trim);
	tcase_add_test(tcase, test_member);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("nabc-wait", fill)
