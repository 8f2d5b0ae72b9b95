/* SPDX-License-Identifier: MIT */
/*
 * test-body-queue.c - unit tests of body-queue.c: units wait in order, are passed on
 * bit by bit, and every hold is released once.  Single-threaded.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <nabc.h>

#include "base/body-queue.h"

#include "suite.h"

static NC_cache *cache;

static void begin(void)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 8 << 20);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
}

static void end(void)
{
	ck_assert_int_eq(NC_cache_close(cache), 0);
}

/* A unit that exists without a hold. */
static size_t unit(size_t length)
{
	NC_handle handle;
	size_t id;

	ck_assert_int_eq(NC_alloc(&handle, length, 0), 0);
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	ck_assert_int_eq(NC_free(&handle), 0);
	return id;
}

static uint64_t holds(size_t id)
{
	struct NC_stat stat;

	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)), 0);
	return stat.holds;
}

static void check_next(const struct body_queue *pieces, size_t most, size_t id, size_t offset,
		       size_t length)
{
	struct NC_range next = body_queue_next(pieces, most);

	ck_assert_uint_eq(next.length, length);
	if (!length)
		return;
	ck_assert_uint_eq(next.id, id);
	ck_assert_uint_eq(next.offset, offset);
}

START_TEST(test_order)
{
	struct body_queue pieces = {0};
	size_t first, second;

	begin();
	first = unit(1000);
	second = unit(70);
	ck_assert(body_queue_is_over(&pieces));
	ck_assert_int_eq(body_queue_add(&pieces, first, 1000, true), 0);
	ck_assert_int_eq(body_queue_add(&pieces, second, 70, false), 0);
	ck_assert_uint_eq(holds(first), 1);
	ck_assert_uint_eq(holds(second), 1);
	check_next(&pieces, 600, first, 0, 600);
	check_next(&pieces, 2000, first, 0, 1000);
	body_queue_written(&pieces, 600);
	check_next(&pieces, 600, first, 600, 400);
	body_queue_written(&pieces, 400);
	ck_assert_uint_eq(holds(first), 0);
	ck_assert(!body_queue_is_over(&pieces));
	check_next(&pieces, 600, second, 0, 70);
	body_queue_written(&pieces, 70);
	ck_assert_uint_eq(holds(second), 0);
	check_next(&pieces, 600, 0, 0, 0);
	ck_assert(body_queue_is_over(&pieces));
	end();
}
END_TEST

/* Between two pieces the queue is empty, but not at its end; the last piece may be empty. */
START_TEST(test_more)
{
	struct body_queue pieces = {0};

	begin();
	ck_assert_int_eq(body_queue_add(&pieces, unit(10), 10, true), 0);
	body_queue_written(&pieces, 10);
	check_next(&pieces, 10, 0, 0, 0);
	ck_assert(!body_queue_is_over(&pieces));
	ck_assert_int_eq(body_queue_add(&pieces, 0, 0, false), 0);
	ck_assert(body_queue_is_over(&pieces));
	end();
}
END_TEST

START_TEST(test_clear)
{
	struct body_queue pieces = {0};
	size_t first, second;

	begin();
	first = unit(10);
	second = unit(20);
	ck_assert_int_eq(body_queue_add(&pieces, first, 10, true), 0);
	ck_assert_int_eq(body_queue_add(&pieces, second, 20, true), 0);
	body_queue_written(&pieces, 3);
	body_queue_clear(&pieces);
	ck_assert_uint_eq(holds(first), 0);
	ck_assert_uint_eq(holds(second), 0);
	ck_assert(body_queue_is_over(&pieces));
	end();
}
END_TEST

START_TEST(test_gone)
{
	struct body_queue pieces = {0};
	size_t id;

	begin();
	id = unit(10);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	ck_assert_int_eq(body_queue_add(&pieces, id, 10, false), -ENOENT);
	ck_assert(body_queue_is_over(&pieces));
	end();
}
END_TEST

static void fill(TCase *cases)
{
	tcase_add_test(cases, test_order);
	tcase_add_test(cases, test_more);
	tcase_add_test(cases, test_clear);
	tcase_add_test(cases, test_gone);
}

RUN_SUITE("body-queue", fill)
