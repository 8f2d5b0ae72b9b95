/* SPDX-License-Identifier: MIT */
/*
 * test-ctl-counter.c - unit tests of ctl-counter.c: no field of the statistics is
 * forgotten, and rates.
 */
#include <nabc.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ctl-counter.h"

#include "suite.h"

/* A field without a row would leave bytes that no row covers. */
START_TEST(test_every_field)
{
	size_t next = 0;

	for (size_t i = 0; i < ctl_counter_count; i++) {
		const struct ctl_counter *counter = &ctl_counters[i];

		if (next == offsetof(struct NC_cache_stat, uring))
			next += sizeof(((struct NC_cache_stat *)0)->uring);
		if (next == offsetof(struct NC_cache_stat, kernel))
			next += sizeof(((struct NC_cache_stat *)0)->kernel);
		ck_assert_msg(counter->offset == next, "no row before %s", counter->name);
		ck_assert(counter->count == 1 || counter->count == CTL_METHODS);
		next += sizeof(uint64_t);
		/* Sends and bytes of the methods lie between each other. */
		if (next == offsetof(struct NC_cache_stat, by_splice))
			next += (CTL_METHODS - 1) * sizeof(struct NC_method_count);
	}
	ck_assert_uint_eq(next, sizeof(struct NC_cache_stat));
}
END_TEST

START_TEST(test_values)
{
	struct NC_cache_stat stat = {.size = 1,
				     .denied = 2,
				     .by_copy.bytes = 3,
				     .by_splice.bytes = 4,
				     .by_zerocopy.bytes = 5,
				     .by_kernel.bytes = 6};

	for (size_t i = 0; i < ctl_counter_count; i++) {
		const struct ctl_counter *counter = &ctl_counters[i];

		for (unsigned at = 0; at < counter->count; at++) {
			uint64_t wanted = !strcmp(counter->name, "size")     ? 1
					  : !strcmp(counter->name, "denied") ? 2
					  : !strcmp(counter->name, "bytes")  ? 3 + at
									     : 0;

			ck_assert_uint_eq(ctl_counter_value(counter, &stat, at), wanted);
		}
	}
	for (unsigned i = 0; i < CTL_METHODS; i++)
		ck_assert_ptr_nonnull(ctl_methods[i]);
}
END_TEST

START_TEST(test_rates)
{
	ck_assert(ctl_rate(10, 30, 2) == 10);
	ck_assert(ctl_rate(10, 10, 2) == 0);
	/* An owner that sends fewer fields than before, and clocks that do not advance. */
	ck_assert(ctl_rate(10, 9, 1) == 0);
	ck_assert(ctl_rate(10, 11, 0) == 0);
	ck_assert(ctl_rate(10, 11, -1) == 0);
	ck_assert(ctl_rate(0, UINT64_MAX, 1) > 1e19);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_every_field);
	tcase_add_test(tcase, test_values);
	tcase_add_test(tcase, test_rates);
}

RUN_SUITE("ctl-counter", fill)
