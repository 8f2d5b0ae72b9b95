/* SPDX-License-Identifier: MIT */
/* cleaning.c - decisions about compacting segments; see cleaning.h. */
#include <stdlib.h>

#include "policy/cleaning.h"

size_t nc_cleaning_bound(size_t size, unsigned limit)
{
	return size / 100 * limit + size % 100 * limit / 100;
}

/* Order: units that must survive, then descending worth, then ascending size. */
static int cleaning_compare(const void *left, const void *right)
{
	const struct nc_cleaning_unit *a = left, *b = right;

	if (a->must != b->must)
		return a->must ? -1 : 1;
	if (a->worth != b->worth)
		return a->worth > b->worth ? -1 : 1;
	return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

size_t nc_cleaning_survivors(struct nc_cleaning_unit *units, size_t count, size_t bound)
{
	size_t copied = 0;

	qsort(units, count, sizeof(units[0]), cleaning_compare);
	for (size_t i = 0; i < count; i++) {
		bool fits = copied <= bound && units[i].bytes <= bound - copied;

		units[i].survives = units[i].must || fits;
		if (units[i].survives)
			copied += units[i].bytes;
	}
	return copied;
}

void nc_cleaning_weigh(struct nc_cleaning_segment *segment, struct nc_cleaning_unit *units,
		       size_t count, size_t bound)
{
	segment->copied = nc_cleaning_survivors(units, count, bound);
	segment->evicted = 0;
	segment->lost = 0;
	for (size_t i = 0; i < count; i++) {
		if (units[i].survives)
			continue;
		segment->evicted += units[i].bytes;
		segment->lost += units[i].worth * (double)units[i].bytes;
	}
}

int nc_cleaning_pick(const struct nc_cleaning_segment *segments, unsigned count)
{
	double least = 0;
	int pick = -1;

	for (unsigned i = 0; i < count; i++) {
		const struct nc_cleaning_segment *segment = &segments[i];
		double loss;

		if (segment->copied >= segment->size)
			continue;
		/*
		 * Two such segments may not fit into one: units would be copied
		 * back and forth forever.
		 */
		if (!segment->evicted && segment->copied > segment->size / 2)
			continue;
		loss = segment->lost / (double)(segment->size - segment->copied);
		if (pick < 0 || loss < least ||
		    (loss == least && segment->opened < segments[pick].opened)) {
			least = loss;
			pick = (int)i;
		}
	}
	return pick;
}
