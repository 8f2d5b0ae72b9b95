/* SPDX-License-Identifier: MIT */
/*
 * clock.h - the time that never goes back, for threads without a loop's clock.
 */
#ifndef SWEET_CLOCK_H
#define SWEET_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment before the start. */
static inline uint64_t clock_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The same with the time of suspension, as NC_stat(3) has it. */
static inline uint64_t clock_boottime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
