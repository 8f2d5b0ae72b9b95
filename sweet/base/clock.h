/* SPDX-License-Identifier: MIT */
/*
 * clock.h - clocks that never go back, for threads without a loop's clock.
 */
#ifndef SWEET_CLOCK_H
#define SWEET_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Returns nanoseconds since an unspecified moment before the start. */
static inline uint64_t clock_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Returns nanoseconds with the time of suspension, as NC_stat(3) counts. */
static inline uint64_t clock_boottime_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

#endif
