/* SPDX-License-Identifier: MIT */
/*
 * balancer.c - see balancer.h.
 *
 * A failed address is not forgotten: after its pause it gets requests like the
 * others; if all addresses have failed, it is tried before that, because an attempt
 * is better than an error response.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/balancer.h"

/* Returns true if one is preferable to other; of equals the first one is kept. */
static bool is_better(const struct upstream *one, const struct upstream *other, uint64_t now_ms)
{
	bool one_well = one->aside_until_ms <= now_ms, other_well = other->aside_until_ms <= now_ms;

	if (one_well != other_well)
		return one_well;
	if (!one_well)
		return one->aside_until_ms < other->aside_until_ms;
	return one->in_use < other->in_use;
}

struct upstream *balancer_choose(struct balancer *balancer, uint64_t now_ms, uint64_t out)
{
	struct upstream *best = NULL;

	for (unsigned i = 0; i < balancer->count; i++) {
		struct upstream *at = &balancer->all[(balancer->turn + i) % balancer->count];

		if (!at->out && !(out & balancer_bit(at)) && (!best || is_better(at, best, now_ms)))
			best = at;
	}
	if (best)
		balancer->turn = best->number + 1;
	return best;
}

bool balancer_failed(struct upstream *upstream, uint64_t now_ms)
{
	unsigned doublings = upstream->failures < 16 ? upstream->failures : 16;
	uint64_t aside = (uint64_t)BALANCER_ASIDE_MS << doublings;

	/* Requests in flight together fail together: that counts as one failure. */
	if (upstream->aside_until_ms > now_ms)
		return false;
	upstream->failures++;
	upstream->aside_until_ms =
		now_ms + (aside < BALANCER_ASIDE_MAX_MS ? aside : BALANCER_ASIDE_MAX_MS);
	return upstream->failures == 1;
}

bool balancer_answered(struct upstream *upstream)
{
	bool was_aside = upstream->failures > 0;

	upstream->failures = 0;
	upstream->aside_until_ms = 0;
	return was_aside;
}
