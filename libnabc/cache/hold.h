/* SPDX-License-Identifier: MIT */
/*
 * hold.h - what is inside of a struct NC_hold, and the unit that it keeps.
 *
 * A hold is the caller's memory: a wrong one is refused, not followed.
 */
#ifndef NC_HOLD_H
#define NC_HOLD_H

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <nabc.h>

#include "cache/index.h"

struct nc_hold {
	struct nc_index *index; /* NULL: no hold */
	uint64_t serial;	/* of that cache */
	size_t id;
	struct nc_unit *unit;
};

static_assert(sizeof(struct nc_hold) == sizeof(struct NC_hold), "the public structure's size");

static inline struct nc_hold nc_hold_read(const struct NC_hold *hold)
{
	return (struct nc_hold){.index = (struct nc_index *)(uintptr_t)hold->nc_private[0],
				.serial = hold->nc_private[1],
				.id = hold->nc_private[2],
				.unit = (struct nc_unit *)(uintptr_t)hold->nc_private[3]};
}

/* Describes the hold that a view stands for; the view is the hold from then on. */
static inline void nc_hold_write(struct NC_hold *hold, const struct nc_index *index,
				 const struct nc_view *view)
{
	*hold = (struct NC_hold){
		{(uintptr_t)index, index->serial, view->id, (uintptr_t)view->unit}};
}

/*
 * The unit of a hold on a cache that exists, to be returned by nc_index_return() while
 * the hold lasts.  0; -EINVAL: another cache's, or released.
 */
static inline int nc_hold_borrow(const struct NC_hold *hold, struct nc_index *index,
				 struct nc_view *view)
{
	struct nc_hold known = nc_hold_read(hold);

	if (known.index != index || known.serial != index->serial || !known.unit)
		return -EINVAL;
	return nc_index_borrow(index, known.id, known.unit, view);
}

#endif
