/* SPDX-License-Identifier: MIT */
/*
 * test-compressor.c - unit tests of compressor.c: units of one and of several ranges,
 * what does not become smaller, too many jobs, and an end with jobs that wait.
 */
#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "files/compressor.h"
#include "coding/encoder.h"
#include "http/accept.h"

#include "loop-fixture.h"
#include "suite.h"

#define SIZE ((size_t)200000)

static NC_cache *cache;
static struct compressor *compressor;
static enum coding coding; /* one that this build has */

struct order {
	struct compress_job job; /* must be first */
	struct NC_range ranges[3];
	struct NC_hold holds[3];
	bool gone; /* its source */
	bool done;
};

static bool begin(struct compress_job *job)
{
	return !((struct order *)job)->gone;
}

static void done(struct compress_job *job)
{
	EVENT(((struct order *)job)->done = true);
}

static void open_all(void)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 16 << 20);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	compressor = compressor_open();
	ck_assert_ptr_nonnull(compressor);
	while (!encoder_of(coding) && coding + 1 < CODINGS)
		coding++;
}

static void close_all(void)
{
	compressor_close(compressor);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}

/* Adds a range of a new unit, which is held. */
static void add(struct order *order, const void *bytes, size_t length, size_t skip)
{
	unsigned at = order->job.range_count++;
	NC_handle handle;

	ck_assert_int_eq(NC_alloc(&handle, length, 0), 0);
	ck_assert_int_eq(NC_write(&handle, bytes, length, 0), (ssize_t)length);
	ck_assert_int_eq(NC_insert(&handle), 0);
	order->ranges[at] = (struct NC_range){
		.id = NC_cache_id(&handle), .offset = skip, .length = length - skip};
	ck_assert_int_eq(NC_hold(NULL, NC_cache_id(&handle), &order->holds[at]), 0);
	ck_assert_int_eq(NC_free(&handle), 0);
	order->job.ranges = order->ranges;
	order->job.holds = order->holds;
	order->job.coding = coding;
	order->job.begin = begin;
	order->job.done = done;
}

static void release(struct order *order)
{
	for (unsigned i = 0; i < order->job.range_count; i++) {
		(void)NC_release(&order->holds[i]);
		(void)NC_destroy(NULL, order->ranges[i].id);
	}
	if (order->job.id) {
		(void)NC_release(&order->job.hold);
		(void)NC_destroy(NULL, order->job.id);
	}
}

static char *make_text(size_t length, bool noise)
{
	char *text = must_alloc(length);
	uint64_t state = 815;

	for (size_t i = 0; i < length; i++)
		text[i] = noise ? (char)random_next(&state) : "some words, "[i * i % 12];
	return text;
}

static struct compressor_stat stat_now(void)
{
	struct compressor_stat stat;

	/* A counter follows the result. */
	do
		compressor_stat(compressor, &stat);
	while (stat.waiting);
	return stat;
}

static void submit(struct order *order)
{
	ck_assert(compressor_submit(compressor, &order->job));
	AWAIT(order->done);
}

/* A unit in three ranges, and the same bytes in one: the variants are equal. */
START_TEST(test_ranges)
{
	char *text = make_text(SIZE, false);
	struct order one = {0}, three = {0};
	struct NC_stat unit;
	char *bytes[2];

	open_all();
	if (!encoder_of(coding)) {
		close_all();
		free(text);
		return;
	}
	add(&one, text, SIZE, 0);
	add(&three, text, 70000, 0);
	add(&three, text + 69990, 30010, 10);
	add(&three, text + 100000, SIZE - 100000, 0);
	submit(&one);
	submit(&three);
	ck_assert_int_eq(one.job.result, COMPRESS_GOOD);
	ck_assert_int_eq(three.job.result, COMPRESS_GOOD);
	ck_assert_uint_eq(one.job.length, three.job.length);
	ck_assert_uint_lt(one.job.length, SIZE / 4);
	ck_assert_uint_ne(one.job.id, three.job.id);
	ck_assert_int_eq(NC_stat(NULL, one.job.id, &unit, sizeof(unit)), 0);
	ck_assert_uint_eq(unit.size, one.job.length);
	ck_assert_uint_eq(unit.holds, 1);
	for (unsigned i = 0; i < 2; i++) {
		bytes[i] = must_alloc(one.job.length);
		ck_assert_int_eq(
			NC_pread(NULL, i ? three.job.id : one.job.id, bytes[i], one.job.length, 0),
			(ssize_t)one.job.length);
	}
	ck_assert_mem_eq(bytes[0], bytes[1], one.job.length);
	ck_assert_uint_eq(stat_now().made, 2);
	ck_assert_uint_eq(stat_now().bytes_in, 2 * SIZE);
	ck_assert_uint_eq(stat_now().bytes_out, 2 * one.job.length);
	free(bytes[0]);
	free(bytes[1]);
	release(&one);
	release(&three);
	close_all();
	free(text);
}
END_TEST

