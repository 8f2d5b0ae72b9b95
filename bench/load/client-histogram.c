/* SPDX-License-Identifier: MIT */
/*
 * client-histogram.c - times in ranges; see client-histogram.h.  The values
 * below 128 have a range each; then, doubling by doubling, 128 ranges.
 */
#include "client-histogram.h"

static unsigned range_of(uint64_t value)
{
	unsigned shift;

	if (value < LATENCY_STEPS)
		return (unsigned)value;
	if (value >> LATENCY_TOP_BITS)
		return LATENCY_RANGES - 1;
	shift = 63u - (unsigned)__builtin_clzll(value) - LATENCY_STEP_BITS;
	return shift * LATENCY_STEPS + (unsigned)(value >> shift);
}

/* Returns the greatest value of a range. */
static uint64_t range_end(unsigned range)
{
	unsigned doubling = range / LATENCY_STEPS, step = range % LATENCY_STEPS;

	if (!doubling)
		return step;
	return ((uint64_t)(LATENCY_STEPS + step + 1) << (doubling - 1)) - 1;
}

void latency_record(struct latency *latency, uint64_t microseconds)
{
	latency->counts[range_of(microseconds)]++;
	latency->count++;
	latency->sum += microseconds;
	if (microseconds > latency->most)
		latency->most = microseconds;
}

uint64_t latency_quantile(const struct latency *latency, double share)
{
	double wanted = share * (double)latency->count;
	uint64_t seen = 0;

	for (unsigned i = 0; i + 1 < LATENCY_RANGES; i++) {
		seen += latency->counts[i];
		if (seen && (double)seen >= wanted)
			return range_end(i) < latency->most ? range_end(i) : latency->most;
	}
	return latency->most;
}
