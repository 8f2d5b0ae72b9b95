/* SPDX-License-Identifier: MIT */
/* replacement-fixture.h - entries of a replacement order, and how they leave it. */
#ifndef REPLACEMENT_FIXTURE_H
#define REPLACEMENT_FIXTURE_H

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "policy/replacement.h"

#include "suite.h"

#define ENTRIES 64

struct thing {
	struct nc_replaceable order; /* first: a victim is its thing */
	int number;
	bool in, pinned;
	/* The model's */
	int mark;   /* SIEVE: 0 unused, 1 used, 2 due */
	double key; /* LRU: when; GDSF: floor + uses / bytes */
	double bytes;
	unsigned uses;
};

static struct thing things[ENTRIES];

static inline bool may_evict(struct nc_replaceable *entry, void *context)
{
	(void)context;
	return !((struct thing *)entry)->pinned;
}

static inline int victim(struct nc_replacement *order)
{
	struct nc_replaceable *entry = nc_replacement_victim(order, may_evict, NULL);

	return entry ? ((struct thing *)entry)->number : -1;
}

static inline void add(struct nc_replacement *order, int count)
{
	memset(things, 0, sizeof(things));
	for (int i = 0; i < count; i++) {
		things[i].number = i;
		ck_assert_int_eq(nc_replacement_add(order, &things[i].order, 1), 0);
	}
}

#endif
