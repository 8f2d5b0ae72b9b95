/* SPDX-License-Identifier: MIT */
/*
 * ctl-counter.h - the fields of struct NC_cache_stat by name, for whoever shows
 * all of them.  Pure.
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
	bool gauge;	/* what is now, not what has been so far */
	bool main;	/* shown even while it is 0 */
};

extern const struct ctl_counter ctl_counters[];
extern const size_t ctl_counter_count;

/* Names by NC_METHOD_*. */
extern const char *const ctl_methods[CTL_METHODS];

/* at: below the counter's count. */
uint64_t ctl_counter_value(const struct ctl_counter *counter, const struct NC_cache_stat *stat,
			   unsigned at);

/* The count of a method, where the structure has by_copy and its siblings at first. */
struct NC_method_count ctl_by_method(const void *structure, size_t first, unsigned method);

/* How much more a second; 0 for what makes no sense. */
double ctl_rate(uint64_t before, uint64_t after, double seconds);

#endif
