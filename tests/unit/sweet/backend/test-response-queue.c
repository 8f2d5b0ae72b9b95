/* SPDX-License-Identifier: MIT */
/*
 * test-response-queue.c - unit tests of response-queue.c: lists of ranges, and bytes,
 * wait in a queue, become pieces, and all is released once.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "backend/response-queue.h"
#include "base/budget.h"
#include "base/slice.h"
#include "event/piece.h"
#include "http/body.h"

#include "held-unit.h"
#include "suite.h"
#include "unit-holds.h"

static NC_cache *cache;
static struct response_queue parts;
static struct piece piece;

static void begin(void)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 8 << 20);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	memset(&parts, 0, sizeof(parts));
}

static void end(void)
{
	ck_assert_int_eq(NC_cache_close(cache), 0);
}

/* Ranges whose units are held by id. */
static bool add_ranges(struct response_queue *to, const struct NC_range *ranges, unsigned count,
		       uint64_t *left)
{
	struct NC_hold holds[4];

	for (unsigned i = 0; i < count; i++)
		holds[i] = hold_of_id(NULL, ranges[i].id);
	return response_queue_add(to, ranges, holds, count, left);
}

/* The piece was sent, and the next one is wanted. */
static void take(void)
{
	piece_release(&piece);
	piece = response_queue_take(&parts);
}

/* As at the end of a response. */
static void clear(void)
{
	piece_release(&piece);
	response_queue_clear(&parts);
}

static uint64_t holds(struct NC_range range)
{
	struct NC_stat stat;

	ck_assert_int_eq(NC_stat(NULL, range.id, &stat, sizeof(stat)), 0);
	return stat.holds;
}

START_TEST(test_line)
{
	struct NC_range first[2], second;
	uint64_t left = UINT64_MAX;

	begin();
	first[0] = held(100);
	first[1] = held(200);
	second = held(300);
	ck_assert(!response_queue_wait(&parts));
	ck_assert(add_ranges(&parts, first, 2, &left));
	ck_assert(add_ranges(&parts, &second, 1, &left));
	ck_assert_uint_eq(left, UINT64_MAX - 600);
	ck_assert(response_queue_wait(&parts));
	/* Any unit, however small, costs a page. */
	ck_assert_uint_eq(parts.count, 2);
	ck_assert_uint_eq(parts.bytes, 3 * 4096);

	take();
	ck_assert_uint_eq(parts.count, 2);
	ck_assert_uint_eq(piece.range_count, 2);
	ck_assert_uint_eq(piece.ranges[1].id, first[1].id);
	ck_assert_uint_eq(holds(first[0]), 1);
	ck_assert(response_queue_wait(&parts));
	take();
	ck_assert_uint_eq(piece.range_count, 1);
	ck_assert_uint_eq(piece.ranges[0].id, second.id);
	ck_assert_uint_eq(holds(first[0]), 0);
	ck_assert_uint_eq(holds(first[1]), 0);
	ck_assert(!response_queue_wait(&parts));
	ck_assert_uint_eq(parts.count, 1);
	ck_assert_uint_eq(parts.bytes, 4096);
	/* The last one is released as well; the next one starts a new queue. */
	take();
	ck_assert_uint_eq(parts.count + parts.bytes, 0);
	ck_assert_int_eq(piece.kind, PIECE_NONE);
	ck_assert_uint_eq(holds(second), 0);
	ck_assert_int_eq(hold_id(NULL, second.id), 0);
	ck_assert(add_ranges(&parts, &second, 1, &left));
	take();
	ck_assert_uint_eq(piece.ranges[0].id, second.id);
	clear();
	ck_assert_uint_eq(holds(second), 0);
	clear();
	end();
}
END_TEST

/* Bytes beyond the announced length are dropped, and no part is empty. */
START_TEST(test_left)
{
	struct NC_range ranges[3];
	uint64_t left = 250;

	begin();
	for (unsigned i = 0; i < 3; i++)
		ranges[i] = held(200);
	ck_assert(add_ranges(&parts, ranges, 3, &left));
	ck_assert_uint_eq(left, 0);
	ck_assert_uint_eq(holds(ranges[2]), 0);
	take();
	ck_assert_uint_eq(piece.range_count, 2);
	ck_assert_uint_eq(piece.ranges[1].length, 50);
	ck_assert_int_eq(hold_id(NULL, ranges[2].id), 0);
	ck_assert(add_ranges(&parts, &ranges[2], 1, &left));
	ck_assert(!response_queue_wait(&parts));
	ck_assert_uint_eq(holds(ranges[2]), 0);
	ck_assert(add_ranges(&parts, NULL, 0, &left));
	ck_assert(!response_queue_wait(&parts));
	clear();
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(holds(ranges[i]), 0);
	end();
}
END_TEST

