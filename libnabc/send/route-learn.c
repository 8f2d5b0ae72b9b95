/* SPDX-License-Identifier: MIT */
/*
 * route-learn.c - what a route learns from notifications: whether the kernel copies zero-copy
 * sends; see route.h.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/interface.h"
#include "send/route-internal.h"
#include "send/route.h"

#define LEVEL_MAX 13u

/* Notifications in a row that say so, until that is believed. */
#define COPIED_RUN 4u

static bool trial_due(struct nc_trial *trial, bool sampled)
{
	uint32_t level = atomic_load_explicit(&trial->level, memory_order_relaxed);

	if (level == 0)
		return true;
	if (!sampled ||
	    atomic_fetch_add_explicit(&trial->since, NC_ROUTE_SAMPLE, memory_order_relaxed) +
			    NC_ROUTE_SAMPLE <
		    nc_route_refusals(level))
		return false;
	atomic_store_explicit(&trial->since, 0, memory_order_relaxed);
	return true;
}

/* Changes the level, unless another thread changed it first. */
static void trial_ends(struct nc_trial *trial, uint32_t from, uint32_t to)
{
	atomic_store_explicit(&trial->run, 0, memory_order_relaxed);
	if (from != to && to <= LEVEL_MAX)
		(void)atomic_compare_exchange_strong_explicit(
			&trial->level, &from, to, memory_order_relaxed, memory_order_relaxed);
}

bool nc_route_tries_zerocopy(const struct nc_route_use *use, bool sampled)
{
	return use->route && trial_due(&use->route->copied, sampled);
}

uint32_t nc_route_level(const struct nc_route_use *use)
{
	return use->route ? atomic_load_explicit(&use->route->copied.level, memory_order_relaxed)
			  : 0;
}

/* Whether the entry still belongs to the route that it had when the send began. */
static bool still_there(const struct nc_route_use *use)
{
	return use->route &&
	       atomic_load_explicit(&use->route->number, memory_order_relaxed) == use->number;
}

void nc_route_ask_device(const struct nc_route_use *use, int socket)
{
	_Atomic unsigned char *device = &use->route->device;
	int result;

	if (atomic_load_explicit(device, memory_order_relaxed) != NC_ROUTE_UNKNOWN)
		return;
	result = nc_interface_of(socket);
	if (result > 0)
		result = nc_interface_offloads(socket, result);
	if (result >= 0 && still_there(use))
		atomic_store_explicit(device, result ? NC_ROUTE_OFFLOADS : NC_ROUTE_READS,
				      memory_order_relaxed);
}

void nc_route_notified(const struct nc_route_use *use, uint32_t level, bool copied)
{
	struct nc_trial *trial;

	if (!still_there(use))
		return;
	trial = &use->route->copied;
	nc_route_add(copied ? &use->route->copied_count : &use->route->kept, 1);
	if (!copied)
		trial_ends(trial, level, 0);
	else if (level ||
		 atomic_fetch_add_explicit(&trial->run, 1, memory_order_relaxed) + 1 >= COPIED_RUN)
		trial_ends(trial, level, level + 1);
}

void nc_route_refused(const struct nc_route_use *use, uint32_t level)
{
	if (still_there(use))
		trial_ends(&use->route->copied, level, level + 1);
}
