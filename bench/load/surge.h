/* SPDX-License-Identifier: MIT */
/*
 * surge.h - the behaviour of users of a web server, by the distributions of SURGE
 * (Barford and Crovella, SIGMETRICS 1998): sizes of documents, popularity, documents
 * of a page, times between requests, locality.  The same seed makes the same
 * numbers.  Pure.
 *
 *   sizes of files       93 %: lognormal, mu 9.357, sigma 1.318, below 133 KB;
 *                        7 %: Pareto, k 133,000, alpha 1.1
 *   popularity           Zipf
 *   embedded references  Pareto, k 1, alpha 2.43
 *   active OFF time      Weibull, a 1.46 s, b 0.382: between documents of a page
 *   inactive OFF time    Pareto, k 1 s, alpha 1.5: between pages
 *   stack distance       lognormal, mu 1.5, sigma 0.80
 */
#ifndef SURGE_H
#define SURGE_H

#include <stdint.h>

#define SURGE_SIZE_MOST (UINT64_C(64) << 20) /* one in 900 of the tail would be larger */
#define SURGE_REPEAT 32u		     /* requests of a sequence for each document */

/* A generator's state; any number starts a sequence of its own. */
struct surge {
	uint64_t state;
};

/* In (0, 1). */
double surge_part(struct surge *surge);

uint64_t surge_size(struct surge *surge);
uint32_t surge_embedded(struct surge *surge);
double surge_active_off(struct surge *surge);	/* seconds */
double surge_inactive_off(struct surge *surge); /* seconds */
double surge_distance(struct surge *surge);	/* 1: the last document again */

/* Counts how often each document occurs among length requests, the most popular first. */
void surge_counts(uint32_t *counts, uint32_t documents, uint32_t length);

/*
 * Puts length requests in an order that has Zipf's popularity exactly and distances as
 * close to SURGE's as possible.  Returns 0, or -ENOMEM.
 */
int surge_sequence(uint32_t *sequence, uint32_t length, uint32_t documents, uint64_t seed);

#endif
