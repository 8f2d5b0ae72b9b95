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
	{AT(inserts), .count = 1, .main = true, .words = "units inserted"},
	{AT(destroys), .count = 1, .main = true, .words = "units destroyed"},
	{AT(evictions), .count = 1, .main = true, .words = "units that made room"},
	{AT(segments_closed), .count = 1, .words = "segments given back"},
	{AT(failures), .count = 1, .main = true, .words = "units not made: no memory"},
	{"sends", offsetof(struct NC_cache_stat, by_copy.sends), .count = CTL_METHODS},
	{"bytes", offsetof(struct NC_cache_stat, by_copy.bytes), .count = CTL_METHODS},
	{AT(zerocopy_copied), .count = 1, .words = "zero-copy copied after all"},
	{AT(stale), .count = 1, .words = "ids of units that are gone"},
	{AT(denied), .count = 1, .words = "ids of others, refused"},
	{AT(sends_partial), .count = 1, .words = "socket took a part"},
	{AT(sends_full), .count = 1, .words = "socket took nothing: EAGAIN"},
	{AT(sends_failed), .count = 1, .words = "socket failed otherwise"},
	{AT(splice_sigpipe), .count = 1, .words = "no splice: SIGPIPE not ignored"},
	{AT(splice_dontwait), .count = 1, .words = "no splice: it must not wait"},
	{AT(splice_refused), .count = 1, .words = "no splice: socket refused"},
	{AT(splice_learnt), .count = 1, .words = "no splice: another is cheaper"},
	{AT(zerocopy_memory), .count = 1, .words = "no zero-copy: memory limits"},
	{AT(zerocopy_refused), .count = 1, .words = "no zero-copy: socket refused"},
	{AT(zerocopy_full), .count = 1, .words = "no zero-copy: socket full"},
	{AT(zerocopy_learnt), .count = 1, .words = "no zero-copy: kernel copies"},
	{AT(zerocopy_kept), .count = 1, .words = "zero-copy without any copy"},
	{AT(hits), .count = 1, .main = true, .words = "ids found"},
	{AT(pinned), .count = 1, .gauge = true},
	{AT(expired), .count = 1, .words = "units whose time was over"},
	{AT(cleaned), .count = 1, .words = "segments compacted"},
	{AT(copied_units), .count = 1, .words = "units moved for that"},
	{AT(copied_bytes), .count = 1, .words = "bytes moved for that"},
	{AT(scrubbed), .count = 1, .words = "bytes verified meanwhile"},
	{AT(corrupt), .count = 1, .words = "checksums that were wrong"},
	{AT(failures_table), .count = 1, .words = "of failures: table full"},
	{AT(failures_system), .count = 1, .words = "refused by the system"},
	{AT(copies_avoided), .count = 1, .words = "pieces sent without a copy"},
	{AT(kernel_refused), .count = 1, .words = "sockets without the module"},
	{AT(kernel_memory), .count = 1, .words = "did not fit in the module"},
	{AT(kernel_copies), .count = 1, .words = "units copied from the module"},
	{AT(kernel_copied_bytes), .count = 1, .words = "bytes of these"},
	{AT(locked_bytes), .count = 1, .gauge = true},
	{AT(unlocked_bytes), .count = 1, .gauge = true},
	{AT(registered_bytes), .count = 1, .gauge = true},
	{AT(registrations), .count = 1, .words = "blocks known to io_uring"},
	{AT(registrations_failed), .count = 1, .words = "blocks not registered"},
	{AT(registered_sends), .count = 1, .words = "zero-copy of such blocks"},
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