START_TEST(test_unfit)
{
	char *noise = make_text(SIZE, true);
	struct order order = {0};

	open_all();
	if (encoder_of(coding)) {
		add(&order, noise, SIZE, 0);
		submit(&order);
		ck_assert_int_eq(order.job.result, COMPRESS_UNFIT);
		ck_assert_uint_eq(order.job.id, 0);
		ck_assert_uint_eq(stat_now().unfit, 1);
		ck_assert_uint_eq(stat_now().made, 0);
		release(&order);
	}
	close_all();
	free(noise);
}
END_TEST

/* Neither memory for the unit, nor a coding. */
START_TEST(test_failed)
{
	char *text = make_text(SIZE, false);
	struct order order = {0};

	open_all();
	add(&order, text, SIZE, 0);
	/* A range beyond the unit cannot be read. */
	order.ranges[0].length += 1;
	order.job.ranges = order.ranges;
	submit(&order);
	ck_assert_int_eq(order.job.result, COMPRESS_FAILED);
	ck_assert_uint_eq(stat_now().failed, 1);
	order.ranges[0].length -= 1;
	release(&order);
	close_all();
	free(text);
}
END_TEST

/* A source that was evicted while its job waited. */
START_TEST(test_gone)
{
	struct order order = {.gone = true};

	open_all();
	add(&order, "text", 4, 0);
	submit(&order);
	ck_assert_int_eq(order.job.result, COMPRESS_CANCELLED);
	ck_assert_uint_eq(stat_now().made + stat_now().failed + stat_now().unfit, 0);
	release(&order);
	close_all();
}
END_TEST

/* More than may wait are refused; at the end those that wait are cancelled. */
START_TEST(test_many)
{
	enum { MANY = 1000 };
	char *text = make_text(SIZE, false);
	struct order *orders = must_alloc(MANY * sizeof(*orders));
	unsigned taken = 0, good = 0, cancelled = 0;
	struct order first = {0};

	open_all();
	memset(orders, 0, MANY * sizeof(*orders));
	add(&first, text, SIZE, 0);
	for (unsigned i = 0; i < MANY; i++) {
		orders[i].job = first.job;
		if (!compressor_submit(compressor, &orders[i].job)) {
			orders[i].done = true;
			continue;
		}
		taken++;
	}
	ck_assert_uint_ge(taken, 256);
	compressor_close(compressor);
	for (unsigned i = 0; i < MANY; i++) {
		ck_assert(orders[i].done);
		good += orders[i].job.result == COMPRESS_GOOD && orders[i].job.id != 0;
		cancelled += orders[i].job.result == COMPRESS_CANCELLED;
		orders[i].job.range_count = 0;
		release(&orders[i]);
	}
	ck_assert_uint_le(good + cancelled, taken);
	release(&first);
	ck_assert_int_eq(NC_cache_close(cache), 0);
	free(orders);
	free(text);
}
END_TEST

START_TEST(test_revision)
{
	for (unsigned i = 0; i < CODINGS; i++) {
		ck_assert_uint_ne(compressor_revision((enum coding)i), 0);
		for (unsigned k = 0; k < i; k++)
			ck_assert_uint_ne(compressor_revision((enum coding)i),
					  compressor_revision((enum coding)k));
	}
	/* One that was never used has no thread. */
	compressor_close(compressor_open());
	compressor_close(NULL);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_ranges);
	tcase_add_test(tcase, test_unfit);
	tcase_add_test(tcase, test_failed);
	tcase_add_test(tcase, test_gone);
	tcase_add_test(tcase, test_many);
	tcase_add_test(tcase, test_revision);
}

RUN_SUITE("compressor", fill)
