/* SPDX-License-Identifier: MIT */
/*
 * route-learn.c - what a route learns from its sends: which method pays for which
 * sizes; see route.h.
 */
#include "send/route-internal.h"

#define LEVEL_MAX 13u
#define WINDOW 32u

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
	if (from != to && to <= LEVEL_MAX)
		(void)atomic_compare_exchange_strong_explicit(
			&trial->level, &from, to, memory_order_relaxed, memory_order_relaxed);
}

bool nc_route_tries(const struct nc_route_use *use, enum NC_method method, unsigned class,
		    bool sampled)
{
	return !use->route || trial_due(&use->route->taken[method][class], sampled);
}

bool nc_route_tries_zerocopy(const struct nc_route_use *use, bool sampled)
{
	return use->route && !use->local && trial_due(&use->route->copied, sampled);
}

/* Returns the bytes per call above which a method is cheaper than a copy. */
static size_t worth(enum NC_method method)
{
	return method == NC_METHOD_ZEROCOPY ? 2 * NC_ROUTE_CLASS_MIN : NC_ROUTE_CLASS_MIN;
}

void nc_route_took(const struct nc_route_use *use, enum NC_method method, size_t offered,
		   size_t taken)
{
	struct nc_trial *trial;
	uint32_t level, calls;
	uint64_t bytes;

	if (!use->route)
		return;
	trial = &use->route->taken[method][nc_route_class(offered)];
	level = atomic_load_explicit(&trial->level, memory_order_relaxed);
	/* A trial is judged by its one call; otherwise the average of a window counts. */
	bytes = atomic_fetch_add_explicit(&trial->bytes, taken, memory_order_relaxed) + taken;
	calls = atomic_fetch_add_explicit(&trial->calls, 1, memory_order_relaxed) + 1;
	if (calls < (level ? 1 : WINDOW))
		return;
	atomic_store_explicit(&trial->calls, 0, memory_order_relaxed);
	atomic_store_explicit(&trial->bytes, 0, memory_order_relaxed);
	/* One good trial is a hint, not a proof: sockets differ. */
	trial_ends(trial, level, bytes / calls >= worth(method) ? level / 2 : level + 1);
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

void nc_route_notified(const struct nc_route_use *use, uint32_t level, bool copied)
{
	if (!still_there(use))
		return;
	nc_route_add(copied ? &use->route->copied_count : &use->route->kept, 1);
	trial_ends(&use->route->copied, level, copied ? level + 1 : 0);
}

void nc_route_refused(const struct nc_route_use *use, uint32_t level)
{
	if (still_there(use))
		trial_ends(&use->route->copied, level, level + 1);
}
