/* SPDX-License-Identifier: MIT */
/*
 * histogram.c - reads a histogram; see histogram.h.  The order of the ranges: the
 * values below 8 have one range each; then each doubling has 8 ranges, of width 1
 * in the first doubling, 2 in the second, 4 in the third, ...
 */
#include "base/histogram.h"

static uint64_t histogram_start(unsigned range)
{
	unsigned doubling = range / HISTOGRAM_STEPS, step = range % HISTOGRAM_STEPS;

	if (doubling == 0)
		return step;
	return (uint64_t)(HISTOGRAM_STEPS + step) << (doubling - 1);
}

uint64_t histogram_limit(unsigned range)
{
	return range + 1 < HISTOGRAM_RANGES ? histogram_start(range + 1) : UINT64_MAX;
}

void histogram_add(struct histogram_sum *sum, const struct histogram *histogram)
{
	uint64_t most = atomic_load_explicit(&histogram->most, memory_order_relaxed);

	for (unsigned i = 0; i < HISTOGRAM_RANGES; i++) {
		uint64_t count = atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);

		sum->counts[i] += count;
		sum->count += count;
	}
	sum->sum += atomic_load_explicit(&histogram->sum, memory_order_relaxed);
	if (most > sum->most)
		sum->most = most;
}

uint64_t histogram_below(const struct histogram_sum *sum, unsigned bits)
{
	uint64_t below = 0;

	for (unsigned i = 0; i < histogram_range((uint64_t)1 << bits); i++)
		below += sum->counts[i];
	return below;
}

double histogram_quantile(const struct histogram_sum *sum, double share)
{
	double wanted = share * (double)sum->count, seen = 0;
	unsigned range = 0;
	double start, width, value;

	if (sum->count == 0)
		return 0;
	while (range + 1 < HISTOGRAM_RANGES &&
	       (sum->counts[range] == 0 || seen + (double)sum->counts[range] < wanted))
		seen += (double)sum->counts[range++];
	/* The result is at most the largest value, which also bounds the open last range. */
	start = (double)histogram_start(range);
	width = range + 1 < HISTOGRAM_RANGES ? (double)histogram_limit(range) - start
					     : (double)sum->most - start;
	value = start + width * (wanted - seen) / (double)sum->counts[range];
	return value > (double)sum->most ? (double)sum->most : value;
}
