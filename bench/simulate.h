/* SPDX-License-Identifier: MIT */
/*
 * simulate.h - what a cache of a given size would hit of a list of requests.
 */
#ifndef SIMULATE_H
#define SIMULATE_H

#include <nabc.h>

#include "requests.h"

struct simulation {
	uint64_t size; /* bytes of the cache; objects above a quarter are not cached */
	enum NC_policy policy;
	uint64_t grain; /* an object takes a multiple of this; bytes */
	/* With segments: */
	unsigned segments;  /* whose size gives that many, within the library's limits */
	unsigned limit;	    /* percent of a segment that may be copied on */
	unsigned high, low; /* percent of size: cleaning begins above high and goes down to low */
};

struct result {
	uint64_t hits, hit_bytes;
	uint64_t evictions;
	uint64_t copied;   /* bytes copied on by cleaning */
	uint64_t cleaned;  /* segments */
	uint64_t segments; /* of ordinary size that fit: 0 without segments */
};

/* Evicts object by object and wastes nothing.  0 or -ENOMEM. */
int simulate_single(const struct requests *requests, const struct simulation *how,
		    struct result *result);

/* Objects lie in segments of the library's sizes, which are cleaned. */
int simulate_segments(const struct requests *requests, const struct simulation *how,
		      struct result *result);

/* Knows the future: evicts what is requested last, lets what is never pass by. */
int simulate_belady(const struct requests *requests, uint64_t size, struct result *result);

/*
 * What no policy can exceed, as hits and, on its own, as bytes: PFOO-L
 * (Berger et al., 2018).  Each interval between two requests of an object is
 * space times time; the cheapest are taken until size times time is spent.
 */
int simulate_bound(const struct requests *requests, uint64_t size, struct result *result);

/* Does the cache take an object of that many bytes? */
static inline int simulate_takes(uint64_t cache, uint64_t bytes)
{
	return bytes <= cache / 4;
}

#endif
