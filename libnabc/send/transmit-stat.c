/* SPDX-License-Identifier: MIT */
/* transmit-stat.c - statistics of sending and of routes, for operators; see transmit.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "send/transmit.h"

void nc_transmit_stat(struct nc_transmit *transmit, struct NC_cache_stat *stat)
{
	uint64_t *const reasons[NC_REASONS] = {
		[NC_SPLICE_SIGPIPE] = &stat->splice_sigpipe,
		[NC_SPLICE_DONTWAIT] = &stat->splice_dontwait,
		[NC_SPLICE_REFUSED] = &stat->splice_refused,
		[NC_SPLICE_LEARNT] = &stat->splice_learnt,
		[NC_ZEROCOPY_MEMORY] = &stat->zerocopy_memory,
		[NC_ZEROCOPY_REFUSED] = &stat->zerocopy_refused,
		[NC_ZEROCOPY_FULL] = &stat->zerocopy_full,
		[NC_ZEROCOPY_LEARNT] = &stat->zerocopy_learnt,
		[NC_KERNEL_REFUSED] = &stat->kernel_refused,
	};

	for (unsigned i = 0; i < NC_TRANSMIT_SHARDS; i++) {
		struct nc_transmit_counts *counts = &transmit->counts[i];

		for (unsigned reason = 0; reason < NC_REASONS; reason++)
			*reasons[reason] += atomic_load_explicit(&counts->reasons[reason],
								 memory_order_relaxed);
		stat->zerocopy_kept += atomic_load_explicit(&counts->kept, memory_order_relaxed);
		stat->sends_partial += atomic_load_explicit(&counts->partial, memory_order_relaxed);
		stat->sends_full += atomic_load_explicit(&counts->full, memory_order_relaxed);
		stat->sends_failed += atomic_load_explicit(&counts->failed, memory_order_relaxed);
	}
	stat->copies_avoided = stat->by_splice.sends + stat->zerocopy_kept + stat->by_kernel.sends;
	snprintf(stat->uring, sizeof(stat->uring), "%s", transmit->zerocopy.ring.why);
	snprintf(stat->kernel, sizeof(stat->kernel), "%s", transmit->index->device.why);
}

int nc_transmit_routes(struct nc_transmit *transmit, struct NC_route *routes, unsigned count)
{
	if (count && !routes)
		return -EINVAL;
	return (int)nc_routes_list(&transmit->routes, routes, count,
				   transmit->zerocopy.ring.usable);
}

int nc_transmit_route_set(struct nc_transmit *transmit, const char *address, int method)
{
	struct nc_index *index = transmit->index;
	int error;

	if (!address || method < NC_ROUTE_LEARN || method > NC_METHOD_KERNEL)
		return -EINVAL;
	if ((method == NC_METHOD_KERNEL && !nc_device_usable(&index->device)) ||
	    (method == NC_METHOD_ZEROCOPY && !transmit->zerocopy.ring.usable))
		return -EOPNOTSUPP;
	error = nc_routes_fix(&transmit->routes, address, method);
	/* If no route may send from the module, do not allocate units there. */
	if (!error && strcmp(address, "*") == 0)
		atomic_store_explicit(&index->other_routes,
				      method != NC_ROUTE_LEARN && method != NC_METHOD_KERNEL,
				      memory_order_relaxed);
	return error;
}
