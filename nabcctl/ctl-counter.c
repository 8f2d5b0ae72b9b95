/* SPDX-License-Identifier: MIT */
/*
 * ctl-counter.c - see ctl-counter.h.
 */
#include <assert.h>
#include <string.h>

#include <glib.h>

#include "ctl-counter.h"

/* This order holds in all versions of the interface. */
static_assert(offsetof(struct NC_cache_stat, by_kernel) - offsetof(struct NC_cache_stat, by_copy) ==
		      NC_METHOD_KERNEL * sizeof(struct NC_method_count),
	      "by_copy to by_kernel are in the order of enum NC_method");
static_assert(offsetof(struct NC_route, by_kernel) - offsetof(struct NC_route, by_copy) ==
		      NC_METHOD_KERNEL * sizeof(struct NC_method_count),
	      "by_copy to by_kernel are in the order of enum NC_method");

#define AT(field) #field, offsetof(struct NC_cache_stat, field)

/* Every field except texts, in the order of the header. */
const struct ctl_counter ctl_counters[] = {
	{AT(size), .count = 1, .gauge = true},
	{AT(used), .count = 1, .gauge = true},
	{AT(units), .count = 1, .gauge = true},
	{AT(members), .count = 1, .gauge = true},
	{AT(inserts), .count = 1, .main = true},
	{AT(destroys), .count = 1, .main = true},
	{AT(evictions), .count = 1, .main = true},
	{AT(segments_closed), .count = 1},
	{AT(failures), .count = 1, .main = true},
	{"sends", offsetof(struct NC_cache_stat, by_copy.sends), .count = CTL_METHODS},
	{"bytes", offsetof(struct NC_cache_stat, by_copy.bytes), .count = CTL_METHODS},
	{AT(zerocopy_copied), .count = 1},
	{AT(stale), .count = 1},
	{AT(denied), .count = 1},
	{AT(sends_partial), .count = 1},
	{AT(sends_full), .count = 1},
	{AT(sends_failed), .count = 1},
	{AT(splice_sigpipe), .count = 1},
	{AT(splice_dontwait), .count = 1},
	{AT(splice_refused), .count = 1},
	{AT(splice_learnt), .count = 1},
	{AT(zerocopy_memory), .count = 1},
	{AT(zerocopy_refused), .count = 1},
	{AT(zerocopy_full), .count = 1},
	{AT(zerocopy_learnt), .count = 1},
	{AT(zerocopy_kept), .count = 1},
	{AT(hits), .count = 1, .main = true},
	{AT(pinned), .count = 1, .gauge = true},
	{AT(expired), .count = 1},
	{AT(cleaned), .count = 1},
	{AT(copied_units), .count = 1},
	{AT(copied_bytes), .count = 1},
	{AT(scrubbed), .count = 1},
	{AT(corrupt), .count = 1},
	{AT(failures_table), .count = 1},
	{AT(failures_system), .count = 1},
	{AT(copies_avoided), .count = 1},
	{AT(kernel_refused), .count = 1},
	{AT(kernel_memory), .count = 1},
	{AT(kernel_copies), .count = 1},
	{AT(kernel_copied_bytes), .count = 1},
	{AT(locked_bytes), .count = 1, .gauge = true},
	{AT(unlocked_bytes), .count = 1, .gauge = true},
	{AT(registered_bytes), .count = 1, .gauge = true},
	{AT(registrations), .count = 1},
	{AT(registrations_failed), .count = 1},
	{AT(registered_sends), .count = 1},
};
const size_t ctl_counter_count = G_N_ELEMENTS(ctl_counters);

const char *const ctl_methods[CTL_METHODS] = {
	[NC_METHOD_COPY] = "copy",
	[NC_METHOD_SPLICE] = "splice",
	[NC_METHOD_ZEROCOPY] = "zerocopy",
	[NC_METHOD_KERNEL] = "kernel",
};

uint64_t ctl_counter_value(const struct ctl_counter *counter, const struct NC_cache_stat *stat,
			   unsigned at)
{
	uint64_t value;

	memcpy(&value, (const char *)stat + counter->offset + at * sizeof(struct NC_method_count),
	       sizeof(value));
	return value;
}

struct NC_method_count ctl_by_method(const void *structure, size_t first, unsigned method)
{
	struct NC_method_count count;

	memcpy(&count, (const char *)structure + first + method * sizeof(count), sizeof(count));
	return count;
}

double ctl_rate(uint64_t before, uint64_t after, double seconds)
{
	return after > before && seconds > 0 ? (double)(after - before) / seconds : 0;
}
