/* SPDX-License-Identifier: MIT */
/*
 * client-histogram.h - the number of times in microseconds in each range, 128 to each
 * doubling, so that results are at most 1/128 off.  Pure; one thread.
 */
#ifndef CLIENT_HISTOGRAM_H
#define CLIENT_HISTOGRAM_H

#include <stdint.h>

#define LATENCY_STEP_BITS 7u
#define LATENCY_STEPS (1u << LATENCY_STEP_BITS)
#define LATENCY_TOP_BITS 32u /* from 71 minutes on, all are one range */
#define LATENCY_RANGES ((LATENCY_TOP_BITS - LATENCY_STEP_BITS + 1) * LATENCY_STEPS + 1)

struct latency {
	uint64_t counts[LATENCY_RANGES];
	uint64_t count, sum, most;
};

void latency_record(struct latency *latency, uint64_t microseconds);

/* Returns the value that a share (0 to 1) of all did not exceed; 0 when there are none. */
uint64_t latency_quantile(const struct latency *latency, double share);

#endif
