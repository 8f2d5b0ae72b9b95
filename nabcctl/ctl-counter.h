/* SPDX-License-Identifier: MIT */
/*
 * ctl-counter.h - the fields of struct NC_cache_stat by name, for commands that
 * show all of them.  No I/O.
 */
#ifndef CTL_COUNTER_H
#define CTL_COUNTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nabc.h>

#define CTL_METHODS 4u

struct ctl_counter {
	const char *name;
	size_t offset;	/* in struct NC_cache_stat */
	unsigned count; /* 1, or CTL_METHODS: one in each struct NC_method_count */
	bool gauge;	/* a present value, not a sum since the start */
	bool main;	/* shown even if 0 */
	const char *
		words; /* what it counts, for people: at most 30 bytes; NULL of gauges and methods */
};

extern const struct ctl_counter ctl_counters[];
extern const size_t ctl_counter_count;

/* Names by NC_METHOD_*. */
extern const char *const ctl_methods[CTL_METHODS];

/* at: below the counter's count. */
uint64_t ctl_counter_value(const struct ctl_counter *counter, const struct NC_cache_stat *stat,
			   unsigned at);

/* Returns the count of a method; first: offset of the structure's field by_copy. */
struct NC_method_count ctl_by_method(const void *structure, size_t first, unsigned method);

/* Returns the growth per second; 0 if that cannot be computed. */
double ctl_rate(uint64_t before, uint64_t after, double seconds);

#endif
