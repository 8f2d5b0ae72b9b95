/* SPDX-License-Identifier: MIT */
/*
 * upstream.h - the addresses of one pool's applications, as one thread sees
 * them: who has the least to do, and who has failed and is left alone for a
 * while.  No system calls; one thread.
 */
#ifndef SWEET_UPSTREAM_H
#define SWEET_UPSTREAM_H

#include <stdint.h>

#include "base/address.h"

#define UPSTREAMS_MAX 64u
#define UPSTREAM_ASIDE_MS 1000u	     /* after the first failure, twice as long after each next */
#define UPSTREAM_ASIDE_MAX_MS 60000u /* but no longer than that */

struct upstream {
	struct listen_address address;
	unsigned number;   /* in its set */
	unsigned in_use;   /* requests that it has; the user counts */
	unsigned failures; /* since it was well */
	uint64_t aside_until_ms;
	void *own; /* the user's */
};

struct upstreams {
	unsigned count;
	unsigned turn; /* among equals */
	struct upstream all[];
};

/*
 * The one to ask next: with the fewest requests of those that are well, or the
 * first whose time aside is over if none is.  Those in the set `out` are left
 * out.  NULL: none is left.
 */
struct upstream *upstream_choose(struct upstreams *upstreams, uint64_t now_ms, uint64_t out);

/* As an element of the set. */
static inline uint64_t upstream_bit(const struct upstream *upstream)
{
	return UINT64_C(1) << upstream->number;
}

/* It does not answer: aside with it.  True: it was well before. */
bool upstream_failed(struct upstream *upstream, uint64_t now_ms);

/* It has answered.  True: it was not well before. */
bool upstream_answered(struct upstream *upstream);

#endif
