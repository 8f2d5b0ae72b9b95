/* SPDX-License-Identifier: MIT */
/*
 * generation.h - one thread's use of a configuration: transactions end with
 * the one that they began with, while new ones begin with the next.
 *
 * One thread's own, so counting needs no atomics.
 */
#ifndef SWEET_GENERATION_H
#define SWEET_GENERATION_H

#include "config/configuration.h"

struct generation {
	struct config *config; /* referenced */
	unsigned users;	       /* the thread's is one while it is the present one */
};

/* Takes over the caller's reference to config. */
struct generation *generation_open(struct config *config);

static inline struct generation *generation_hold(struct generation *generation)
{
	generation->users++;
	return generation;
}

void generation_free(struct generation *generation);

static inline void generation_release(struct generation *generation)
{
	if (--generation->users == 0)
		generation_free(generation);
}

#endif