/* All waiting parts and all that are being sent. */
START_TEST(test_clear)
{
	struct NC_range ranges[4];
	uint64_t left = UINT64_MAX;

	begin();
	for (unsigned i = 0; i < 4; i++) {
		ranges[i] = held(10);
		ck_assert(add_ranges(&parts, &ranges[i], 1, &left));
	}
	take();
	clear();
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(holds(ranges[i]), 0);
	end();
}
END_TEST

static struct slice bytes(size_t length)
{
	return (struct slice){memset(must_alloc(length), 'b', length), length};
}

/* Bytes between ranges, within the budget and the announced length. */
START_TEST(test_bytes)
{
	enum { PART = RESPONSE_QUEUE_PART };
	struct budget budget = {.most = 1000 + 3 * PART};
	struct NC_range range;
	uint64_t left = 900;

	begin();
	range = held(100);
	ck_assert(response_queue_add_bytes(&parts, bytes(600), &left, &budget));
	ck_assert(add_ranges(&parts, &range, 1, &left));
	ck_assert_uint_eq(left, 200);
	/* More than fits. */
	ck_assert(!response_queue_add_bytes(&parts, bytes(401 + 2 * PART), &left, &budget));
	ck_assert_uint_eq(left, 200);
	/* More than announced: the excess uses its memory as well. */
	ck_assert(response_queue_add_bytes(&parts, bytes(400), &left, &budget));
	ck_assert_uint_eq(left, 0);
	ck_assert(response_queue_add_bytes(&parts, bytes(10), &left, &budget));
	ck_assert(response_queue_add_bytes(&parts, (struct slice){0}, &left, &budget));
	ck_assert_uint_eq(budget.used, 1000 + 2 * PART);
	ck_assert_uint_ge(parts.bytes, 1000 + 2 * PART);

	take();
	ck_assert_uint_eq(piece.length, 600);
	ck_assert_int_eq(((const char *)piece.data)[599], 'b');
	ck_assert_int_eq(piece.kind, PIECE_BYTES);
	take();
	ck_assert_uint_eq(budget.used, 400 + PART);
	ck_assert_int_eq(piece.kind, PIECE_RANGES);
	ck_assert_uint_eq(piece.length, 100);
	take();
	ck_assert_uint_eq(holds(range), 0);
	ck_assert_uint_eq(piece.length, 200);
	ck_assert(!response_queue_wait(&parts));
	take();
	ck_assert_int_eq(piece.kind, PIECE_NONE);
	ck_assert_uint_eq(budget.used, 0);
	left = 5;
	ck_assert(response_queue_add_bytes(&parts, bytes(5), &left, &budget));
	clear();
	ck_assert_uint_eq(budget.used, 0);
	end();
}
END_TEST

/* Parts of one byte each: what holds them counts as well. */
START_TEST(test_tiny_bytes)
{
	struct budget budget = {.most = 10 * RESPONSE_QUEUE_PART};
	uint64_t left = 1000;
	unsigned count = 0;

	begin();
	while (response_queue_add_bytes(&parts, bytes(1), &left, &budget))
		count++;
	ck_assert_uint_eq(count, 9);
	ck_assert_uint_eq(parts.bytes, 9 * (1 + RESPONSE_QUEUE_PART));
	clear();
	ck_assert_uint_eq(budget.used, 0);
	end();
}
END_TEST

/* A reaped response that no call owns. */
START_TEST(test_release)
{
	struct NC_range ranges[2];
	struct NC_response response = NC_RESPONSE_INIT(.ranges = ranges, .range_count = 2);

	begin();
	ranges[0] = held(10);
	ranges[1] = held(20);
	response.holds = holds_of_ranges(ranges, 2);
	response_queue_release(&response);
	ck_assert_uint_eq(holds(ranges[0]), 0);
	ck_assert_uint_eq(holds(ranges[1]), 0);
	/* Valgrind and others check that this one is freed. */
	response = (struct NC_response)NC_RESPONSE_INIT(.data = bytes(30).at, .data_length = 30);
	response_queue_release(&response);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_line);
	tcase_add_test(tcase, test_left);
	tcase_add_test(tcase, test_clear);
	tcase_add_test(tcase, test_bytes);
	tcase_add_test(tcase, test_tiny_bytes);
	tcase_add_test(tcase, test_release);
}

RUN_SUITE("response-queue", fill)
