/* SPDX-License-Identifier: MIT */
/*
 * histogram.h - counts values in ranges that grow with the value: eight ranges to
 * each doubling, so that a range is at most an eighth of its value wide.  For times
 * in microseconds: from 1 us to 67 s, and one range for longer times.
 *
 * One thread records, any thread reads.  Accesses are relaxed and without locked
 * instructions, so a reader may see a count before the sum includes its value.
 * Pure.
 */
#ifndef SWEET_HISTOGRAM_H
#define SWEET_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/counter.h"

#define HISTOGRAM_STEP_BITS 3u /* log2 of the ranges in a doubling */
#define HISTOGRAM_TOP_BITS 26u /* larger values share the last range */
#define HISTOGRAM_STEPS (1u << HISTOGRAM_STEP_BITS)
/* The last range holds all values from 2^26 on. */
#define HISTOGRAM_RANGES ((HISTOGRAM_TOP_BITS - HISTOGRAM_STEP_BITS + 1) * HISTOGRAM_STEPS + 1)

struct histogram {
	_Atomic uint64_t counts[HISTOGRAM_RANGES];
	_Atomic uint64_t sum;
	_Atomic uint64_t most;
};

/* The values of one or of several histograms, as read. */
struct histogram_sum {
	uint64_t counts[HISTOGRAM_RANGES];
	uint64_t count, sum, most;
};

static inline unsigned histogram_range(uint64_t value)
{
	unsigned shift;

	if (value < HISTOGRAM_STEPS)
		return (unsigned)value;
	if (value >> HISTOGRAM_TOP_BITS)
		return HISTOGRAM_RANGES - 1;
	shift = 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_STEP_BITS;
	return shift * HISTOGRAM_STEPS + (unsigned)(value >> shift);
}

/* Returns the first value above the range; UINT64_MAX for the last range, which is open. */
uint64_t histogram_limit(unsigned range);

/* Only the thread that owns the histogram may call this. */
static inline void histogram_record(struct histogram *histogram, uint64_t value)
{
	counter_add(&histogram->counts[histogram_range(value)], 1);
	counter_add(&histogram->sum, value);
	if (value > atomic_load_explicit(&histogram->most, memory_order_relaxed))
		atomic_store_explicit(&histogram->most, value, memory_order_relaxed);
}

/* Adds a histogram to a sum that began as zeros. */
void histogram_add(struct histogram_sum *sum, const struct histogram *histogram);

/* Returns the number of values below 2^bits; bits: at most HISTOGRAM_TOP_BITS. */
uint64_t histogram_below(const struct histogram_sum *sum, unsigned bits);

/*
 * Returns the value that a share (0 to 1) of all values do not exceed, if the
 * values of a range are spread over it evenly; 0 if there are no values.
 */
double histogram_quantile(const struct histogram_sum *sum, double share);

#endif
