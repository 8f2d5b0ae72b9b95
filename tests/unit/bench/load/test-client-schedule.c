/* SPDX-License-Identifier: MIT */
/*
 * test-client-schedule.c - unit tests of bench/load/client-schedule.c: as many random
 * instants as the rate requires, and the same ones each time.
 */
#include <math.h>

#include <client-schedule.h>
#include <stdint.h>

#include "suite.h"

#define INSTANTS 200000u

/* Each rate has its mean gap, and the distribution of gaps of a Poisson process. */
START_TEST(test_gaps)
{
	static const double rates[] = {0.5, 100, 7000, 90000};

	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		double gap = 1e6 / rates[i];
		struct schedule schedule;
		uint64_t last = 0;
		unsigned above = 0;

		schedule_begin(&schedule, rates[i], 3);
		for (unsigned n = 0; n < INSTANTS; n++) {
			double before = schedule.at;
			uint64_t next = schedule_next(&schedule);

			expect(next >= last && schedule.at > before);
			above += schedule.at - before > gap;
			last = next;
		}
		/* Four standard deviations. */
		ck_assert_double_le(fabs((double)last / gap / INSTANTS - 1), 4 / sqrt(INSTANTS));
		ck_assert_double_le(fabs((double)above / INSTANTS - exp(-1)),
				    4 * 0.5 / sqrt(INSTANTS));
	}
}
END_TEST

START_TEST(test_seeds)
{
	struct schedule one, same, twice, other;
	unsigned alike = 0;

	schedule_begin(&one, 1000, 3);
	schedule_begin(&same, 1000, 3);
	schedule_begin(&twice, 2000, 3);
	schedule_begin(&other, 1000, 4);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t next = schedule_next(&one), half = schedule_next(&twice);

		ck_assert_uint_eq(next, schedule_next(&same));
		ck_assert(next - 2 * half <= 1); /* both are cut to microseconds */
		alike += next == schedule_next(&other);
	}
	ck_assert_uint_lt(alike, 10);
}
END_TEST

/* After a day of requests, an instant is still exact to the microsecond. */
START_TEST(test_long)
{
	struct schedule schedule;
	uint64_t next;

	schedule_begin(&schedule, 1e6, 3);
	schedule.at = 86400e6;
	next = schedule_next(&schedule);
	ck_assert_uint_ge(next, UINT64_C(86400000000));
	ck_assert_uint_lt(next, UINT64_C(86400000050));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_gaps);
	tcase_add_test(tcase, test_seeds);
	tcase_add_test(tcase, test_long);
}

RUN_SUITE("client-schedule", fill)
