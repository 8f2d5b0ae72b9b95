/* SPDX-License-Identifier: MIT */
/*
 * plain-ids.h - ids without the random parts of their cache, for tests that write the
 * tables of members themselves, or name units by their slots.
 */
#ifndef PLAIN_IDS_H
#define PLAIN_IDS_H

#include "base/id.h"
#include "cache/index.h"
#include "store/pool.h"
#include "store/unit.h"

/* For an owner's cache in which no unit was made yet. */
static inline void use_plain_ids(struct nc_index *index)
{
	index->epoch = (struct nc_id_epoch){.generation = 1};
	index->own.units.generation = 1;
}

#endif
