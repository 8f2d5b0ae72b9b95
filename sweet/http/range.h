/* SPDX-License-Identifier: MIT */
/*
 * range.h - the Range field (RFC 9110, section 14.2), for bytes of a known
 * whole: what is to be sent of it.
 */
#ifndef SWEET_RANGE_H
#define SWEET_RANGE_H

#include <stdint.h>

#include "base/slice.h"

#define RANGES_MAX 16u

struct range {
	uint64_t first, length; /* bytes; at least one */
};

/* Disjoint and not adjacent, within the whole; in the order of the request. */
struct range_set {
	unsigned count;
	struct range ranges[RANGES_MAX];
};

enum range_verdict {
	RANGE_IGNORED,	     /* to be answered as if it were not there */
	RANGE_GOOD,	     /* the set has what is to be sent */
	RANGE_UNSATISFIABLE, /* 416 */
};

/*
 * Ignored are other units than bytes, malformed values, more than RANGES_MAX
 * ranges, and sets in which more than two ranges overlap others before them.
 * A few short fields must not make a server send a file many times: what
 * overlaps or touches is joined, so no byte goes twice.
 */
enum range_verdict range_parse(struct slice value, uint64_t size, struct range_set *set);

#endif
