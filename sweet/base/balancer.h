/* SPDX-License-Identifier: MIT */
/*
 * balancer.h - the addresses of one pool's applications, as one thread sees them:
 * which has the fewest requests, and which have failed and are not used for a
 * while.  No system calls; for one thread.
 */
#ifndef SWEET_BALANCER_H
#define SWEET_BALANCER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"

#define BALANCER_MAX 64u
#define BALANCER_ASIDE_MS 1000u	     /* after the first failure; doubled after each further one */
#define BALANCER_ASIDE_MAX_MS 60000u /* maximum of the pause */

struct upstream {
	struct listen_address address;
	unsigned number;   /* index in its balancer */
	unsigned in_use;   /* its current requests; the user counts them */
	unsigned failures; /* since its last response */
	uint64_t aside_until_ms;
	bool out;  /* it is no address of the pool any more: it gets no new requests */
	void *own; /* the user's */
};

struct balancer {
	unsigned count;
	unsigned turn; /* index after the last choice, for equals */
	struct upstream all[];
};

/*
 * Returns the address for the next request: the one with the fewest requests of
 * those in use, or, if all have failed, the one whose pause ends first.  Ignores
 * those in the set out.  Returns NULL if none is left.
 */
struct upstream *balancer_choose(struct balancer *balancer, uint64_t now_ms, uint64_t out);

/* Returns the set that contains only upstream. */
static inline uint64_t balancer_bit(const struct upstream *upstream)
{
	return UINT64_C(1) << upstream->number;
}

/* Pauses an address that does not respond.  Returns true if it worked before. */
bool balancer_failed(struct upstream *upstream, uint64_t now_ms);

/* Notes a response.  Returns true if the address had failed before. */
bool balancer_answered(struct upstream *upstream);

#endif
