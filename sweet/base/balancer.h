/* SPDX-License-Identifier: MIT */
/*
 * balancer.h - the addresses of one pool's applications, as one thread sees
 * them: who has the least to do, and who has failed and is left alone for a
 * while.  No system calls; one thread.
 */
#ifndef SWEET_BALANCER_H
#define SWEET_BALANCER_H

#include <stdint.h>

#include "base/address.h"

#define BALANCER_MAX 64u
#define BALANCER_ASIDE_MS 1000u	     /* after the first failure, twice as long after each next */
#define BALANCER_ASIDE_MAX_MS 60000u /* but no longer than that */

struct upstream {
	struct listen_address address;
	unsigned number;   /* in its set */
	unsigned in_use;   /* requests that it has; the user counts */
	unsigned failures; /* since it was well */
	uint64_t aside_until_ms;
	void *own; /* the user's */
};

struct balancer {
	unsigned count;
	unsigned turn; /* among equals */
	struct upstream all[];
};

/*
 * The one to ask next: with the fewest requests of those that are well, or the
 * first whose time aside is over if none is.  Those in the set `out` are left
 * out.  NULL: none is left.
 */
struct upstream *balancer_choose(struct balancer *balancer, uint64_t now_ms, uint64_t out);

/* As an element of the set. */
static inline uint64_t balancer_bit(const struct upstream *upstream)
{
	return UINT64_C(1) << upstream->number;
}

/* It does not answer: aside with it.  True: it was well before. */
bool balancer_failed(struct upstream *upstream, uint64_t now_ms);

/* It has answered.  True: it was not well before. */
bool balancer_answered(struct upstream *upstream);

#endif
