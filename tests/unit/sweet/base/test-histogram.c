/* SPDX-License-Identifier: MIT */
/*
 * test-histogram.c - unit tests of histogram.c: the ranges are adjacent and narrow,
 * the statistics are right, and a reader may run beside the writer.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/histogram.h"

#include "suite.h"

static struct histogram histogram;

static struct histogram_sum read_all(void)
{
	struct histogram_sum sum = {0};

	histogram_add(&sum, &histogram);
	return sum;
}

START_TEST(test_ranges)
{
	uint64_t start = 0;

	for (unsigned i = 0; i + 1 < HISTOGRAM_RANGES; i++) {
		uint64_t limit = histogram_limit(i);

		ck_assert_uint_gt(limit, start);
		ck_assert_uint_eq(histogram_range(start), i);
		ck_assert_uint_eq(histogram_range(limit - 1), i);
		ck_assert_uint_le((limit - start - 1) * HISTOGRAM_STEPS, start);
		start = limit;
	}
	ck_assert_uint_eq(start, 1u << HISTOGRAM_TOP_BITS);
	ck_assert_uint_ge(start, 60000000);
	ck_assert_uint_eq(histogram_range(start), HISTOGRAM_RANGES - 1);
	ck_assert_uint_eq(histogram_range(UINT64_MAX), HISTOGRAM_RANGES - 1);
	ck_assert_uint_eq(histogram_limit(HISTOGRAM_RANGES - 1), UINT64_MAX);
}
END_TEST

START_TEST(test_empty)
{
	struct histogram_sum sum = read_all();

	ck_assert_uint_eq(sum.count, 0);
	ck_assert_uint_eq(sum.most, 0);
	ck_assert(histogram_quantile(&sum, 0.5) == 0);
	ck_assert_uint_eq(histogram_below(&sum, HISTOGRAM_TOP_BITS), 0);
}
END_TEST

START_TEST(test_below)
{
	struct histogram_sum sum;

	for (uint64_t value = 0; value < 5000; value++)
		histogram_record(&histogram, value);
	histogram_record(&histogram, UINT64_MAX / 2);
	sum = read_all();
	ck_assert_uint_eq(sum.count, 5001);
	ck_assert_uint_eq(sum.most, UINT64_MAX / 2);
	for (unsigned bits = 0; bits <= HISTOGRAM_TOP_BITS; bits++) {
		uint64_t limit = (uint64_t)1 << bits;

		ck_assert_uint_eq(histogram_below(&sum, bits), limit < 5000 ? limit : 5000);
	}
}
END_TEST

/* Within an eighth of the true value, for any order of magnitude. */
START_TEST(test_quantiles)
{
	static const double shares[] = {0, 0.01, 0.5, 0.9, 0.99, 0.999, 1};
	struct histogram_sum sum;
	double unit;

	for (unsigned scale = 0; scale <= 12; scale += 4) {
		memset(&histogram, 0, sizeof(histogram));
		unit = (double)((uint64_t)1 << scale);
		for (uint64_t value = 1; value <= 10000; value++)
			histogram_record(&histogram, value << scale);
		sum = read_all();
		ck_assert_uint_eq(sum.sum, (uint64_t)50005000 << scale);
		for (unsigned i = 0; i < 7; i++) {
			double truth = 10000 * shares[i] * unit;
			double told = histogram_quantile(&sum, shares[i]);

			ck_assert_msg(told >= truth * 7 / 8 && told <= truth * 9 / 8 + unit,
				      "%g of %u: %g, not %g", shares[i], scale, told, truth);
		}
		ck_assert(histogram_quantile(&sum, 1) <= 10000 * unit);
	}
}
END_TEST

/* A single value, and one far above all others. */
START_TEST(test_few)
{
	struct histogram_sum sum;

	histogram_record(&histogram, 1000);
	sum = read_all();
	ck_assert(histogram_quantile(&sum, 0.99) <= 1000);
	ck_assert(histogram_quantile(&sum, 0.99) > 875);
	histogram_record(&histogram, 100000000);
	sum = read_all();
	ck_assert(histogram_quantile(&sum, 0.5) <= 1024);
	ck_assert(histogram_quantile(&sum, 1) == 100000000);
	histogram_add(&sum, &histogram);
	ck_assert_uint_eq(sum.count, 4);
	ck_assert_uint_eq(sum.sum, 200002000);
	ck_assert_uint_eq(sum.most, 100000000);
}
END_TEST

#define RECORDS 2000000u

static void *record(void *unused)
{
	(void)unused;
	for (unsigned i = 0; i < scaled(RECORDS); i++)
		histogram_record(&histogram, i);
	return NULL;
}

/* Values read while another thread records never decrease. */
START_TEST(test_reader)
{
	uint64_t before = 0;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, record, NULL), 0);
	while (before < scaled(RECORDS)) {
		struct histogram_sum sum = read_all();

		ck_assert_uint_ge(sum.count, before);
		before = sum.count;
	}
	pthread_join(thread, NULL);
	ck_assert_uint_eq(read_all().count, scaled(RECORDS));
}
END_TEST

static void clear(void)
{
	memset(&histogram, 0, sizeof(histogram));
}

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, clear, NULL);
	tcase_add_test(tcase, test_ranges);
	tcase_add_test(tcase, test_empty);
	tcase_add_test(tcase, test_below);
	tcase_add_test(tcase, test_quantiles);
	tcase_add_test(tcase, test_few);
	tcase_add_test(tcase, test_reader);
}

RUN_SUITE("histogram", fill)
