/* SPDX-License-Identifier: MIT */
/*
 * client-schedule.c - random instants; see client-schedule.h.  The gaps between
 * those of a Poisson process are exponential.
 */
#include <math.h>

#include "client-schedule.h"

void schedule_begin(struct schedule *schedule, double rate, uint64_t seed)
{
	*schedule = (struct schedule){.numbers.state = seed, .gap = 1e6 / rate};
}

uint64_t schedule_next(struct schedule *schedule)
{
	schedule->at -= schedule->gap * log(surge_part(&schedule->numbers));
	return (uint64_t)schedule->at;
}
