/* SPDX-License-Identifier: MIT */
/*
 * range.h - the Range field (RFC 9110, section 14.2) for a representation of known
 * size: which bytes to send.
 */
#ifndef SWEET_RANGE_H
#define SWEET_RANGE_H

#include <stdint.h>

#include "base/slice.h"

#define RANGES_MAX 16u

struct range {
	uint64_t first, length; /* bytes; at least one */
};

/* Disjoint and not adjacent, within the representation; in the order of the request. */
struct range_set {
	unsigned count;
	struct range ranges[RANGES_MAX];
};

enum range_verdict {
	RANGE_IGNORED,	     /* respond as if there were no Range */
	RANGE_GOOD,	     /* the set holds the ranges to send */
	RANGE_UNSATISFIABLE, /* 416 */
};

/*
 * Ignores units other than bytes, malformed values, more than RANGES_MAX ranges,
 * and sets in which more than two ranges overlap earlier ones.  A few short fields
 * must not make a server send a file many times: ranges that overlap or are
 * adjacent are joined, so no byte is sent twice.
 */
enum range_verdict range_parse(struct slice value, uint64_t size, struct range_set *set);

#endif
