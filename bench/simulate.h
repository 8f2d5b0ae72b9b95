/* SPDX-License-Identifier: MIT */
/* simulate.h - the hits of a cache of a given size for a list of requests. */
#ifndef SIMULATE_H
#define SIMULATE_H

#include <nabc.h>
#include <stdint.h>

#include "requests.h"

struct simulation {
	uint64_t size; /* bytes of the cache; objects above a quarter are not cached */
	enum NC_policy policy;
	uint64_t grain; /* an object takes a multiple of this; bytes */
	/* With segments: */
	unsigned segments;  /* whose size gives that many, within the library's limits */
	unsigned limit;	    /* percent of a segment that compaction may copy */
	unsigned high, low; /* percent of size: compaction begins above high and stops at low */
};

struct result {
	uint64_t hits, hit_bytes;
	uint64_t evictions;
	uint64_t copied;   /* bytes that compaction copied */
	uint64_t cleaned;  /* segments */
	uint64_t segments; /* of ordinary size that fit: 0 without segments */
};

/* Evicts object by object and wastes no space.  Returns 0 or -ENOMEM. */
int simulate_single(const struct requests *requests, const struct simulation *how,
		    struct result *result);

/* Objects are in segments of the library's sizes, which are compacted. */
int simulate_segments(const struct requests *requests, const struct simulation *how,
		      struct result *result);

/*
 * Knows the future: evicts the object whose next request is the farthest, and does not
 * cache one without a next request.
 */
int simulate_belady(const struct requests *requests, uint64_t size, struct result *result);

/*
 * The bound of all policies, in hits and, separately, in bytes: PFOO-L (Berger et al.,
 * 2018).  Each interval between two requests of an object costs space times time; the
 * cheapest are taken until size times time is used up.
 */
int simulate_bound(const struct requests *requests, uint64_t size, struct result *result);

/* Returns whether the cache accepts an object of that many bytes. */
static inline int simulate_takes(uint64_t cache, uint64_t bytes)
{
	return bytes <= cache / 4;
}

#endif
